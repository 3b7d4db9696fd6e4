import { z } from 'zod';
import { parseTokenId } from '../../registry/token-id-forms';
import { isPlace } from '../../outbox/deliveries';
import type { Operation } from './operation';
import {
  linkHeader,
  PAGE_LIMIT,
  pagePosition,
  COUNT,
  REGISTRY_NAME,
  TEXT,
  TIME,
  TOKEN_ID_HEX,
} from './values';
import { SUBSCRIPTION_PATH } from './subscriptions';

/** POST /subscriptions/{id}/test */
export const TEST_SUBSCRIPTION = {
  id: 'testSubscription',
  tag: 'Subscriptions',
  method: 'post',
  path: '/subscriptions/{id}/test',
  summary: 'Send a test event',
  description:
    'Sends one event of type `com.service.etr.test` at once, whatever the state and the filters are.',
  access: 'admin',
  pathParameters: SUBSCRIPTION_PATH,
  answers: {
    200: {
      description: "The sink's answer.",
      content: {
        mediaType: 'application/json',
        schema: z
          .strictObject({
            isDelivered: z.boolean(),
            eventId: TEXT,
            milliseconds: z.number(),
            status: z.int().nullable().meta({ description: 'Null if there was no answer.' }),
            error: TEXT.nullable(),
          })
          .meta({ id: 'TestOutcome' }),
      },
    },
  },
  errors: {
    400: ['SECRETS_KEY_MISSING'],
    404: ['SUBSCRIPTION_UNKNOWN'],
    409: ['SUBSCRIPTION_IN_SETTINGS', 'SIGNING_KEY_MISSING', 'SECRETS_KEY_WRONG'],
  },
} as const satisfies Operation;

/** The body of a redelivery. */
export const REDELIVERY_REQUEST = z
  .union([
    z.strictObject({ event: TEXT.meta({ description: 'The id of an event.' }) }),
    z.strictObject({ dead: z.literal(true).meta({ description: 'All dead letters.' }) }),
    z.strictObject({ fromBlock: COUNT.meta({ description: 'All events from this block on.' }) }),
  ])
  .meta({ id: 'RedeliveryRequest' });

/** POST /subscriptions/{id}/redeliver */
export const REDELIVER = {
  id: 'redeliver',
  tag: 'Subscriptions',
  method: 'post',
  path: '/subscriptions/{id}/redeliver',
  summary: 'Send events again',
  description:
    'Sends the events that the subscription selects now, and all its dead letters. Events keep their ids. ' +
    '`queued` is the number of events that will be sent; it is 0 for an event that does not exist. ' +
    'One event that waits ends the pause of its token: the attempts begin now, in order.',
  access: 'admin',
  pathParameters: SUBSCRIPTION_PATH,
  body: {
    kind: 'small',
    schema: REDELIVERY_REQUEST,
    examples: { 'dead letters': { dead: true }, 'from a block on': { fromBlock: 0 } },
  },
  answers: {
    202: {
      description: 'The numbers of events, for each registry.',
      content: {
        mediaType: 'application/json',
        schema: z
          .strictObject({
            registries: z.array(
              z.strictObject({ registry: REGISTRY_NAME, queued: COUNT, alreadyWaiting: COUNT }),
            ),
          })
          .meta({ id: 'Redelivery' }),
      },
    },
  },
  errors: { 400: ['REDELIVERY_INVALID'], 404: ['SUBSCRIPTION_UNKNOWN'] },
} as const satisfies Operation;

const UNDELIVERED_STATE = z.enum(['waiting', 'failed', 'dead'], {
  error: 'must be one of waiting, failed, dead',
});

const TOKEN = z
  .string()
  .transform((text, context) => {
    const tokenId = parsedToken(text);
    if (tokenId === undefined) {
      const message = 'must be a token id: decimal digits, or 64 hexadecimal digits';
      context.addIssue({ code: 'custom', message });
    }
    return tokenId ?? '';
  })
  .optional()
  .meta({ description: 'A token id: decimal digits, or 64 hexadecimal digits.' });

function parsedToken(text: string): string | undefined {
  try {
    return parseTokenId(text)?.toString();
  } catch {
    return undefined;
  }
}

const DELIVERY_PLACE = pagePosition(/^(\d{1,10})\.(\d{1,10})$/, (...parts) => {
  const [event = 0, channel = 0] = parts.map(Number);
  const place = { event, channel };
  return isPlace(place) ? place : undefined;
});

/** GET /subscriptions/{id}/deliveries */
export const LIST_DELIVERIES = {
  id: 'listDeliveries',
  tag: 'Subscriptions',
  method: 'get',
  path: '/subscriptions/{id}/deliveries',
  summary: 'List what is not delivered',
  access: 'admin',
  pathParameters: SUBSCRIPTION_PATH,
  query: z.object({
    state: UNDELIVERED_STATE.optional().meta({
      description:
        '`waiting`: no attempt has failed yet; `failed`: an attempt failed, and another follows; ' +
        '`dead`: none follows.',
    }),
    token: TOKEN,
    limit: PAGE_LIMIT,
    after: DELIVERY_PLACE,
  }),
  answers: {
    200: {
      description: 'A page of events that wait, failed or are dead, the newest first. It may be short.',
      content: {
        mediaType: 'application/json',
        schema: z
          .array(
            z.strictObject({
              id: TEXT,
              type: TEXT,
              registry: REGISTRY_NAME,
              tokenId: TEXT.meta({ description: 'In decimal digits; `0` for events of the registry.' }),
              state: UNDELIVERED_STATE,
              attempts: COUNT,
              nextAttemptAt: TIME.nullable().meta({
                description: 'Null for a dead letter, and if the event waits for another one of its token.',
              }),
              status: z.int().nullable().meta({ description: 'Status of the last answer.' }),
              error: TEXT.nullable().meta({ description: 'Error of the last attempt.' }),
            }),
          )
          .meta({ id: 'Deliveries' }),
      },
      headers: { Link: linkHeader('/subscriptions/default/deliveries', '12.1') },
    },
  },
  errors: { 404: ['SUBSCRIPTION_UNKNOWN'] },
} as const satisfies Operation;

