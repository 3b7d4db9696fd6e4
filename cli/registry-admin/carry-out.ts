import { dataLength, getAddress, keccak256, type Interface } from 'ethers';
import { type Time, pause } from '../../service/base/time';
import { ChainError, ConfigurationError, cut, messageOf } from '../../service/base/errors';
import { broadcast, notAccepted, type TransactionFees, estimateFees } from '../../service/chain/transactions';
import { isReverted, nodeErrorOf, classifyRefusal } from '../../service/chain/node-errors';
import { pollingMsOf, type Network } from '../../service/chain/networks';
import { readAgainWhileItMayPass } from '../../service/chain/read-chain';
import type { Chain } from '../../service/chain/chain';
import {
  balanceOf,
  callContract,
  estimateGas,
  runnerOf,
  transactionCountOf,
  type Call,
} from '../../service/chain/read-state';
import { readSettings } from '../../service/config/config';
import { walletKeyOf } from '../../service/config/key-settings';
import { settingOf } from '../../service/config/settings';
import type { TransactionSigner, UnnumberedTransaction } from '../../service/keys/transaction-signer';
import { openWallet } from '../../service/keys/wallet';
import { registryInterface } from '../../service/registry/registry-contracts';
import type { TokenState } from '../../service/registry/read-token-state';
import { TradeTrustTokenStandard__factory, type TradeTrustTokenStandard } from '../../typechain-types';
import type { Answer, Say } from '../answer';
import { maskSecrets, Refusal } from '../errors';
import { withRegistry, type ReachedRegistry } from '../token/find-token';
import {
  costLines,
  feesAfter,
  gasLimitFor,
  readNetworkFees,
  refusePublishedKey,
  requireFunds,
  transactionLink,
  type TransactionCost,
} from '../transactions';
import { explainRefusal, parseRevert } from './explain-refusal';
import { remarkWarning, type Remark } from './remark';

/** A registry and the wallet of the settings that administers it. */
export interface RegistryAdmin extends ReachedRegistry {
  wallet: TransactionSigner;
  /** Read-only: transactions go through the wallet. */
  contract: TradeTrustTokenStandard;
  /** Address of the registry with its checksum. */
  address: string;
  /**
   * The options that direct another command to this registry, each with a leading space. Empty for the
   * registry of the settings.
   */
  flags: string;
}

/**
 * Connects the wallet of the settings to a registry, and closes the connection afterwards.
 *
 * @throws ConfigurationError NOT_CONFIGURED, WALLET_KEY_PUBLISHED; the errors of withRegistry and `act`.
 */
export async function asAdmin<T>(
  time: Time,
  place: { chainId: number; registry: string },
  act: (admin: RegistryAdmin) => Promise<T>,
): Promise<T> {
  const key = walletKeyOf(readSettings().settings);
  if (key === undefined) {
    const remedy =
      "Set it to the private key of a wallet that has the registry's role for this, " +
      'or set WALLET_SIGNER_URL or WALLET_PKCS11_KEY.';
    const message = `WALLET_PRIVATE_KEY is missing. ${remedy}`;
    throw new ConfigurationError('NOT_CONFIGURED', message, { remedy });
  }
  return withRegistry(time, place, async (reached) => {
    const wallet = openWallet(time, key);
    refusePublishedKey(reached.network, wallet.address);
    const contract = TradeTrustTokenStandard__factory.connect(place.registry, runnerOf(reached.client));
    const address = getAddress(place.registry);
    return act({ ...reached, wallet, contract, address, flags: flagsOf(address, reached.network) });
  });
}

function flagsOf(address: string, { name, chainId }: Network): string {
  const { settings } = readSettings();
  const isOfSettings =
    settings.TOKEN_REGISTRY_ADDRESS?.toLowerCase() === address.toLowerCase() &&
    settingOf(settings, 'NET').chainId === chainId;
  return isOfSettings ? '' : ` --registry ${address} --network ${name}`;
}

/**
 * A transaction of the registry admin.
 *
 * - `name`: of the command.
 * - `doing`: the action in words, after "to".
 * - `about`: the subject of the action, for JSON output.
 * - `tokenState`: that of the token before, which explains a refusal.
 * - `beforeSending`: runs last before sending, and may still throw.
 * - `read`: reads the state that the action changes, at a block (default: the newest).
 * - `isDone`: whether the state is already the wanted one.
 * - `describe`: the state as a sentence.
 */
export interface AdminAction<State> {
  name: string;
  doing: string;
  method: string;
  args: readonly unknown[];
  about: Record<string, unknown>;
  remark?: Remark;
  tokenState?: TokenState['state'];
  beforeSending?: () => Promise<void>;
  read: (block?: number) => Promise<State>;
  isDone: (state: State) => boolean;
  describe: (state: State) => string;
}

