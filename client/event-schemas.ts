/**
 * The JSON Schema (draft 2020-12) of every event that the service sends, and the TypeScript types that follow
 * from the schemas. The service serves these schemas at `/schemas/`, and has its own types from here.
 *
 * - chain event: an event about one log of the token registry's contracts.
 * - pair: `data.transactionHash` and `data.logIndex`, which identify a chain event on its chain.
 * - retraction: says that a reorganisation of the chain removed a chain event. It has no pair.
 * - test event: tries a subscription of the API out. It is about nothing on the chain, and has no pair.
 * - operational event: tells the operator that a condition of the service began or ended. It has no pair.
 *
 * An earlier version of the service may have stored an event that differs: `logIndex` within the block, or
 * the registry's address as the `subject` of an event of the registry.
 */

const ADDRESS = { type: 'string', pattern: '^0x[0-9a-f]{40}$' } as const;
const BLOCK_NUMBER = { type: 'integer', minimum: 0 } as const;
const COUNT = { type: 'integer', minimum: 0 } as const;
const BOOLEAN = { type: 'boolean' } as const;
const LOG_INDEX = {
  type: 'integer',
  minimum: 0,
  description: 'Position of the log within its transaction, from 0.',
} as const;
/** The contracts take at most 120 bytes. */
const REMARK = {
  type: 'string',
  pattern: '^0x([0-9a-f]{2}){0,120}$',
  description: 'Hex of the bytes that the sender attached.',
} as const;
const TIME = {
  type: 'string',
  description:
    'Time of the block; of a test event, the time at which it was sent; of an operational event, the time ' +
    'at which the condition was noticed or ended.',
  format: 'date-time',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$',
} as const;
const TOKEN_ID = {
  type: 'string',
  pattern: '^(0|[1-9][0-9]{0,77})$',
  description: 'The id of the token, in decimal digits.',
} as const;
const TOKEN_ID_HEX = {
  type: 'string',
  pattern: '^[0-9a-f]{64}$',
  description: 'The id of the token, as in `credentialStatus.tokenId` of its credential.',
} as const;
const TRANSACTION_HASH = { type: 'string', pattern: '^0x[0-9a-f]{64}$' } as const;

const UUID_PATTERN = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const UUID = { type: 'string', format: 'uuid', pattern: `^${UUID_PATTERN}$` } as const;
const REGISTRY_SOURCE = { type: 'string', pattern: '^urn:service:[1-9][0-9]*:0x[0-9a-f]{40}$' } as const;
const SUBSCRIPTION_SOURCE = {
  type: 'string',
  pattern: `^urn:service:subscriptions:${UUID_PATTERN}$`,
} as const;

const OPERATIONS_SOURCE = { const: 'urn:service:operations' } as const;

/** Payloads of the events of a token, by event type without its prefix. */
const TOKEN_PAYLOADS = {
  minted: {
    tokenId: TOKEN_ID,
    owner: ADDRESS,
    holder: ADDRESS,
    escrowAddress: ADDRESS,
    remark: REMARK,
  },
  burned: { tokenId: TOKEN_ID },
  surrendered: { tokenId: TOKEN_ID, escrowAddress: ADDRESS },
  restored: { tokenId: TOKEN_ID, escrowAddress: ADDRESS },
  escrow_created: { escrowAddress: ADDRESS },
  token_received: {
    escrowAddress: ADDRESS,
    beneficiary: ADDRESS,
    holder: ADDRESS,
    isMinting: BOOLEAN,
    remark: REMARK,
  },
  nomination: { prevNominee: ADDRESS, nominee: ADDRESS, remark: REMARK },
  beneficiary_transfer: { fromBeneficiary: ADDRESS, toBeneficiary: ADDRESS, remark: REMARK },
  holder_transfer: { fromHolder: ADDRESS, toHolder: ADDRESS, remark: REMARK },
  return_to_issuer: { caller: ADDRESS, remark: REMARK },
  shred: { remark: REMARK },
  reject_transfer_beneficiary: { fromBeneficiary: ADDRESS, toBeneficiary: ADDRESS, remark: REMARK },
  reject_transfer_holder: { fromHolder: ADDRESS, toHolder: ADDRESS, remark: REMARK },
  reject_transfer_owners: {
    fromBeneficiary: ADDRESS,
    toBeneficiary: ADDRESS,
    fromHolder: ADDRESS,
    toHolder: ADDRESS,
    remark: REMARK,
  },
} as const;

