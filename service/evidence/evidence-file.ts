import * as z from 'zod';
import { RequestError } from '../base/errors';
import { firstProblemOf, found, pointerOf, sizeOf } from '../base/json';
import { isJsonObject, type JsonObject } from '../issuance/credential';

/**
 * The form of an evidence file. Everything in it is what its collector was told. Nothing counts before
 * check-evidence.ts has compared it with the hashes of blocks, or has said who claims it.
 *
 * Addresses, hashes and bytes are in lower-case hex. A member `problem` says why there is no proof; the same
 * data is then in a member `claimed`.
 */
export type EvidenceFile = z.infer<typeof evidenceFileSchema>;
export type EvidenceBlock = EvidenceFile['blocks'][number];
export type EvidenceEvent = EvidenceFile['events'][number];
export type EvidenceState = EvidenceFile['states'][number];
export type FetchedDocument = NonNullable<EvidenceFile['credential']>['documents'][number];

export const FORMAT = 'tdoc-evidence';
export const VERSION = 1;

/** Ten times a long history. Checking a file that has the most of everything takes about a minute. */
const MOST_OPERATIONS = 5_000;
const MOST_STATES = 100;
const MOST_VALUES = 300_000;
const MOST_CHARACTERS = 64_000_000;
/** Characters of a header, and of the code of a contract. */
const LONGEST_PART = 1_000_000;
/** The document and its proof are below: each may be nested as deeply as a document may. */
const DEEPEST = 110;
/** As many as a document may have that is issued, and its proof. */
const MOST_DOCUMENT_VALUES = 25_000;

const NOT_BYTES = 'must be bytes in lower-case hex';
/** A group for each byte would take the stack of 16 MB. */
const HEX = z
  .string()
  .regex(/^0x[0-9a-f]*$/, NOT_BYTES)
  .refine(({ length }) => length % 2 === 0, NOT_BYTES);
const HASH = z.string().regex(/^0x[0-9a-f]{64}$/, 'must be a hash');
const ADDRESS = z.string().regex(/^0x[0-9a-f]{40}$/, 'must be an address in lower case');
const COUNT = z.int().min(0);
const TIME = z.iso.datetime('must be a time in UTC, for example 2026-01-31T12:00:00Z');
const TEXT = z.string().max(2_000);
const NODES = z.array(HEX);

/**
 * A trie of a block: the nodes that prove the values of the transactions listed, or the values
 * themselves.
 */
const listedTrie = z.union([
  z.strictObject({ nodes: NODES }),
  z.strictObject({ problem: TEXT, claimed: z.array(HEX.nullable()) }),
]);

const block = z.strictObject({
  hash: HASH,
  number: COUNT,
  /** The encoded header. Its hash is the block's. */
  header: z.union([
    HEX.max(LONGEST_PART),
    z.strictObject({
      problem: TEXT,
      claimed: z.strictObject({
        timestamp: COUNT,
        parentHash: HASH,
        stateRoot: HASH,
        transactionsRoot: HASH,
        receiptsRoot: HASH,
      }),
    }),
  ]),
  /** The transactions with events of the token, in the order of the block. */
  transactions: z.array(z.strictObject({ position: COUNT, hash: HASH })).max(MOST_OPERATIONS),
  receiptsTrie: listedTrie,
  transactionsTrie: listedTrie,
});

/** A log, as the receipt of its transaction has it. */
const event = z.strictObject({
  blockHash: HASH,
  transactionHash: HASH,
  /** Position within the logs of the transaction, from 0. */
  logIndex: COUNT,
  address: ADDRESS,
  topics: z.array(HASH).max(4),
  data: HEX,
});

/** The token at the end of a block. The zero address: nobody. */
const state = z.strictObject({
  blockHash: HASH,
  owner: ADDRESS,
  beneficiary: ADDRESS,
  holder: ADDRESS,
  nominee: ADDRESS,
  previousBeneficiary: ADDRESS,
  previousHolder: ADDRESS,
  isPaused: z.boolean(),
  proof: z.union([
    z.strictObject({ problem: TEXT }),
    z.strictObject({
      accountNodes: NODES,
      /** The nodes of the storage tries of the registry, the factory and the title escrow. */
      storageNodes: NODES,
    }),
  ]),
});

const credential = z.strictObject({
  // As it is: a copy would lack members that a check must see, such as `__proto__`.
  credential: z.custom<JsonObject>(isJsonObject, 'must be an object').meta({
    type: 'object',
    additionalProperties: true,
  }),
  /** The contexts and the DID document that the credential's meaning and its issuer's key follow from. */
  documents: z.array(
    z.strictObject({
      kind: z.enum(['context', 'DID document']),
      url: z.string().max(2_000),
      /** Where it was found: fetched from its host, or a copy that the collector's software has. */
      from: z.enum(['host', 'software']),
      at: TIME,
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
      text: z.string(),
    }),
  ),
  /** Why a document could not be had. */
  problems: z.array(TEXT),
});

const delivery = z.strictObject({
  eventId: z.string().max(100),
  type: z.string().max(100),
  transactionHash: HASH,
  subscription: TEXT,
  state: z.string().max(20),
  /** Times at which the subscriber was asked, with the answers' statuses. */
  attempts: z.array(z.strictObject({ at: TIME, status: COUNT.nullable() })),
});

