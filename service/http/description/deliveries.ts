import { z } from 'zod';
import { parseTokenId } from '../../registry/token-id-forms';
import { isPlace } from '../../outbox/deliveries';
import type { Operation } from './operation';
import { linkHeader, PAGE_LIMIT, pagePosition } from './paging';
import { SUBSCRIPTION_PATH } from './subscriptions';
import { COUNT, REGISTRY_NAME, TEXT, TIME } from './values';

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

const DELIVERY_STATE = z.enum(['waiting', 'failed', 'dead'], {
  error: 'must be one of waiting, failed, dead',
});

const token = z
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
    state: DELIVERY_STATE.optional().meta({
      description:
        '`waiting`: no attempt has failed yet; `failed`: an attempt failed, and another follows; ' +
        '`dead`: none follows.',
    }),
    token,
    limit: PAGE_LIMIT,
    after: pagePosition(/^(\d{1,10})\.(\d{1,10})$/, (...parts) => {
      const [event = 0, channel = 0] = parts.map(Number);
      const place = { event, channel };
      return isPlace(place) ? place : undefined;
    }),
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
              state: DELIVERY_STATE,
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