/** Payloads of the events of the registry as a whole. */
const REGISTRY_PAYLOADS = {
  registry_paused: { account: ADDRESS, remark: REMARK },
  registry_unpaused: { account: ADDRESS, remark: REMARK },
} as const;

const TEXT = { type: 'string' } as const;
/** A subscription of the API, or `default`. */
const SUBSCRIPTION_NAME = { type: 'string', pattern: `^(default|${UUID_PATTERN})$` } as const;
const SINCE = { ...TIME, description: 'When the condition began.' } as const;
const CHAIN_ID = { type: 'integer', minimum: 1 } as const;

const OF_SUBSCRIPTION = { subscription: SUBSCRIPTION_NAME, since: SINCE } as const;
const OF_FEED = { chainId: CHAIN_ID, registryAddress: ADDRESS, since: SINCE } as const;
const OF_NODE = { node: { ...TEXT, description: 'Its URL without secrets.' }, since: SINCE } as const;
const OF_WALLET = { wallet: ADDRESS, since: SINCE } as const;
const OF_SIGNER = {
  key: { enum: ['wallet', 'issuer'] },
  signer: { ...TEXT, description: 'Its URL without secrets, or the module and its token.' },
  since: SINCE,
} as const;
/** The code of an error (docs/error-codes.md), and its message. */
const REASON = { code: TEXT, reason: TEXT } as const;

/** Meaning, required and optional members of `data` of operational events, by type without its prefix. */
const OPERATIONS = {
  subscription_failing: [
    'No delivery to the subscription has succeeded for SUBSCRIPTION_FAILING_AFTER_MINUTES.',
    OF_SUBSCRIPTION,
    {},
  ],
  subscription_gone: [
    'The sink answered 410: nothing is sent until the subscription is resumed.',
    OF_SUBSCRIPTION,
    {},
  ],
  subscription_paused: [
    'The subscription is paused, by a request or because its key has ended: events are kept and not sent.',
    OF_SUBSCRIPTION,
    {},
  ],
  subscription_recovered: ['A delivery has succeeded, or the subscription was resumed.', OF_SUBSCRIPTION, {}],
  dead_letter: [
    'The service has given the event `data.event` up. It is kept, and can be sent again.',
    {
      ...OF_SUBSCRIPTION,
      event: { ...UUID, description: 'The `id` of the event that was given up.' },
      eventType: TEXT,
      attempts: COUNT,
    },
    { status: { ...COUNT, description: 'Of the last answer. Absent if there was none.' }, error: TEXT },
  ],
  feed_stopped: ['The events of the registry are no longer read: the operator has to act.', OF_FEED, REASON],
  feed_behind: [
    'The events of the registry could not be read, or not fast enough, for a minute.',
    OF_FEED,
    REASON,
  ],
  feed_recovered: ['The events of the registry are read again, up to the newest final block.', OF_FEED, {}],
  reorganisation_too_deep: [
    'The chain dropped more blocks than the service keeps: the events of the registry are no longer read.',
    OF_FEED,
    REASON,
  ],
  node_away: ['One of several nodes is left out.', OF_NODE, { reason: TEXT }],
  node_differing: [
    'One of several nodes gave another answer than two others, and was not believed.',
    { ...OF_NODE, difference: TEXT },
    { block: TEXT },
  ],
  node_back: ['The node answers again, and has not differed for ten minutes.', OF_NODE, {}],
  wallet_low: ['The wallet can pay for fewer than 20 mints.', { ...OF_WALLET, mintsAffordable: COUNT }, {}],
  wallet_filled: ['The wallet can pay for at least 25 mints.', OF_WALLET, {}],
  signer_away: [
    'The remote signer, or the module, of a key does not sign.',
    { ...OF_SIGNER, code: TEXT },
    {},
  ],
  signer_back: ['The signer of the key signs again.', OF_SIGNER, {}],
  mint_deferred: ['A mint has not been mined for ten minutes.', OF_FEED, {}],
  mint_resumed: ['No mint has waited for ten minutes any more.', OF_FEED, {}],
  database_missing: [
    'The files of the database were removed: everything is lost when the service ends.',
    { since: SINCE },
    {},
  ],
  database_restored: ['The files of the database are in their place again.', { since: SINCE }, {}],
} as const;

