import { readTokenState, type TokenState } from '../../service/registry/read-token-state';
import { tokenIdHexOf } from '../../service/registry/token-id-forms';
import type { TokenReference } from '../token/find-token';
import type { Answer, Say } from '../answer';
import { carryOut, type AdminAction } from './carry-out';
import { confirm } from '../terminal/confirm';
import { findTokenAndKey } from './find-key';
import { asAdmin, type RegistryAdmin } from './registry-admin';
import { Refusal } from '../errors';
import { remarkOf, type Remark } from './remark';

/** `isAgreed`: burns without asking for confirmation. */
export interface BurnOrRestoreOptions extends TokenReference {
  remark: string | undefined;
  credential: string | undefined;
  isAgreed: boolean;
}

/**
 * Handles a token that was returned to the issuer: `burn` shreds it, `restore` gives it back to its title
 * escrow with beneficiary and holder unchanged.
 */
export async function burnOrRestore(
  command: 'burn' | 'restore',
  { remark: text, credential, isAgreed, ...reference }: BurnOrRestoreOptions,
  say: Say,
): Promise<Answer> {
  const { token, key } = await findTokenAndKey(reference, credential);
  const remark = remarkOf(text, { found: key, flag: credential });
  const { tokenId } = token.location;
  return asAdmin(token.location, async (admin) => {
    const before = await readTokenState(admin.client, admin.registry.contracts, tokenId);
    if (before.state === 'not minted') throw notMinted(admin, tokenId);
    const action = actionOf(command, admin, { tokenId, remark });
    for (const line of partiesOf(before)) say(line);
    const beforeSending = async (): Promise<void> => {
      if (command === 'burn') await confirm('burn', isAgreed);
    };
    return carryOut(admin, { ...action, tokenState: before.state, beforeSending }, say);
  });
}

function actionOf(
  command: 'burn' | 'restore',
  { client, registry }: RegistryAdmin,
  { tokenId, remark }: { tokenId: bigint; remark: Remark },
): AdminAction<TokenState> {
  const tokenIdHex = tokenIdHexOf(tokenId);
  const wanted = command === 'burn' ? 'shredded' : 'in escrow';
  return {
    name: command,
    doing: `${command} token ${tokenIdHex}${command === 'burn' ? ', for ever' : ''}`,
    method: command,
    args: [tokenId, remark.hex],
    about: { tokenId, tokenIdHex },
    remark,
    read: (block) => readTokenState(client, registry.contracts, tokenId, block),
    isDone: ({ state }) => state === wanted,
    describe: (state) => [`the token is ${state.state}.`, ...partiesOf(state)].join('\n'),
  };
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
function notMinted({ address, network }: RegistryAdmin, tokenId: bigint): Refusal {
  const remedy = 'Check the id, the registry and the network.';
  const message =
    `Token ${tokenIdHexOf(tokenId)} was never minted in ${address} on ${network.name}. ` +
    `${remedy} Nothing was sent.`;
  return new Refusal('TOKEN_NOT_MINTED', message, { remedy });
}
