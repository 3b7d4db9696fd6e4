/**
 * The JSON Schema (draft 2020-12) of every event that the service sends, and the TypeScript types that follow
 * from the schemas. The service serves these schemas at `/schemas/`, and has its own types from here.
 *
 * - chain event: an event about one log of the token registry's contracts.
 * - pair: `data.transactionHash` and `data.logIndex`, which identify a chain event on its chain.
 * - retraction: says that a reorganisation of the chain removed a chain event. It has no pair.
 * - test event: tries a subscription of the API out. It is about nothing on the chain, and has no pair.
 *
 * An earlier version of the service may have stored an event that differs: `logIndex` within the block, or
 * the registry's address as the `subject` of an event of the registry.
 */

const ADDRESS = { type: 'string', pattern: '^0x[0-9a-f]{40}$' } as const;
const BLOCK_NUMBER = { type: 'integer', minimum: 0 } as const;
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
  description: 'Time of the block; of a test event, the time at which it was sent.',
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
  source: typeof REGISTRY_SOURCE | typeof SUBSCRIPTION_SOURCE,
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

const TOKEN_SUFFIXES = Object.keys(TOKEN_PAYLOADS) as TokenSuffix[];
const REGISTRY_SUFFIXES = Object.keys(REGISTRY_PAYLOADS) as RegistrySuffix[];

/** The types of chain events. */
export const CHAIN_EVENT_TYPES = [...TOKEN_SUFFIXES, ...REGISTRY_SUFFIXES].map(
  (suffix) => typeOf(suffix).const,
);

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
  [...TOKEN_SUFFIXES.map(tokenEvent), ...REGISTRY_SUFFIXES.map(registryEvent), RETRACTION, TEST_EVENT].map(
    (schema) => [schema.properties.type.const, schema] as const,
  ),
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

/** Any event that the service sends. */
export type ServiceEvent = ChainEvent | Retraction | TestEvent;