/** The types of operational events without their prefix. */
export type OperationSuffix = keyof typeof OPERATIONS;

type TokenSuffix = keyof typeof TOKEN_PAYLOADS;
type RegistrySuffix = keyof typeof REGISTRY_PAYLOADS;

/** The types of chain events without their prefix. */
export type ChainEventSuffix = TokenSuffix | RegistrySuffix;

/** Schema of an object with these members, and no others. */
function object<const Members extends object, const Optional extends object = object>(
  members: Members,
  optional?: Optional,
) {
  return {
    type: 'object',
    properties: { ...members, ...optional } as Members & Optional,
    required: Object.keys(members) as (keyof Members)[],
    additionalProperties: false,
  } as const;
}

/** Schema of a CloudEvent of this type. */
function cloudEvent<const Suffix extends string, const Members extends object>(
  suffix: Suffix,
  source: typeof REGISTRY_SOURCE | typeof SUBSCRIPTION_SOURCE | typeof OPERATIONS_SOURCE,
  members: Members,
) {
  return object({
    specversion: { const: '1.0' },
    id: UUID,
    source,
    type: typeOf(suffix),
    datacontenttype: { const: 'application/json' },
    time: TIME,
    ...members,
  });
}

function typeOf<const Suffix extends string>(suffix: Suffix) {
  return { const: `com.service.etr.${suffix}` } as const;
}

/** The registry that an event is about. */
const REGISTRY = {
  chainKey: { type: 'string', pattern: '^[a-z0-9-]+$' },
  chainId: { type: 'integer', minimum: 1 },
  registryAddress: ADDRESS,
} as const;

/** The log that a chain event is about. */
const LOG = {
  blockNumber: BLOCK_NUMBER,
  transactionHash: TRANSACTION_HASH,
  logIndex: LOG_INDEX,
} as const;

function tokenEvent<Suffix extends TokenSuffix>(suffix: Suffix) {
  const payload = object(TOKEN_PAYLOADS[suffix]);
  return cloudEvent(suffix, REGISTRY_SOURCE, {
    subject: TOKEN_ID,
    data: object({ ...REGISTRY, tokenId: TOKEN_ID, tokenIdHex: TOKEN_ID_HEX, ...LOG, payload }),
  });
}

function registryEvent<Suffix extends RegistrySuffix>(suffix: Suffix) {
  const payload = object(REGISTRY_PAYLOADS[suffix]);
  return cloudEvent(suffix, REGISTRY_SOURCE, {
    subject: { const: '0' },
    data: object({ ...REGISTRY, tokenId: { const: '0' }, ...LOG, payload }),
  });
}

function operationalEvent<Suffix extends OperationSuffix>(suffix: Suffix) {
  const [, members, optional] = OPERATIONS[suffix];
  return cloudEvent(`operations.${suffix}`, OPERATIONS_SOURCE, {
    subject: { type: 'string', description: 'The thing that has, or had, the condition.' },
    data: object<(typeof OPERATIONS)[Suffix][1], (typeof OPERATIONS)[Suffix][2]>(members, optional),
  });
}

const TOKEN_SUFFIXES = Object.keys(TOKEN_PAYLOADS) as TokenSuffix[];
const REGISTRY_SUFFIXES = Object.keys(REGISTRY_PAYLOADS) as RegistrySuffix[];

/** The types of chain events. */
export const CHAIN_EVENT_TYPES = [...TOKEN_SUFFIXES, ...REGISTRY_SUFFIXES].map(
  (suffix) => typeOf(suffix).const,
);

const OPERATION_SUFFIXES = Object.keys(OPERATIONS) as OperationSuffix[];

/** The types of operational events. Only `types` of a subscription select them. */
export const OPERATIONAL_TYPES = OPERATION_SUFFIXES.map((suffix) => typeOf(`operations.${suffix}`).const);

/** The meanings of the operational events, by type without its prefix. */
export const OPERATIONAL_MEANINGS = OPERATION_SUFFIXES.map(
  (suffix) => [suffix, OPERATIONS[suffix][0]] as const,
);

