import * as z from 'zod';
import {
  STATE_OF_DEFAULT,
  SUBSCRIPTION_CONFIG,
  SUBSCRIPTION_REQUEST,
} from '../../subscriptions/subscription';
import { FILTER } from '../../subscriptions/filter-schema';
import type { Place } from '../../outbox/deliveries';
import { TOKEN } from './deliveries';
import { chapter, json } from './operation';
import {
  component,
  COUNT,
  EVENT_ORIGIN,
  TEXT,
  TIME,
  UNDELIVERED,
  UNDELIVERED_STATE,
} from '../../answers/views';
import { located, page, PAGE_LIMIT, position } from './values';

/** The parameter of the paths of one subscription. */
const SUBSCRIPTION_PATH = {
  id: {
    description: 'The id of a subscription, or `default`: the webhook of WEBHOOK_URL.',
    example: 'default',
  },
};

/** Members of an answer that a replacement may have, and that change nothing. */
const SHOWN = {
  scope: z
    .array(FILTER)
    .optional()
    .describe('The scope of the key that it belongs to: rules that are true for each of its events.'),
  failingSince: TIME.optional().describe('No delivery has succeeded since this time.'),
};

const SUBSCRIPTION = SUBSCRIPTION_REQUEST.extend({
  id: TEXT.describe('A UUID, or `default`.'),
  config: SUBSCRIPTION_CONFIG.extend({
    secret: TEXT.optional().describe(
      'The secret of Standard Webhooks, `whsec_…`. Shown once, in the answer that made it.',
    ),
    sinks: z
      .record(TEXT, TEXT)
      .optional()
      .describe('Only in `default`: the sinks of registries that have a webhook of their own, by source.'),
  }),
  ...SHOWN,
}).meta({ id: 'Subscription' });

const FLAG = { error: 'must be true or false' };

/** The parameters of a DELETE. */
export const FORCE_QUERY = z.object({
  force: z.enum(['true', 'false'], FLAG).default('false').describe('Also if undelivered events wait.'),
});

const TO_SINK = { sink: 'https://subscriber.example/webhook', protocol: 'HTTP' };
const TRANSFERS = { filters: [{ suffix: { type: '_transfer' } }], ...TO_SINK };

/** The body of a redelivery. */
export const REDELIVERY_REQUEST = z
  .union([
    z.strictObject({ event: TEXT.describe('The id of an event.') }),
    z.strictObject({ dead: z.literal(true).describe('All dead letters.') }),
    z.strictObject({ fromBlock: COUNT.describe('All events from this block on.') }),
  ])
  .meta({ id: 'RedeliveryRequest' });

