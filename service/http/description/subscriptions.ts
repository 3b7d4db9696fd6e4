import { z } from 'zod';
import { SUBSCRIPTION_CONFIG, SUBSCRIPTION_REQUEST } from '../../subscriptions/subscription';
import type { Answer, Operation } from './operation';
import { AFTER, linkHeader, PAGE_LIMIT, TEXT, TIME } from './values';

/** The parameter of the paths of one subscription. */
export const SUBSCRIPTION_PATH = {
  id: {
    description: 'The id of a subscription, or `default`: the webhook of WEBHOOK_URL.',
    example: 'default',
  },
};

const SUBSCRIPTION = SUBSCRIPTION_REQUEST.extend({
  id: TEXT.meta({ description: 'A UUID, or `default`.' }),
  config: SUBSCRIPTION_CONFIG.extend({
    secret: TEXT.optional().meta({
      description: 'The secret of Standard Webhooks, `whsec_…`. Shown once, in the answer that made it.',
    }),
    sinks: z.record(TEXT, TEXT).optional().meta({
      description: 'Only in `default`: the sinks of registries that have a webhook of their own, by source.',
    }),
  }),
  failingSince: TIME.optional().meta({ description: 'No delivery has succeeded since this time.' }),
}).meta({ id: 'Subscription' });

/** The body of PUT /subscriptions/default. */
export const STATE_OF_DEFAULT = z
  .strictObject({ config: z.strictObject({ state: z.enum(['active', 'paused']) }) })
  .meta({ description: 'For `default` alone, whose other members come from the settings.' });

const FLAG = { error: 'must be true or false' };

/** The parameters of a DELETE. */
export const FORCE_QUERY = z.object({
  force: z
    .enum(['true', 'false'], FLAG)
    .default('false')
    .meta({ description: 'Also if undelivered events wait.' }),
});

function answer(description: string, more: Omit<Answer, 'description' | 'content'> = {}): Answer {
  return { description, content: { mediaType: 'application/json', schema: SUBSCRIPTION }, ...more };
}

const TRANSFERS = {
  filters: [{ suffix: { type: '_transfer' } }],
  sink: 'https://subscriber.example/webhook',
  protocol: 'HTTP',
};

/** GET /subscriptions */
export const LIST_SUBSCRIPTIONS = {
  id: 'listSubscriptions',
  tag: 'Subscriptions',
  method: 'get',
  path: '/subscriptions',
  summary: 'List the subscriptions',
  access: 'admin',
  query: z.object({ limit: PAGE_LIMIT, after: TEXT.optional().meta({ description: AFTER }) }),
  answers: {
    200: {
      description: 'A page. `default` is the first, if there is a webhook in the settings.',
      content: {
        mediaType: 'application/json',
        schema: z.array(SUBSCRIPTION).meta({ id: 'Subscriptions' }),
      },
      headers: {
        Link: linkHeader('/subscriptions', '0192f3c8-5a00-7000-8000-000000000001'),
      },
    },
  },
} as const satisfies Operation;

/** POST /subscriptions */
export const CREATE_SUBSCRIPTION = {
  id: 'createSubscription',
  tag: 'Subscriptions',
  method: 'post',
  path: '/subscriptions',
  summary: 'Make a subscription',
  description: `Names and values follow the CloudEvents Subscriptions API, a draft of the CNCF. At most 10,000
subscriptions. Filters name the attributes \`id\`, \`source\`, \`type\`, \`subject\`, \`time\`,
\`specversion\` and \`datacontenttype\`.`,
  access: 'admin',
  body: {
    kind: 'small',
    schema: SUBSCRIPTION_REQUEST.meta({ id: 'SubscriptionRequest' }),
    examples: {
      everything: { sink: 'https://subscriber.example/webhook', protocol: 'HTTP' },
      transfers: TRANSFERS,
      'one token, from its first event': {
        filters: [{ tokens: ['7f895c897f40831f5a36f4b1bd18f6ed5faa4d74dbb16a0a8f8b3dc690f845ad'] }],
        sink: 'https://subscriber.example/webhook',
        protocol: 'HTTP',
        config: { startFrom: 'beginning', contentType: 'application/cloudevents+json' },
      },
    },
  },
  answers: {
    201: answer('The subscription with all its defaults.', {
      headers: {
        Location: {
          description: 'Its path.',
          example: '/subscriptions/0192f3c8-5a00-7000-8000-000000000001',
        },
      },
    }),
  },
  errors: {
    400: ['SUBSCRIPTION_INVALID', 'SINK_NOT_ALLOWED', 'SECRETS_KEY_MISSING'],
    409: ['SIGNING_KEY_MISSING', 'SUBSCRIPTIONS_TOO_MANY'],
  },
} as const satisfies Operation;

/** GET /subscriptions/{id} */
export const GET_SUBSCRIPTION = {
  id: 'getSubscription',
  tag: 'Subscriptions',
  method: 'get',
  path: '/subscriptions/{id}',
  summary: 'Show a subscription',
  access: 'admin',
  pathParameters: SUBSCRIPTION_PATH,
  answers: { 200: answer('The subscription. Values of headers are masked.') },
  errors: { 404: ['SUBSCRIPTION_UNKNOWN'] },
} as const satisfies Operation;

/** PUT /subscriptions/{id} */
export const REPLACE_SUBSCRIPTION = {
  id: 'replaceSubscription',
  tag: 'Subscriptions',
  method: 'put',
  path: '/subscriptions/{id}',
  summary: 'Replace, pause or resume a subscription',
  description: `Send the answer of a GET, with your changes. A member that is left out gets its default;
only the values of headers, and \`startFrom\`, are kept. Every event that is recorded after the answer follows
the new source, types, filters and state.`,
  access: 'admin',
  pathParameters: SUBSCRIPTION_PATH,
  body: {
    kind: 'small',
    schema: z.union([SUBSCRIPTION_REQUEST.extend({ failingSince: TEXT.optional() }), STATE_OF_DEFAULT]).meta({
      id: 'SubscriptionReplacement',
    }),
    examples: { paused: { ...TRANSFERS, config: { state: 'paused' } } },
  },
  answers: { 200: answer('The subscription after the replacement.') },
  errors: {
    400: ['SUBSCRIPTION_INVALID', 'SINK_NOT_ALLOWED', 'SECRETS_KEY_MISSING'],
    404: ['SUBSCRIPTION_UNKNOWN'],
    409: ['SIGNING_KEY_MISSING', 'SUBSCRIPTION_IN_SETTINGS'],
  },
} as const satisfies Operation;

/** DELETE /subscriptions/{id} */
export const DELETE_SUBSCRIPTION = {
  id: 'deleteSubscription',
  tag: 'Subscriptions',
  method: 'delete',
  path: '/subscriptions/{id}',
  summary: 'Delete a subscription',
  access: 'admin',
  pathParameters: SUBSCRIPTION_PATH,
  query: FORCE_QUERY,
  answers: {
    200: answer('The deleted subscription.', {
      headers: { 'X-Undelivered': { description: 'Number of events deleted with it.', example: '0' } },
    }),
  },
  errors: { 404: ['SUBSCRIPTION_UNKNOWN'], 409: ['SUBSCRIPTION_UNDELIVERED', 'SUBSCRIPTION_IN_SETTINGS'] },
} as const satisfies Operation;
