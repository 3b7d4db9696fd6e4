import * as z from 'zod';
import { parsed } from '../../config/setting-types';
import { parseTokenId } from '../../registry/token-id-forms';
import type { Place } from '../../outbox/deliveries';
import { DELIVERY, DELIVERY_STATE, EVENT_DETAILS, EVENT_NAMES, TEXT } from '../../answers/views';
import { DIALECTS } from '../../subscriptions/filter-schema';
import { SUBSCRIPTION_REQUEST } from '../../subscriptions/subscription';
import { chapter, json } from './operation';
import { page, PAGE_LIMIT, position, wholeNumber } from './values';

/** The parameter `token`: it becomes the decimal digits. */
export const TOKEN = parsed(
  (text) => parseTokenId(text)?.toString(),
  'must be a token id: decimal digits, or 64 hexadecimal digits',
)
  .optional()
  .describe('A token id: decimal digits, or 64 hexadecimal digits.');

/** The id of a subscription. */
const SUBSCRIPTION_ID = z.string().max(64, { error: 'is no id of a subscription' }).optional();

/** Values with commas between them, as the list that a filter has. */
function listed<List extends z.ZodType<readonly string[] | undefined>>(list: List, description: string) {
  return z
    .string()
    .transform((text) => text.split(','))
    .pipe(list as unknown as z.ZodType<readonly string[], string[]>)
    .optional()
    .describe(`${description} Several have commas between them.`);
}

const { source, types } = SUBSCRIPTION_REQUEST.shape;
const OF_RULES = ['source', 'types', 'tokens', 'parties'] as const;

/** Selects the events to fetch. */
const FETCHED = z
  .object({
    after: z
      .string()
      .max(16_384, { error: 'is no cursor' })
      .optional()
      .describe(
        'The `cursor` of an answer, or of an event in it. Absent: the oldest events that are kept. `now`: ' +
          'only events that are recorded from now on.',
      ),
    limit: wholeNumber({ least: 1, most: 1_000, ifAbsent: 100 }).describe(
      'The largest number of events in the answer; 100 if absent.',
    ),
    wait: wholeNumber({ least: 0, most: 30, ifAbsent: 0 }).describe(
      'Seconds to wait for an event if there is none yet; 0 if absent.',
    ),
    subscription: SUBSCRIPTION_ID.describe(
      'The id of a subscription, or `default`: its rules select the events.',
    ),
    source: source.describe('The registry, `urn:service:<chain id>:<address>`. Absent: all registries.'),
    types: listed(
      types,
      'A type of events. Absent: all types of events of registries. Operational events are recorded only ' +
        'if a subscription names their types.',
    ),
    tokens: listed(DIALECTS.tokens, 'A token id.'),
    parties: listed(DIALECTS.parties, 'An address in `data.payload`.'),
    retractions: z
      .enum(['true', 'false'], { error: 'must be true or false' })
      .transform((text) => text === 'true')
      .optional()
      .describe('Whether to get retractions. Absent: as the subscription says, otherwise false.'),
  })
  .superRefine((query, context) => {
    const besides = OF_RULES.find((name) => query[name] !== undefined);
    if (query.subscription === undefined || besides === undefined) return;
    const message = 'is one of the rules, which subscription gives already: leave one of both out';
    context.addIssue({ code: 'custom', message, path: [besides] });
  });

/** Questions for deliveries and events. */
export const DELIVERIES = chapter('Deliveries and events', 'admin', {
  findDeliveries: {
    request: 'GET /deliveries',
    scope: 'read',
    summary: 'List deliveries with every attempt',
    description:
      'Of all subscriptions and registries that the caller sees, those of the newest events first. A page ' +
      'looks at 2,000 events at most, so it may be short, or empty, although more follow.',
    query: z.object({
      state: DELIVERY_STATE.exclude(['orphaned'], {
        error: 'must be one of waiting, failed, dead, delivered',
      }).optional(),
      subscription: SUBSCRIPTION_ID.describe('The id of a subscription, or `default`.'),
      token: TOKEN,
      event: TEXT.max(64, { error: 'is no id of an event' }).optional().describe('The id of an event.'),
      limit: PAGE_LIMIT,
      after: position<Place>(),
    }),
    answers: {
      200: page(
        'A page of deliveries.',
        z.array(z.strictObject({ ...EVENT_NAMES, ...DELIVERY })).meta({
          id: 'FoundDeliveries',
          description: 'Deliveries, each of one event to one subscription.',
        }),
        '/deliveries?after=2Zb…',
      ),
    },
  },
  listEvents: {
    request: 'GET /events',
    scope: 'read',
    summary: 'List recorded events with their deliveries',
    description:
      'The newest first, of all registries. A key with a scope sees those that its subscriptions got or get.',
    query: z.object({
      token: TOKEN,
      limit: PAGE_LIMIT,
      after: position<number>(),
    }),
    answers: {
      200: page(
        'A page of events.',
        z
          .array(z.strictObject({ ...EVENT_NAMES, deliveries: z.array(z.strictObject(DELIVERY)) }))
          .meta({ id: 'Events' }),
        '/events?after=2Zb…',
      ),
    },
  },
  streamEvents: {
    request: 'GET /events/stream',
    scope: 'read',
    summary: 'Fetch recorded events, the oldest first',
    query: FETCHED,
    answers: {
      200: json(
        'Events of each registry in the order in which they were recorded, and the cursor to go on with.',
        z
          .strictObject({
            events: z.array(
              z.strictObject({
                body: z.string().describe('The body that a webhook would have: a CloudEvent.'),
                signature: z
                  .string()
                  .describe('As in `X-Service-Signature`: of the bytes of `body` in UTF-8, made now.'),
                keyId: z.string().describe('As in `X-Service-Key-Id`.'),
                contentType: z.string().describe('The content type that a webhook would have.'),
                cursor: TEXT.describe('Goes on after this event.'),
              }),
            ),
            cursor: TEXT.describe('Goes on after all that was looked at, also if there is no event.'),
          })
          .meta({ id: 'FetchedEvents' }),
      ),
    },
    errors: {
      400: ['CURSOR_INVALID'],
      404: ['SUBSCRIPTION_UNKNOWN'],
      409: ['SIGNING_KEY_MISSING'],
      410: ['CURSOR_EXPIRED'],
      429: ['WAITS_TOO_MANY'],
      503: ['BUSY'],
    },
  },
  getEvent: {
    request: 'GET /events/{id}',
    scope: 'read',
    summary: 'Show an event with its body and every attempt',
    pathParameters: {
      id: { description: 'The `id` of the event.', example: '0b3a5a0e-0b7e-5b0e-8f4e-3f2e9b8f8a3c' },
    },
    answers: { 200: json('The event.', EVENT_DETAILS) },
    errors: { 404: ['EVENT_UNKNOWN'] },
  },
});
