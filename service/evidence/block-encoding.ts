import { orUndefined } from '../base/errors';
import { concat, dataSlice, decodeRlp, getBytes, hexlify, keccak256, stripZerosLeft, toBeHex } from 'ethers';

// The encodings whose hashes a chain commits to: of headers (Yellow Paper 4.4), receipts and transactions
// (EIP-2718). They are made from the answers of JSON-RPC, and count only if their hash is the one that the
// chain has.

/** An object of JSON-RPC. */
export type Answer = Readonly<Record<string, unknown>>;

type Encoded = string | Encoded[];

/**
 * RLP (Yellow Paper, appendix B). For each member of a list, ethers copies all that precede it: that takes
 * minutes for a transaction with 37,000 logs.
 */
function encoded(value: Encoded): string {
  return `0x${withLength(value)}`;
}

function withLength(value: Encoded): string {
  const isText = typeof value === 'string';
  const hex = isText ? value.slice(2) : value.map(withLength).join('');
  if (isText && hex.length === 2 && hex < '80') return hex;
  const length = hex.length / 2;
  const offset = isText ? 0x80 : 0xc0;
  if (length <= 55) return byteHex(offset + length) + hex;
  const size = byteHex(length);
  return byteHex(offset + 55 + size.length / 2) + size + hex;
}

/** Whole bytes. */
function byteHex(number: number): string {
  const hex = number.toString(16);
  return hex.length % 2 === 0 ? hex : `0${hex}`;
}

/** How a member is encoded. A number has no leading zeros. */
type Field = readonly [name: string, kind: 'bytes' | 'number' | 'list' | 'access list' | 'authorizations'];

const bytes = (...names: string[]): Field[] => names.map((name) => [name, 'bytes']);
const numbers = (...names: string[]): Field[] => names.map((name) => [name, 'number']);

const FIRST_FIELDS: readonly Field[] = [
  ...bytes('parentHash', 'sha3Uncles', 'miner', 'stateRoot', 'transactionsRoot', 'receiptsRoot', 'logsBloom'),
  ...numbers('difficulty', 'number', 'gasLimit', 'gasUsed', 'timestamp'),
  ...bytes('extraData', 'mixHash', 'nonce'),
];
/** XDPoSChain, core/types/block.go: they stand before the fields that upgrades added. */
const XDC_FIELDS: readonly Field[] = bytes('validators', 'validator', 'penalties');
/**
 * EIP-1559 (Polygon's blocks end here), 4895, 4844 (two), 4788, 7685, 7928, 7843. A header has the first few
 * of them.
 */
const LATER_FIELDS: readonly Field[] = [
  ...numbers('baseFeePerGas'),
  ...bytes('withdrawalsRoot'),
  ...numbers('blobGasUsed', 'excessBlobGas'),
  ...bytes('parentBeaconBlockRoot', 'requestsHash', 'blockAccessListHash'),
  ...numbers('slotNumber'),
];

/** The members of a header that statements are about. */
export interface Header {
  number: number;
  /** In seconds. */
  timestamp: number;
  parentHash: string;
  stateRoot: string;
  transactionsRoot: string;
  receiptsRoot: string;
}

/** The encoded header of a block. Undefined if no known encoding has the block's hash. */
export function encodeHeader(block: Answer): string | undefined {
  const layouts = [FIRST_FIELDS, [...FIRST_FIELDS, ...XDC_FIELDS]];
  return layouts
    .map((fields) => orUndefined(() => encoded(fieldsOf(block, [...fields, ...laterOf(block)]))))
    .find((header) => header !== undefined && keccak256(header) === block.hash);
}

/** Later fields up to the last that the block has: a header has none after one that is missing. */
function laterOf(block: Answer): readonly Field[] {
  const missing = LATER_FIELDS.findIndex(([name]) => block[name] === undefined || block[name] === null);
  return LATER_FIELDS.slice(0, missing < 0 ? LATER_FIELDS.length : missing);
}

/**
 * Reads an encoded header. The first fields are the same on all chains.
 *
 * @throws Error if it is not one.
 */
export function decodeHeader(header: string): Header {
  const fields = listOf(decodeRlp(header));
  const at = (name: string): string => textOf(fields[FIRST_FIELDS.findIndex(([field]) => field === name)]);
  return {
    number: numberOf(at('number')),
    timestamp: numberOf(at('timestamp')),
    parentHash: at('parentHash'),
    stateRoot: at('stateRoot'),
    transactionsRoot: at('transactionsRoot'),
    receiptsRoot: at('receiptsRoot'),
  };
}

/** A log as a receipt has it. */
export interface ReceiptLog {
  address: string;
  topics: string[];
  data: string;
}