/** Operations of subscriptions. */
export const SUBSCRIPTIONS = chapter('Subscriptions', 'admin', {
  createSubscription: {
    request: 'POST /subscriptions',
    scope: 'subscribe',
    summary: 'Make a subscription',
    body: {
      kind: 'small',
      schema: SUBSCRIPTION_REQUEST.meta({ id: 'SubscriptionRequest' }),
      examples: {
        everything: TO_SINK,
        transfers: TRANSFERS,
        'one token, from its first event': {
          filters: [{ tokens: ['7f895c897f40831f5a36f4b1bd18f6ed5faa4d74dbb16a0a8f8b3dc690f845ad'] }],
          ...TO_SINK,
          config: { startFrom: 'beginning', contentType: 'application/cloudevents+json' },
        },
      },
    },
    answers: {
      201: json('The subscription with all its defaults.', SUBSCRIPTION, {
        headers: located('/subscriptions/0192f3c8-5a00-7000-8000-000000000001'),
      }),
    },
    errors: {
      400: ['SUBSCRIPTION_INVALID', 'SINK_NOT_ALLOWED', 'SECRETS_KEY_MISSING'],
      409: ['SIGNING_KEY_MISSING', 'SUBSCRIPTIONS_TOO_MANY'],
    },
  },
  listSubscriptions: {
    request: 'GET /subscriptions',
    scope: 'subscribe',
    summary: 'List the subscriptions',
    query: z.object({ limit: PAGE_LIMIT, after: position<string>() }),
    answers: {
      200: page(
        'A page. `default` is the first, if there is a webhook in the settings.',
        z.array(SUBSCRIPTION).meta({ id: 'Subscriptions' }),
        '/subscriptions?after=2Zb…',
      ),
    },
  },
  getSubscription: {
    request: 'GET /subscriptions/{id}',
    scope: 'subscribe',
    summary: 'Show a subscription',
    pathParameters: SUBSCRIPTION_PATH,
    answers: { 200: json('The subscription. Values of headers are masked.', SUBSCRIPTION) },
    errors: { 404: ['SUBSCRIPTION_UNKNOWN'] },
  },
  replaceSubscription: {
    request: 'PUT /subscriptions/{id}',
    scope: 'subscribe',
    summary: 'Replace, pause or resume a subscription',
    pathParameters: SUBSCRIPTION_PATH,
    body: {
      kind: 'small',
      schema: z
        .union([SUBSCRIPTION_REQUEST.extend(SHOWN), STATE_OF_DEFAULT])
        .meta({ id: 'SubscriptionReplacement' }),
      examples: { paused: { ...TRANSFERS, config: { state: 'paused' } } },
    },
    answers: { 200: json('The subscription after the replacement.', SUBSCRIPTION) },
    errors: {
      400: ['SUBSCRIPTION_INVALID', 'SINK_NOT_ALLOWED', 'SECRETS_KEY_MISSING'],
      404: ['SUBSCRIPTION_UNKNOWN'],
      409: ['SIGNING_KEY_MISSING', 'SUBSCRIPTION_IN_SETTINGS'],
    },
  },
  deleteSubscription: {
    request: 'DELETE /subscriptions/{id}',
    scope: 'subscribe',
    summary: 'Delete a subscription',
    pathParameters: SUBSCRIPTION_PATH,
    query: FORCE_QUERY,
    answers: {
      200: json('The deleted subscription.', SUBSCRIPTION, {
        headers: { 'X-Undelivered': { description: 'Number of events deleted with it.', example: '0' } },
      }),
    },
    errors: { 404: ['SUBSCRIPTION_UNKNOWN'], 409: ['SUBSCRIPTION_UNDELIVERED', 'SUBSCRIPTION_IN_SETTINGS'] },
  },
  testSubscription: {
    request: 'POST /subscriptions/{id}/test',
    scope: 'subscribe',
    summary: 'Send a test event',
    description:
      'Sends one event of type `com.service.etr.test` at once, whatever the state and the filters are.',
    pathParameters: SUBSCRIPTION_PATH,
    answers: {
      200: json(
        "The sink's answer.",
        component('TestOutcome', {
          isDelivered: z.boolean(),
          eventId: TEXT,
          milliseconds: z.number(),
          status: z.int().nullable().describe('Null if there was no answer.'),
          error: TEXT.nullable(),
        }),
      ),
    },
    errors: {
      400: ['SECRETS_KEY_MISSING'],
      404: ['SUBSCRIPTION_UNKNOWN'],
      409: ['SUBSCRIPTION_IN_SETTINGS', 'SIGNING_KEY_MISSING', 'SECRETS_KEY_WRONG'],
    },
  },
  redeliver: {
    request: 'POST /subscriptions/{id}/redeliver',
    scope: 'subscribe',
    summary: 'Send events again',
    description:
      'Sends the events that the subscription selects now, and all its dead letters. Events keep their ' +
      'ids. `queued` is the number of events that will be sent; it is 0 for an event that does not exist. ' +
      'One event that waits ends the pause of its token: the attempts begin now, in order.',
    pathParameters: SUBSCRIPTION_PATH,
    body: {
      kind: 'small',
      schema: REDELIVERY_REQUEST,
      examples: { 'dead letters': { dead: true }, 'from a block on': { fromBlock: 0 } },
    },
    answers: {
      202: json(
        'The numbers of events, for each registry.',
        component('Redelivery', {
          registries: z.array(
            z.strictObject({ registry: EVENT_ORIGIN, queued: COUNT, alreadyWaiting: COUNT }),
          ),
        }),
      ),
    },
    errors: { 400: ['REDELIVERY_INVALID'], 404: ['SUBSCRIPTION_UNKNOWN'] },
  },
  listDeliveries: {
    request: 'GET /subscriptions/{id}/deliveries',
    scope: 'subscribe',
    summary: 'List what is not delivered',
    pathParameters: SUBSCRIPTION_PATH,
    query: z.object({
      state: UNDELIVERED_STATE.optional().describe(
        '`waiting`: no attempt has failed yet; `failed`: an attempt failed, and another follows; ' +
          '`dead`: none follows.',
      ),
      token: TOKEN,
      limit: PAGE_LIMIT,
      after: position<Place>(),
    }),
    answers: {
      200: page(
        'A page of events that wait, failed or are dead, the newest first. It may be short.',
        z.array(UNDELIVERED).meta({ id: 'Deliveries' }),
        '/subscriptions/default/deliveries?after=2Zb…',
      ),
    },
    errors: { 404: ['SUBSCRIPTION_UNKNOWN'] },
  },
});