/** Where an event is in a subscription. */
export const DELIVERY_STATE = z.enum(['waiting', 'failed', 'dead', 'delivered', 'orphaned']).meta({
  description:
    '`waiting`: not delivered yet, and no attempt has failed; `failed`: an attempt failed, and another ' +
    'follows; `dead`: given up, and a dead letter; `delivered`: the subscriber has it; `orphaned`: a ' +
    'reorganisation of the chain took its block away.',
});

const NAMES = {
  id: TEXT,
  type: TEXT,
  registry: REGISTRY_NAME,
  tokenId: TEXT.nullable().meta({ description: 'In decimal digits; null for events of the registry.' }),
  tokenIdHex: TOKEN_ID_HEX.nullable(),
};

const DELIVERY = {
  subscription: TEXT,
  state: DELIVERY_STATE,
  nextAttemptAt: TIME.nullable().meta({
    description: 'Null if it does not wait, or waits for another event of its token.',
  }),
  attempts: z
    .array(
      z
        .strictObject({
          attempt: COUNT,
          attemptedAt: TIME,
          status: z.int().nullable().meta({ description: 'Null if there was no answer.' }),
          error: TEXT.nullable().meta({ description: 'Null after a success.' }),
          milliseconds: z.number(),
        })
        .meta({ id: 'Attempt' }),
    )
    .meta({ description: 'The oldest first, successes too.' }),
};

/** GET /deliveries */
export const FIND_DELIVERIES = {
  id: 'findDeliveries',
  tag: 'Deliveries and events',
  method: 'get',
  path: '/deliveries',
  summary: 'List deliveries with every attempt',
  description:
    'Of all subscriptions and registries, those of the newest events first. A page looks at 2,000 events ' +
    'at most, so it may be short, or empty, although more follow.',
  access: 'admin',
  query: z.object({
    state: z
      .enum(['waiting', 'failed', 'dead', 'delivered'], {
        error: 'must be one of waiting, failed, dead, delivered',
      })
      .optional(),
    subscription: z
      .string()
      .max(64, { error: 'is no id of a subscription' })
      .optional()
      .meta({ description: 'The id of a subscription, or `default`.' }),
    token: TOKEN,
    event: TEXT.max(64, { error: 'is no id of an event' })
      .optional()
      .meta({ description: 'The id of an event.' }),
    limit: PAGE_LIMIT,
    after: DELIVERY_PLACE,
  }),
  answers: {
    200: {
      description: 'A page of deliveries.',
      content: {
        mediaType: 'application/json',
        schema: z
          .array(z.strictObject({ ...NAMES, ...DELIVERY }))
          .meta({ id: 'FoundDeliveries', description: 'Deliveries, each of one event to one subscription.' }),
      },
      headers: { Link: linkHeader('/deliveries', '28.3') },
    },
  },
} as const satisfies Operation;

/** GET /events */
export const LIST_EVENTS = {
  id: 'listEvents',
  tag: 'Deliveries and events',
  method: 'get',
  path: '/events',
  summary: 'List recorded events with their deliveries',
  description: 'The newest first, of all registries.',
  access: 'admin',
  query: z.object({
    token: TOKEN,
    limit: PAGE_LIMIT,
    after: pagePosition(/^(\d{1,10})$/, (event) => {
      const place = { event: Number(event), channel: 0 };
      return isPlace(place) ? place : undefined;
    }),
  }),
  answers: {
    200: {
      description: 'A page of events.',
      content: {
        mediaType: 'application/json',
        schema: z
          .array(z.strictObject({ ...NAMES, deliveries: z.array(z.strictObject(DELIVERY)) }))
          .meta({ id: 'Events' }),
      },
      headers: { Link: linkHeader('/events', '28') },
    },
  },
} as const satisfies Operation;

/** GET /events/{id} */
export const GET_EVENT = {
  id: 'getEvent',
  tag: 'Deliveries and events',
  method: 'get',
  path: '/events/{id}',
  summary: 'Show an event with its body and every attempt',
  access: 'admin',
  pathParameters: {
    id: { description: 'The `id` of the event.', example: '0b3a5a0e-0b7e-5b0e-8f4e-3f2e9b8f8a3c' },
  },
  answers: {
    200: {
      description: 'The event.',
      content: {
        mediaType: 'application/json',
        schema: z
          .strictObject({
            ...NAMES,
            body: TEXT.meta({ description: 'The bytes that are sent, as text.' }),
            deliveries: z.array(
              z.strictObject({
                ...DELIVERY,
                headers: z.record(TEXT, TEXT).meta({
                  description: 'As they would be sent now. Values that are secret are `•••`.',
                }),
              }),
            ),
          })
          .meta({ id: 'Event' }),
      },
    },
  },
  errors: { 404: ['EVENT_UNKNOWN'] },
} as const satisfies Operation;