/**
 * The encoded receipt, as the receipts trie of its block has it. @throws Error if the answer has no
 * receipt.
 */
export function encodeReceipt(receipt: Answer): string {
  const { type, status, root, logs } = receipt;
  // Before the upgrade Byzantium, a receipt had a state root instead of a status.
  const outcome = typeof status === 'string' ? numberBytes(status) : bytesOf(root);
  const payload = encoded([
    outcome,
    numberBytes(receipt.cumulativeGasUsed),
    bytesOf(receipt.logsBloom),
    (logs as Answer[]).map(({ address, topics, data }) => [
      bytesOf(address),
      (topics as unknown[]).map(bytesOf),
      bytesOf(data),
    ]),
  ]);
  return typed(type, payload);
}

/** The logs of an encoded receipt; of a failed transaction none. @throws Error if it is not one. */
export function decodeReceiptLogs(receipt: string): ReceiptLog[] {
  // A list begins with 0xc0 or more, a type is less than 0x80.
  const isTyped = (getBytes(receipt)[0] ?? 0) < 0x80;
  const fields = listOf(decodeRlp(isTyped ? dataSlice(receipt, 1) : receipt));
  return listOf(fields[3]).map((log) => {
    const [address, topics, data] = listOf(log);
    return { address: textOf(address), topics: listOf(topics).map(textOf), data: textOf(data) };
  });
}

const TARGET: readonly Field[] = [...numbers('gas'), ...bytes('to'), ...numbers('value'), ...bytes('input')];
const SIGNATURE = numbers('v', 'r', 's');
const ACCESS_LIST: Field = ['accessList', 'access list'];
const WITH_FEES = [
  ...numbers('chainId', 'nonce', 'maxPriorityFeePerGas', 'maxFeePerGas'),
  ...TARGET,
  ACCESS_LIST,
];

/** The fields of each type of transaction: EIP-155, 2930, 1559, 4844, 7702. */
const TRANSACTIONS: readonly (readonly Field[])[] = [
  [...numbers('nonce', 'gasPrice'), ...TARGET, ...SIGNATURE],
  [...numbers('chainId', 'nonce', 'gasPrice'), ...TARGET, ACCESS_LIST, ...SIGNATURE],
  [...WITH_FEES, ...SIGNATURE],
  [...WITH_FEES, ...numbers('maxFeePerBlobGas'), ['blobVersionedHashes', 'list'], ...SIGNATURE],
  [...WITH_FEES, ['authorizationList', 'authorizations'], ...SIGNATURE],
];

/**
 * The encoded transaction. Undefined if it is of a type that is not known, or the encoding has another
 * hash.
 */
export function encodeTransaction(transaction: Answer): string | undefined {
  const fields = TRANSACTIONS[Number(transaction.type ?? 0)];
  if (fields === undefined) return undefined;
  // A node may leave out what the encoding needs.
  const made = orUndefined(() => typed(transaction.type, encoded(fieldsOf(transaction, fields))));
  return made !== undefined && keccak256(made) === transaction.hash ? made : undefined;
}

function typed(type: unknown, payload: string): string {
  const first = Number(type ?? 0);
  return first === 0 ? payload : concat([new Uint8Array([first]), payload]);
}

function fieldsOf(answer: Answer, fields: readonly Field[]): Encoded[] {
  return fields.map(([name, kind]) => ENCODE[kind](answer[name]));
}

const ENCODE: Record<Field[1], (value: unknown) => Encoded> = {
  bytes: bytesOf,
  number: numberBytes,
  list: (value) => (value as unknown[]).map(bytesOf),
  'access list': (value) =>
    (value as Answer[]).map(({ address, storageKeys }) => [
      bytesOf(address),
      (storageKeys as unknown[]).map(bytesOf),
    ]),
  authorizations: (value) =>
    (value as Answer[]).map(({ chainId, address, nonce, yParity, r, s }) => [
      numberBytes(chainId),
      bytesOf(address),
      ...[nonce, yParity, r, s].map(numberBytes),
    ]),
};

/** Null is the recipient of a deployment. */
function bytesOf(value: unknown): string {
  return value === null ? '0x' : hexlify(textOf(value));
}

function numberBytes(value: unknown): string {
  const number = BigInt(String(value));
  return number === 0n ? '0x' : stripZerosLeft(toBeHex(number));
}

function numberOf(text: string): number {
  const number = Number(text === '0x' ? 0 : text);
  if (Number.isSafeInteger(number)) return number;
  throw new Error(`${text} is too large a number`);
}

function listOf(value: unknown): Encoded[] {
  if (Array.isArray(value)) return value as Encoded[];
  throw new Error('a list is expected');
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new Error('bytes are expected');
}