/** The names of the members of `data` of an operational event. */
export function operationalMembersOf(suffix: OperationSuffix): readonly string[] {
  const [, members, optional] = OPERATIONS[suffix];
  return Object.keys({ ...members, ...optional });
}

/** The names of the members of `data.payload` of a chain event. */
export function payloadMembersOf(suffix: ChainEventSuffix): readonly string[] {
  return Object.keys({ ...TOKEN_PAYLOADS, ...REGISTRY_PAYLOADS }[suffix]);
}

const RETRACTION = cloudEvent('retracted', REGISTRY_SOURCE, {
  subject: TOKEN_ID,
  data: object(
    {
      ...REGISTRY,
      tokenId: TOKEN_ID,
      /** The `id` of the event that is retracted. */
      retracts: UUID,
      /**
       * The retracted event. The pair is inside this member, so that no receiver takes the retraction for the
       * event.
       */
      retracted: object({ type: { enum: CHAIN_EVENT_TYPES }, ...LOG }),
    },
    // As in the event: absent if the event is of the registry.
    { tokenIdHex: TOKEN_ID_HEX },
  ),
});

const TEST_EVENT = cloudEvent('test', SUBSCRIPTION_SOURCE, {
  data: object({ subscription: UUID, test: { const: true } }),
});

/** The schema of each event, by its type. */
export const EVENT_SCHEMAS: Readonly<Record<ServiceEvent['type'], object>> = Object.fromEntries(
  [
    ...TOKEN_SUFFIXES.map(tokenEvent),
    ...REGISTRY_SUFFIXES.map(registryEvent),
    RETRACTION,
    TEST_EVENT,
    ...OPERATION_SUFFIXES.map(operationalEvent),
  ].map((schema) => [schema.properties.type.const, schema] as const),
) as Record<ServiceEvent['type'], object>;

/** The values that a schema accepts. */
type ValueOf<Schema> = Schema extends { const: infer Value }
  ? Value
  : Schema extends { enum: (infer Value)[] }
    ? Value
    : Schema extends { properties: infer Members; required: (infer Required)[] }
      ? { [Name in keyof Members & Required]: ValueOf<Members[Name]> } & {
          [Name in Exclude<keyof Members, Required>]?: ValueOf<Members[Name]>;
        }
      : Schema extends { type: 'integer' }
        ? number
        : Schema extends { type: 'boolean' }
          ? boolean
          : string;

/** An event about a token, of any type. */
export type TokenEvent = {
  [Suffix in TokenSuffix]: ValueOf<ReturnType<typeof tokenEvent<Suffix>>>;
}[TokenSuffix];

/** An event about the registry as a whole. */
export type RegistryEvent = {
  [Suffix in RegistrySuffix]: ValueOf<ReturnType<typeof registryEvent<Suffix>>>;
}[RegistrySuffix];

/** An event about one log. */
export type ChainEvent = TokenEvent | RegistryEvent;

/** The payload of a type without its prefix. */
export type ChainEventPayload<Suffix extends ChainEventSuffix> = Extract<
  ChainEvent,
  { type: `com.service.etr.${Suffix}` }
>['data']['payload'];

/** An event that takes a chain event back. */
export type Retraction = ValueOf<typeof RETRACTION>;

/** An event that tries a subscription out. */
export type TestEvent = ValueOf<typeof TEST_EVENT>;

/** An event that tells the operator of a condition. */
export type OperationalEvent = {
  [Suffix in OperationSuffix]: ValueOf<ReturnType<typeof operationalEvent<Suffix>>>;
}[OperationSuffix];

/** Any event that the service sends. */
export type ServiceEvent = ChainEvent | Retraction | TestEvent | OperationalEvent;

/** Whether the event is about the chain: a chain event, or the retraction of one. */
export function isOfChain(event: ServiceEvent): event is ChainEvent | Retraction {
  return 'registryAddress' in event.data && event.source !== OPERATIONS_SOURCE.const;
}

/** Whether the event is of a type that this version knows. Its signature vouches for its members. */
export function isKnown(event: { type: string }): event is ServiceEvent {
  return Object.hasOwn(EVENT_SCHEMAS, event.type);
}
