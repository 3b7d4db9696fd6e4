import { extendEnvironment } from 'hardhat/config';
import type { HardhatRuntimeEnvironment, Network as HardhatNetwork } from 'hardhat/types';
import { readFees, type TransactionFees } from '../service/chain/fees';
import { createGasStation } from '../service/chain/gas-station';
import { findNetwork, type Network } from '../service/chain/networks';
import { readSettings } from '../service/config';
import { messageOf } from '../service/errors';
import { secretsOf } from '../service/secret-settings';
import { secretMasker } from '../service/secrets';
import { gasStationUrlOf } from '../service/settings';
import { gasLimitFor } from './transaction-cost';

/** The fields of a JSON-RPC transaction that a price can be in. */
const FEE_FIELDS = ['gasPrice', 'maxFeePerGas', 'maxPriorityFeePerGas', 'type'];

/** Only ask: what they would cost must not be what they fail for. */
const QUESTIONS = ['eth_call', 'eth_estimateGas'];

type Transaction = Record<string, unknown>;
type Fees = () => Promise<TransactionFees>;

const readers = new WeakMap<HardhatNetwork, Fees>();

/**
 * The fees that every transaction of this command offers. They are read once, so that what was announced is what is offered.
 *
 * @throws what readFees throws.
 */
export function feesOf({ network }: HardhatRuntimeEnvironment): Promise<TransactionFees> {
  const read = readers.get(network);
  if (read === undefined) throw new Error(`the fees of ${network.name} are left to Hardhat`);
  return read();
}

// Hardhat Ignition has fees of its own: 32 gwei on Amoy, never EIP-1559 on Polygon, always where blocks have a base fee. It sends through
// this provider as everything else does. `extendProvider` would come too late: behind the wallet, which has signed by then.
extendEnvironment((hre) => {
  const network = findNetwork(hre.network.name);
  if (network === undefined || network.local) return;
  const fees = once(() => readNetworkFees(hre, network));
  readers.set(hre.network, fees);
  const { provider } = hre.network;
  const request = provider.request.bind(provider);
  const send = provider.send.bind(provider);
  provider.request = async ({ method, params }) =>
    request({ method, ...(params && { params: await withFees(method, params, fees) }) });
  provider.send = async (method, params): Promise<unknown> =>
    send(method, params && (await withFees(method, params as unknown[], fees)));
});

/** The parameters of a JSON-RPC call: those of a transaction with our fees and some gas to spare, those of a question without any. */
async function withFees<T extends readonly unknown[] | object>(
  method: string,
  params: T,
  fees: Fees,
): Promise<T | unknown[]> {
  const isSending = method === 'eth_sendTransaction';
  if (!Array.isArray(params) || !(isSending || QUESTIONS.includes(method))) return params;
  const [transaction, ...rest] = params as [Transaction, ...unknown[]];
  const bare = Object.fromEntries(Object.entries(transaction).filter(([name]) => !FEE_FIELDS.includes(name)));
  if (!isSending) return [bare, ...rest];
  const { gas } = bare;
  const limit = typeof gas === 'string' ? { gas: quantity(gasLimitFor(BigInt(gas))) } : {};
  return [{ ...bare, ...limit, ...fieldsOf(await fees()) }, ...rest];
}

/** Without `type`: it follows from the fields, and some nodes know none. */
function fieldsOf(fees: TransactionFees): Transaction {
  if (fees.type === 0) return { gasPrice: quantity(fees.gasPrice) };
  const { maxFeePerGas, maxPriorityFeePerGas } = fees;
  return { maxFeePerGas: quantity(maxFeePerGas), maxPriorityFeePerGas: quantity(maxPriorityFeePerGas) };
}

function quantity(value: bigint): string {
  return `0x${value.toString(16)}`;
}

function readNetworkFees(hre: HardhatRuntimeEnvironment, network: Network): Promise<TransactionFees> {
  const { settings } = readSettings();
  const stationUrl = gasStationUrlOf(network, settings);
  const mask = secretMasker(secretsOf(settings));
  return readFees({
    gasPricing: network.gasPricing,
    readStation: stationUrl === undefined ? undefined : createGasStation(stationUrl),
    readNode: () => hre.ethers.provider.getFeeData(),
    // To standard error: what a command prints may be for a program.
    warn: (message, cause) => console.error(`warning: ${message} (${mask(messageOf(cause))}).`),
  });
}

/** Reads the first time, and again only after a failure. */
function once<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () =>
    (reading ??= read().catch((thrown: unknown) => {
      reading = undefined;
      throw thrown;
    }));
}
