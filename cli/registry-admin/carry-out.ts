import type { TransactionReceipt } from 'ethers';
import { ChainError, messageOf } from '../../service/base/errors';
import { readAgainWhileItMayPass } from '../../service/chain/read-chain';
import type { Answer, Say } from '../answer';
import { transactionLink } from '../transactions/explorer-link';
import { printable, printableJson } from '../terminal/printable';
import type { RegistryAdmin } from './registry-admin';
import { remarkLength, remarkWarning, type Remark } from './remark';
import { sendCall, type AdminCall } from './send-call';

/**
 * An action of the registry admin.
 *
 * - `name`: of the command.
 * - `about`: the subject of the action, for JSON output.
 * - `read`: reads the state that the action changes, at a block (default: the newest).
 * - `isDone`: whether the state is already the wanted one.
 * - `describe`: the state as a sentence.
 */
export interface AdminAction<State> extends Omit<AdminCall, 'remarkBytes'> {
  name: string;
  about: Record<string, unknown>;
  remark?: Remark;
  read: (block?: number) => Promise<State>;
  isDone: (state: State) => boolean;
  describe: (state: State) => string;
}

/**
 * Sends the transaction of an action, waits until it is mined, and reads the resulting state at its block.
 *
 * @throws the errors of sendCall; ChainError EFFECT_UNCONFIRMED if the transaction was mined but the state
 *   could not be read, or is not the wanted one.
 */
export async function carryOut<State>(
  admin: RegistryAdmin,
  action: AdminAction<State>,
  say: Say,
): Promise<Answer> {
  const { network, address } = admin;
  const { remark } = action;
  say(`To ${action.doing}, in registry ${address} on ${network.name} (chain id ${network.chainId}):`);
  if (remark) for (const line of remarkWarning(remark)) say(line);
  const remarkBytes = remark ? remarkLength(remark) : 0;
  const receipt = await sendCall(admin, { ...action, remarkBytes }, say);
  const link = transactionLink(network, receipt.hash);
  say(`mined    block ${receipt.blockNumber}`);
  if (link !== undefined) say(`explorer ${link}`);
  const state = await readEffect(action, receipt);
  const transaction = { transactionHash: receipt.hash, blockNumber: receipt.blockNumber, explorer: link };
  return {
    lines: [`Now: ${action.describe(state)}`],
    json: answerJson(admin, action, { outcome: 'done', ...transaction, state }),
    isYes: true,
  };
}

/** The answer if the state is already the wanted one: nothing is sent. */
export function nothingToDo<State>(admin: RegistryAdmin, action: AdminAction<State>, state: State): Answer {
  const lost = action.remark && action.remark.hex !== '0x' ? ' The remark is not recorded.' : '';
  return {
    lines: [`Nothing to do, nothing was sent: ${action.describe(state)}${lost}`],
    json: answerJson(admin, action, { outcome: 'nothing to do', state }),
    isYes: true,
  };
}

async function readEffect<State>(action: AdminAction<State>, receipt: TransactionReceipt): Promise<State> {
  const { hash, blockNumber } = receipt;
  const mined = `Transaction ${hash} was mined in block ${blockNumber}, but`;
  const state = await readAgainWhileItMayPass(() => action.read(blockNumber)).catch((cause: unknown) => {
    const reason = printable(messageOf(cause), LONGEST_REASON);
    const message = `${mined} the resulting state could not be read: ${reason}`;
    throw new ChainError('EFFECT_UNCONFIRMED', message, {
      cause,
      remedy: 'Check the state before sending again.',
    });
  });
  if (action.isDone(state)) return state;
  const message = `${mined} at the end of that block: ${action.describe(state)}`;
  const remedy = 'Another transaction of the same block changed it, or the node is wrong.';
  throw new ChainError('EFFECT_UNCONFIRMED', message, { remedy });
}

/** Error messages of ethers contain the whole request and response. */
const LONGEST_REASON = 400;

function answerJson<State>(
  { network, address, wallet }: RegistryAdmin,
  { name, about, remark }: AdminAction<State>,
  result: Record<string, unknown>,
): string {
  const { outcome, ...rest } = result;
  return printableJson({
    action: name,
    outcome,
    network: network.name,
    chainId: network.chainId,
    registry: address,
    wallet: wallet.address,
    ...about,
    ...(remark && { remark: remark.hex, isRemarkEncrypted: remark.isEncrypted }),
    ...rest,
  });
}
