/** CBOR values that a proof value may contain. */
export type CborValue = number | string | Buffer | CborValue[] | Map<CborValue, CborValue>;

/** Bytes and the position of the next one to read. */
interface Input {
  bytes: Buffer;
  position: number;
}

const UNSIGNED = 0;
const NEGATIVE = 1;
const BYTES = 2;
const TEXT = 3;
const ARRAY = 4;
const MAP = 5;
const TAG = 6;

/** Tag of an array of octets (RFC 8746, section 2.1). Some libraries encode byte strings so. */
const OCTETS = 64;

/** Maximum depth: an array, in it an array or a map, in that a tag with its content. */
const DEEPEST = 4;

/** Ends an array or a map of indefinite length. */
const BREAK = 0xff;

/**
 * Decodes the subset of CBOR (RFC 8949) that proof values use: integers, byte strings, text, arrays and maps.
 *
 * @throws Error if there is any other item, or bytes follow the value.
 */
export function decodeCbor(bytes: Buffer): CborValue {
  const input = { bytes, position: 0 };
  const value = readValue(input, 1);
  if (input.position < bytes.length) throw new Error('something follows it');
  return value;
}

function readValue(input: Input, depth: number): CborValue {
  if (depth > DEEPEST) throw new Error('it is nested too deeply');
  const { major, argument } = readHead(input);
  if (major === ARRAY) return readArray(input, argument, depth + 1);
  if (major === MAP) return readMap(input, argument, depth + 1);
  if (argument === undefined) throw new Error('an item in it has no length');
  if (major === UNSIGNED) return argument;
  if (major === NEGATIVE) return -1 - argument;
  if (major === BYTES) return take(input, argument);
  if (major === TEXT) return take(input, argument).toString();
  if (major === TAG && argument === OCTETS) return readValue(input, depth + 1);
  throw new Error(`an item in it has the major type ${major}`);
}

function readArray(input: Input, length: number | undefined, depth: number): CborValue[] {
  const values: CborValue[] = [];
  while (hasNext(input, values.length, length)) values.push(readValue(input, depth));
  return values;
}

function readMap(input: Input, length: number | undefined, depth: number): Map<CborValue, CborValue> {
  const map = new Map<CborValue, CborValue>();
  while (hasNext(input, map.size, length)) {
    const key = readValue(input, depth);
    if (map.has(key)) throw new Error('a map in it has a key twice');
    map.set(key, readValue(input, depth));
  }
  return map;
}

/**
 * Whether another item follows after `count`. At the end of an indefinite-length item it consumes the break.
 */
function hasNext(input: Input, count: number, length: number | undefined): boolean {
  if (length !== undefined) return count < length;
  if (input.bytes[input.position] !== BREAK) return true;
  input.position += 1;
  return false;
}

/**
 * Reads the type of the next item, and its value or length. The length is undefined for an indefinite-length
 * item.
 */
function readHead(input: Input): { major: number; argument: number | undefined } {
  const initial = take(input, 1).readUInt8();
  const major = initial >> 5;
  const short = initial & 0x1f;
  if (short < 24) return { major, argument: short };
  if (short === 31) return { major, argument: undefined };
  if (short > 27) throw new Error('an item in it has a reserved length');
  const argument = take(input, 2 ** (short - 24)).toString('hex');
  return { major, argument: Number(`0x${argument}`) };
}

function take(input: Input, length: number): Buffer {
  const end = input.position + length;
  if (end > input.bytes.length) throw new Error('it ends too early');
  const taken = input.bytes.subarray(input.position, end);
  input.position = end;
  return taken;
}
