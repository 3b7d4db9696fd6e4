import { Wallet } from 'ethers';
import { extendEnvironment } from 'hardhat/config';
import type { HardhatRuntimeEnvironment, Network as HardhatNetwork, RequestArguments } from 'hardhat/types';
import type { TransactionFees } from '../service/chain/fees';
import { findNetwork } from '../service/chain/networks';
import { readSettings } from '../service/config/config';
import { settingOf } from '../service/config/settings';
import { gasLimitFor, readNetworkFees } from '../cli/transactions';

/** How a command sends transactions on a network that is not local. */
interface Sending {
  readonly chainId: number;
  readonly fees: () => Promise<TransactionFees>;
  /** Receives each signed transaction before it is sent. */
  keep: (raw: string) => void;
}

/** Fields of a JSON-RPC transaction, in hexadecimal. */
interface Transaction {
  readonly from?: string;
  readonly to?: string;
  readonly data?: string;
  readonly value?: string;
  readonly nonce?: string;
  readonly gas?: string;
}

type Request = (args: RequestArguments) => Promise<unknown>;

/** Methods that only query: a price must not make them fail. */
const QUESTIONS = ['eth_call', 'eth_estimateGas'];

/** The fields of a JSON-RPC transaction that contain a price. */
const FEE_FIELDS = ['gasPrice', 'maxFeePerGas', 'maxPriorityFeePerGas', 'type'];

const sendings = new WeakMap<HardhatNetwork, Sending>();

/**
 * The fees of every transaction of this command. They are read once, so the fees that were shown are the fees
 * that are offered.
 *
 * @throws the errors of readFees.
 */
export function feesOf(hre: HardhatRuntimeEnvironment): Promise<TransactionFees> {
  return sendingOf(hre).fees();
}

/** Passes every transaction to `keep` after signing, before it is sent. */
export function keepSigned(hre: HardhatRuntimeEnvironment, keep: (raw: string) => void): void {
  sendingOf(hre).keep = keep;
}

function sendingOf({ network }: HardhatRuntimeEnvironment): Sending {
  const sending = sendings.get(network);
  if (sending === undefined) throw new Error(`Hardhat sends the transactions on ${network.name} itself`);
  return sending;
}

// Hardhat Ignition chooses its own fees: 32 gwei on Amoy, never EIP-1559 on Polygon, always EIP-1559 on other
// chains with a base fee. It sends through this provider like all other code. `extendProvider` would be too
// late: it wraps the wallet, which has signed by then.
extendEnvironment((hre) => {
  const network = findNetwork(hre.network.name);
  if (network === undefined || network.local) return;
  const { provider } = hre.network;
  const request: Request = provider.request.bind(provider);
  const sending: Sending = {
    chainId: network.chainId,
    fees: once(() =>
      readNetworkFees(network, readSettings().settings, () => hre.ethers.provider.getFeeData()),
    ),
    keep: () => undefined,
  };
  sendings.set(hre.network, sending);
  provider.request = async (args) => request(await ours(args, request, sending));
  provider.send = async (method, params) => provider.request({ method, ...(params && { params }) });
});

/** Rewrites a request: a query gets no price, and a transaction is signed with the fees of this command. */
async function ours(args: RequestArguments, request: Request, sending: Sending): Promise<RequestArguments> {
  const { method, params } = args;
  if (!Array.isArray(params)) return args;
  const [transaction, ...rest] = params as [Transaction, ...unknown[]];
  if (QUESTIONS.includes(method)) return { method, params: [withoutFees(transaction), ...rest] };
  const key = settingOf(readSettings().settings, 'WALLET_PRIVATE_KEY');
  if (method !== 'eth_sendTransaction' || key === undefined) return args;
  const raw = await sign(transaction, new Wallet(key), request, sending);
  sending.keep(raw);
  return { method: 'eth_sendRawTransaction', params: [raw] };
}

async function sign(
  transaction: Transaction,
  wallet: Wallet,
  request: Request,
  { chainId, fees }: Sending,
): Promise<string> {
  const { to, data, value, nonce, gas } = transaction;
  const ask = async (method: string, ...params: unknown[]): Promise<string> =>
    (await request({ method, params })) as string;
  const estimate = gas ?? (await ask('eth_estimateGas', withoutFees(transaction)));
  return wallet.signTransaction({
    to: to ?? null,
    data: data ?? '0x',
    value: value ?? 0,
    nonce: Number(nonce ?? (await ask('eth_getTransactionCount', wallet.address, 'pending'))),
    gasLimit: gasLimitFor(BigInt(estimate)),
    chainId,
    ...(await fees()),
  });
}

function withoutFees(transaction: Transaction): Transaction {
  return Object.fromEntries(Object.entries(transaction).filter(([name]) => !FEE_FIELDS.includes(name)));
}

/** Calls `read` once and remembers the result; a failure is not remembered. */
function once<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () =>
    (reading ??= read().catch((thrown: unknown) => {
      reading = undefined;
      throw thrown;
    }));
}