/**
 * Sends the transaction of an action, waits until it is mined, and reads the resulting state at its block.
 *
 * @throws the errors of `send`; ChainError EFFECT_UNCONFIRMED if the transaction was mined but the state
 *   could not be read, or is not the wanted one.
 */
export async function carryOut<State>(
  admin: RegistryAdmin,
  action: AdminAction<State>,
  say: Say,
): Promise<Answer> {
  const { network, address } = admin;
  say(`To ${action.doing}, in registry ${address} on ${network.name} (chain id ${network.chainId}):`);
  if (action.remark) for (const line of remarkWarning(action.remark)) say(line);
  const { hash, blockNumber } = await send(admin, action, say);
  const explorer = transactionLink(network, hash);
  say(`mined    block ${blockNumber}`);
  if (explorer !== undefined) say(`explorer ${explorer}`);
  const state = await readEffect(admin, action, hash, blockNumber);
  return {
    lines: [`Now: ${action.describe(state)}`],
    json: { ...headOf(admin, action, 'done'), transactionHash: hash, blockNumber, explorer, state },
    isYes: true,
  };
}

/** The answer if the state is already the wanted one: nothing is sent. */
export function nothingToDo<State>(admin: RegistryAdmin, action: AdminAction<State>, state: State): Answer {
  const lost = action.remark && action.remark.hex !== '0x' ? ' The remark is not recorded.' : '';
  return {
    lines: [`Nothing to do, nothing was sent: ${action.describe(state)}${lost}`],
    json: { ...headOf(admin, action, 'nothing to do'), state },
    isYes: true,
  };
}

async function readEffect<State>(
  { client }: RegistryAdmin,
  action: AdminAction<State>,
  hash: string,
  blockNumber: number,
): Promise<State> {
  const mined = `Transaction ${hash} was mined in block ${blockNumber}, but`;
  const state = await readAgainWhileItMayPass(client.time, () => action.read(blockNumber)).catch(
    (cause: unknown) => {
      const reason = cut(maskSecrets(messageOf(cause)), LONGEST_REASON);
      const message = `${mined} the resulting state could not be read: ${reason}`;
      throw new ChainError('EFFECT_UNCONFIRMED', message, {
        cause,
        remedy: 'Check the state before sending again.',
      });
    },
  );
  if (action.isDone(state)) return state;
  const message = `${mined} at the end of that block: ${action.describe(state)}`;
  const remedy = 'Another transaction of the same block changed it, or the node is wrong.';
  throw new ChainError('EFFECT_UNCONFIRMED', message, { remedy });
}

/** Error messages of ethers contain the whole request and response. */
const LONGEST_REASON = 600;

function headOf<State>(
  { network, address, wallet }: RegistryAdmin,
  { name, about, remark }: AdminAction<State>,
  outcome: 'done' | 'nothing to do',
): object {
  return {
    action: name,
    outcome,
    network: network.name,
    chainId: network.chainId,
    registry: address,
    wallet: wallet.address,
    ...about,
    ...(remark && { remark: remark.hex, isRemarkEncrypted: remark.isEncrypted }),
  };
}

/** Untyped, because the method is chosen at run time. */
const REGISTRY: Interface = registryInterface;
/** A transaction that is not mined by then is most likely lost. */
const LONGEST_WAIT_MS = 10 * 60_000;
/** How often a transaction is signed, and how often the same bytes are sent, at most. */
const ATTEMPTS = 5;
const PAUSE_MS = 200;

/**
 * Simulates the call, checks that the wallet can pay for it, sends it and waits until it is mined.
 *
 * @throws Refusal REGISTRY_REFUSES if the simulation fails; ConfigurationError WALLET_NOT_FUNDED; ChainError
 *   TRANSACTION_REJECTED, TRANSACTION_REVERTED, or TRANSACTION_NOT_CONFIRMED, the only one after which the
 *   transaction may still be mined.
 */
async function send<State>(admin: RegistryAdmin, action: AdminAction<State>, say: Say): Promise<Mined> {
  const { client, wallet, network, settings, address } = admin;
  const data = REGISTRY.encodeFunctionData(action.method, action.args);
  const transaction = { from: wallet.address, to: address, data };
  await simulate(admin, action, transaction);
  const [gas, fees, balance] = await Promise.all([
    estimateGas(client, transaction),
    readNetworkFees(client.time, network, settings, () => estimateFees(client)),
    balanceOf(client, wallet.address),
  ]);
  const cost = { account: wallet.address, balance, gas, fees };
  if (!network.local) for (const line of costLines(cost, network)) say(line);
  requireFunds(cost, network);
  await action.beforeSending?.();
  const { chainId } = network;
  const call = { to: address, data, chainId, gasLimit: gasLimitFor(gas) };
  const hash = await submit(admin, call, cost);
  say(`sent     ${hash}`);
  return awaitReceipt(client, hash, pollingMsOf(network));
}

