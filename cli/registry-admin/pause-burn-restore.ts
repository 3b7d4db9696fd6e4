import type { Time } from '../../service/base/time';
import { readTokenState, type TokenState } from '../../service/registry/read-token-state';
import { tokenIdHexOf } from '../../service/registry/token-id-forms';
import type { Answer, Say } from '../answer';
import { Refusal } from '../errors';
import { confirm } from '../terminal/dialog';
import { registryOf } from '../token/find-token';
import { asAdmin, carryOut, nothingToDo, type AdminAction, type RegistryAdmin } from './carry-out';
import { findTokenAndKey, keyForRegistry, remarkOf } from './remark';

/**
 * The options of `tdoc pause`, `unpause`, `burn` and `restore`. `credential`: a file; the id of the
 * credential in it is the key of the remark. `yes`: burns without asking.
 */
export interface RemarkedOptions {
  remark?: string;
  credential?: string;
  registry?: string;
  network?: string;
  yes?: true;
}

/** Pauses or unpauses a registry. Nothing is sent if it already is in that state. */
export async function setPaused(
  time: Time,
  command: 'pause' | 'unpause',
  { registry, network, remark: text, credential }: RemarkedOptions,
  say: Say,
): Promise<Answer> {
  const place = registryOf(registry, network);
  const found = credential === undefined ? undefined : await keyForRegistry(credential, place);
  const remark = remarkOf(text, { found, flag: credential });
  return asAdmin(time, place, async (admin) => {
    const action: AdminAction<{ isPaused: boolean }> = {
      name: command,
      doing: `${command} the registry`,
      method: command,
      args: [remark.hex],
      about: {},
      remark,
      read: async (block) => ({ isPaused: await admin.contract.paused({ blockTag: block ?? 'latest' }) }),
      isDone: ({ isPaused }) => isPaused === (command === 'pause'),
      describe: ({ isPaused }) => (isPaused ? 'the registry is paused.' : 'the registry is not paused.'),
    };
    const before = await action.read();
    return action.isDone(before) ? nothingToDo(admin, action, before) : carryOut(admin, action, say);
  });
}

/**
 * Handles a token that was returned to the issuer: `burn` shreds it, `restore` gives it back to its title
 * escrow with beneficiary and holder unchanged.
 */
export async function burnOrRestore(
  time: Time,
  command: 'burn' | 'restore',
  reference: string,
  { registry, network, remark: text, credential, yes }: RemarkedOptions,
  say: Say,
): Promise<Answer> {
  const { token, key } = await findTokenAndKey({ token: reference, registry, network }, credential);
  const remark = remarkOf(text, { found: key, flag: credential });
  const { tokenId } = token.location;
  const tokenIdHex = tokenIdHexOf(tokenId);
  const isBurn = command === 'burn';
  return asAdmin(time, token.location, async (admin) => {
    const { client, registry: found } = admin;
    const read = (block?: number): Promise<TokenState> =>
      readTokenState(client, found.contracts, tokenId, block);
    const before = await read();
    if (before.state === 'not minted') throw notMinted(admin, tokenIdHex);
    for (const line of partiesOf(before)) say(line);
    const action: AdminAction<TokenState> = {
      name: command,
      doing: `${command} token ${tokenIdHex}${isBurn ? ' for ever' : ''}`,
      method: command,
      args: [tokenId, remark.hex],
      about: { tokenId, tokenIdHex },
      remark,
      tokenState: before.state,
      ...(isBurn && { beforeSending: () => confirm('burn', yes === true) }),
      read,
      isDone: ({ state }) => state === (isBurn ? 'shredded' : 'in escrow'),
      describe: (state) => [`the token is ${state.state}.`, ...partiesOf(state)].join('\n'),
    };
    return carryOut(admin, action, say);
  });
}

/** The beneficiary and holder that the token has, or had when it was returned. */
function partiesOf(state: TokenState): string[] {
  if (state.state === 'not minted' || state.beneficiary === undefined) return [];
  return [`beneficiary ${state.beneficiary}`, `holder      ${state.holder ?? 'nobody'}`];
}

/**
 * Checked here because the registry reverts without a reason for such a token, and some providers report that
 * like a failure of their own.
 */
function notMinted({ address, network }: RegistryAdmin, tokenIdHex: string): Refusal {
  const remedy = 'Check the id, the registry and the network.';
  const message =
    `Token ${tokenIdHex} was never minted in ${address} on ${network.name}. ` + `${remedy} Nothing was sent.`;
  return new Refusal('TOKEN_NOT_MINTED', message, { remedy });
}
