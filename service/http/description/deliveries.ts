import * as z from 'zod';
import { tokenIdOrUndefined } from '../../registry/token-id-forms';
import { isPlace } from '../../outbox/deliveries';
import { DELIVERY, DELIVERY_STATE, EVENT_DETAILS, EVENT_NAMES, TEXT } from '../../answers/views';
import { chapter, json } from './operation';
import { page, PAGE_LIMIT, pagePosition } from './values';

/** The parameter `token`: it becomes the decimal digits. */
export const TOKEN = z
  .string()
  .transform((text, context) => {
    const tokenId = tokenIdOrUndefined(text)?.toString();
    if (tokenId === undefined) {
      const message = 'must be a token id: decimal digits, or 64 hexadecimal digits';
      context.addIssue({ code: 'custom', message });
    }
    return tokenId ?? '';
  })
  .optional()
  .describe('A token id: decimal digits, or 64 hexadecimal digits.');

/** Where a page of deliveries begins. */
export const DELIVERY_PLACE = pagePosition(/^(\d{1,10})\.(\d{1,10})$/, (...parts) => {
  const [event = 0, channel = 0] = parts.map(Number);
  const place = { event, channel };
  return isPlace(place) ? place : undefined;
});

/** Questions for deliveries and events. */
export const DELIVERIES = chapter('Deliveries and events', 'admin', {
  findDeliveries: {
    request: 'GET /deliveries',
    summary: 'List deliveries with every attempt',
    description:
      'Of all subscriptions and registries, those of the newest events first. A page looks at 2,000 events ' +
      'at most, so it may be short, or empty, although more follow.',
    query: z.object({
      state: DELIVERY_STATE.exclude(['orphaned'], {
        error: 'must be one of waiting, failed, dead, delivered',
      }).optional(),
      subscription: z
        .string()
        .max(64, { error: 'is no id of a subscription' })
        .optional()
        .describe('The id of a subscription, or `default`.'),
      token: TOKEN,
      event: TEXT.max(64, { error: 'is no id of an event' }).optional().describe('The id of an event.'),
      limit: PAGE_LIMIT,
      after: DELIVERY_PLACE,
    }),
    answers: {
      200: page(
        'A page of deliveries.',
        z.array(z.strictObject({ ...EVENT_NAMES, ...DELIVERY })).meta({
          id: 'FoundDeliveries',
          description: 'Deliveries, each of one event to one subscription.',
        }),
        '/deliveries?after=28.3',
      ),
    },
  },
  listEvents: {
    request: 'GET /events',
    summary: 'List recorded events with their deliveries',
    description: 'The newest first, of all registries.',
    query: z.object({
      token: TOKEN,
      limit: PAGE_LIMIT,
      after: pagePosition(/^(\d{1,10})$/, (event) => {
        const place = { event: Number(event), channel: 0 };
        return isPlace(place) ? place : undefined;
      }),
    }),
    answers: {
      200: page(
        'A page of events.',
        z
          .array(z.strictObject({ ...EVENT_NAMES, deliveries: z.array(z.strictObject(DELIVERY)) }))
          .meta({ id: 'Events' }),
        '/events?after=28',
      ),
    },
  },
  getEvent: {
    request: 'GET /events/{id}',
    summary: 'Show an event with its body and every attempt',
    pathParameters: {
      id: { description: 'The `id` of the event.', example: '0b3a5a0e-0b7e-5b0e-8f4e-3f2e9b8f8a3c' },
    },
    answers: {
      200: json('The event.', EVENT_DETAILS),
    },
    errors: { 404: ['EVENT_UNKNOWN'] },
  },
});