async function simulate<State>(
  { client, contract, flags }: RegistryAdmin,
  { doing, remark, tokenState }: AdminAction<State>,
  transaction: Call,
): Promise<void> {
  try {
    await callContract(client, transaction);
  } catch (cause) {
    if (!isReverted(cause)) throw cause;
    const error = parseRevert(cause.data);
    const role: unknown =
      error?.name === 'AccessControlUnauthorizedAccount' ? error.args.getValue('neededRole') : undefined;
    const adminOf = typeof role === 'string' ? await contract.getRoleAdmin(role) : undefined;
    const remarkBytes = dataLength(remark?.hex ?? '0x');
    const remedy = explainRefusal(error, { flags, remarkBytes, tokenState, adminOf });
    const name = error?.name ?? 'no reason';
    const message = `The registry refuses to ${doing} (${name}). ${remedy} Nothing was sent.`;
    throw new Refusal('REGISTRY_REFUSES', message, { cause, remedy });
  }
}

/**
 * Signs with the next nonce and returns the hash once the node has accepted the transaction. If another
 * sender uses that nonce first, or the node asks for a higher fee, it is signed again.
 */
async function submit(
  { wallet, client, network }: RegistryAdmin,
  call: Omit<UnnumberedTransaction, keyof TransactionFees>,
  cost: TransactionCost,
): Promise<string> {
  let { fees } = cost;
  for (let attempt = 1; ; attempt++) {
    const nonce = await transactionCountOf(client, wallet.address, 'pending');
    const raw = await wallet.sign({ ...call, ...fees, nonce });
    const outcome = await broadcast(client, raw);
    if (outcome.state === 'taken') return keccak256(raw);
    if (outcome.state === 'open') return submitAgain(client, raw);
    const { cause } = outcome;
    const refusal = classifyRefusal(cause);
    const isForNonce = refusal.startsWith('nonce');
    const more =
      refusal === 'fee too low' && attempt < ATTEMPTS ? feesAfter(reasonOf(cause), fees) : undefined;
    if (!(isForNonce || more) || attempt === ATTEMPTS) throw notAccepted(reasonOf(cause), cause, isForNonce);
    if (more) requireFunds({ ...cost, fees: more }, network);
    fees = more ?? fees;
    await pause(client.time, PAUSE_MS);
  }
}

/**
 * The node may have the transaction. Sending the same bytes again is safe; a new transaction could be mined
 * in addition.
 */
async function submitAgain(client: Chain, raw: string): Promise<string> {
  const hash = keccak256(raw);
  for (let attempt = 2; ; attempt++) {
    await pause(client.time, PAUSE_MS);
    const outcome = await broadcast(client, raw);
    if (outcome.state === 'taken') return hash;
    if (outcome.state === 'refused' || attempt === ATTEMPTS) throw notConfirmed(hash, outcome.cause);
  }
}

/** A transaction that was mined, and its block. */
interface Mined {
  hash: string;
  blockNumber: number;
}

/** Polls until the transaction is mined. A failed poll is repeated. */
async function awaitReceipt(client: Chain, hash: string, pollMs: number): Promise<Mined> {
  const deadline = client.time.elapsed() + LONGEST_WAIT_MS;
  let failure: unknown = new Error(`not mined within ${LONGEST_WAIT_MS / 60_000} minutes`);
  for (;;) {
    const receipt = await client.send('eth_getTransactionReceipt', [hash]).catch((cause: unknown) => {
      failure = cause;
      return null;
    });
    const { status, blockNumber } = (receipt ?? {}) as { status?: unknown; blockNumber?: unknown };
    // Some nodes give a receipt before the transaction is in a block.
    if (typeof blockNumber === 'string') {
      if (Number(status) === 1) return { hash, blockNumber: Number(blockNumber) };
      const remedy = 'The registry changed after the simulation: run the command again.';
      const message = `Transaction ${hash} was mined, but reverted. ${remedy}`;
      throw new ChainError('TRANSACTION_REVERTED', message, { remedy });
    }
    if (client.time.elapsed() >= deadline) throw notConfirmed(hash, failure);
    await pause(client.time, pollMs);
  }
}

function notConfirmed(hash: string, cause: unknown): ChainError {
  const message = `Transaction ${hash} was sent, but not confirmed: ${reasonOf(cause)}`;
  const remedy = 'Look the transaction up before sending again.';
  return new ChainError('TRANSACTION_NOT_CONFIRMED', message, { cause, remedy });
}

function reasonOf(cause: unknown): string {
  return cut(maskSecrets(nodeErrorOf(cause) ?? messageOf(cause)), LONGEST_REASON);
}
