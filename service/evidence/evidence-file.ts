import * as z from 'zod';
import { RequestError } from '../base/errors';
import { firstProblemOf, found, pointerOf } from '../base/json';
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

const HEX = z.string().regex(/^0x([0-9a-f]{2})*$/, 'must be bytes in lower-case hex');
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
    HEX,
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
  transactions: z.array(z.strictObject({ position: COUNT, hash: HASH })),
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
  blocks: z.array(block).min(1),
  /** In chain order. */
  events: z.array(event),
  /** By block. The last is of the last block. */
  states: z.array(state).min(1),
  /** The code of contracts, by their addresses. */
  codes: z.array(z.strictObject({ address: ADDRESS, code: HEX })),
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
  if (format === FORMAT && version !== VERSION) throw invalid(`/version ${String(version)} is not known.`);
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

/** A part that is there twice, or elsewhere than it belongs, could hide another one. */
function orderProblemOf({ blocks, states }: EvidenceFile): string | undefined {
  if (!isAscending(blocks.map(({ number }) => number))) return '/blocks is not in the order of the numbers';
  const odd = blocks.findIndex(
    ({ transactions }) => !isAscending(transactions.map(({ position }) => position)),
  );
  if (odd >= 0) return `/blocks/${odd}/transactions is not in the order of the positions`;
  const hashes = blocks.flatMap(({ transactions }) => transactions.map(({ hash }) => hash));
  if (new Set(hashes).size < hashes.length) return '/blocks has a transaction twice';
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