export const evidenceFileSchema = z.strictObject({
  format: z.literal(FORMAT),
  version: z.literal(VERSION),
  /** Name and version of the program that collected. */
  software: TEXT,
  collectedAt: TIME,
  chainId: z.int().min(1),
  network: TEXT,
  registry: ADDRESS,
  /** 64 hexadecimal digits. */
  tokenId: z.string().regex(/^[0-9a-f]{64}$/),
  contracts: z.strictObject({
    titleEscrowFactory: ADDRESS,
    titleEscrowImplementation: ADDRESS,
    registryImplementation: ADDRESS,
  }),
  /** In the order of their numbers. The last is the one up to which events were sought. */
  blocks: z.array(block).min(1).max(MOST_OPERATIONS),
  /** In chain order. */
  events: z.array(event).max(MOST_OPERATIONS),
  /** By block. The last is of the last block. */
  states: z.array(state).min(1).max(MOST_STATES),
  /** The code of contracts, by their addresses. */
  codes: z.array(z.strictObject({ address: ADDRESS, code: HEX.max(LONGEST_PART) })).max(10),
  credential: credential.optional(),
  deliveries: z.strictObject({ signingKeyIds: z.array(TEXT), deliveries: z.array(delivery) }).optional(),
});

/**
 * Checks the form of an evidence file.
 *
 * @throws RequestError EVIDENCE_INVALID naming the member.
 */
export function parseEvidenceFile(value: unknown): EvidenceFile {
  const { format, version } = (value ?? {}) as Record<string, unknown>;
  if (format === FORMAT && typeof version === 'number' && version !== VERSION)
    throw invalid(`/version ${version} is not known.`);
  const tooLarge = sizeProblemOf(value);
  if (tooLarge !== undefined) throw invalid(`${tooLarge}.`);
  const parsed = evidenceFileSchema.safeParse(value, { error: problemOf });
  if (!parsed.success) {
    const { path, problem } = firstProblemOf(parsed.error);
    throw invalid(`${pointerOf(path) || 'the whole'} ${problem}.`);
  }
  const problem = orderProblemOf(parsed.data);
  if (problem !== undefined) throw invalid(`${problem}.`);
  return parsed.data;
}

function problemOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'is not a member';
    case 'invalid_type':
      return issue.expected === 'int'
        ? 'must be a whole number'
        : `must be ${TYPES[issue.expected] ?? `of type ${issue.expected}`}, ${found(issue.input)}`;
    case 'invalid_value':
      return `must be ${issue.values.map((one) => JSON.stringify(one)).join(' or ')}`;
    case 'invalid_union':
      return 'has no known form';
    case 'too_small':
      return issue.origin === 'array' ? 'must not be empty' : `must be at least ${issue.minimum}`;
    case 'too_big':
      return issue.origin === 'int' || issue.origin === 'number'
        ? `must be at most ${issue.maximum}`
        : `must not be longer than ${issue.maximum}`;
    default:
      return undefined;
  }
}

const TYPES: Readonly<Record<string, string>> = {
  array: 'an array',
  boolean: 'true or false',
  number: 'a number',
  object: 'an object',
  string: 'a text',
};

/** Why a file is not worth the memory and the time: before anything recursive reads it. */
function sizeProblemOf(value: unknown): string | undefined {
  let [values, characters] = [0, 0];
  for (const [name, part] of Object.entries(isJsonObject(value) ? value : {})) {
    const size = sizeOf(part);
    const at = pointerOf([name]);
    values += size.values;
    characters += size.characters;
    if (size.depth > DEEPEST) return `${at} is nested deeper than ${DEEPEST} levels`;
    if (values > MOST_VALUES) return `${at} is too large: a file has at most ${MOST_VALUES} values`;
    if (characters > MOST_CHARACTERS)
      return `${at} is too large: a file has at most ${MOST_CHARACTERS} characters`;
  }
  return undefined;
}

/** A part that is there twice, or elsewhere than it belongs, could hide another one. */
function orderProblemOf({ blocks, events, states, codes, credential }: EvidenceFile): string | undefined {
  if (!isAscending(blocks.map(({ number }) => number))) return '/blocks is not in the order of the numbers';
  const odd = blocks.findIndex(
    ({ transactions }) => !isAscending(transactions.map(({ position }) => position)),
  );
  if (odd >= 0) return `/blocks/${odd}/transactions is not in the order of the positions`;
  const hashes = blocks.flatMap(({ transactions }) => transactions.map(({ hash }) => hash));
  if (hashes.length > MOST_OPERATIONS) return `/blocks has more than ${MOST_OPERATIONS} transactions`;
  const unique: [where: string, keys: string[]][] = [
    ['/blocks has a hash', blocks.map(({ hash }) => hash)],
    ['/blocks has a transaction', hashes],
    ['/events has a log', events.map((one) => `${one.blockHash} ${one.transactionHash} ${one.logIndex}`)],
    ['/states has a block', states.map(({ blockHash }) => blockHash)],
    ['/codes has an address', codes.map(({ address }) => address)],
    ['/credential/documents has a URL', (credential?.documents ?? []).map(({ url }) => url)],
  ];
  const repeated = unique.find(([, keys]) => new Set(keys).size < keys.length);
  if (repeated) return `${repeated[0]} twice`;
  if (sizeOf(credential?.credential).values > MOST_DOCUMENT_VALUES)
    return `/credential/credential has more than ${MOST_DOCUMENT_VALUES} values`;
  if (states.at(-1)?.blockHash !== blocks.at(-1)?.hash)
    return '/states does not end with the state at the last block';
  return undefined;
}

function isAscending(numbers: readonly number[]): boolean {
  return numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? 0));
}

function invalid(problem: string): RequestError {
  const remedy = 'Give a file of `tdoc evidence`, unchanged, and a version of tdoc that is not older.';
  return new RequestError('EVIDENCE_INVALID', `This is no evidence file: ${problem} ${remedy}`, { remedy });
}
