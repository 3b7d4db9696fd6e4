import { z } from 'zod';
import {
  DEFAULT_CONCURRENT_DELIVERIES,
  DEFAULT_TIMEOUT_MS,
  LONGEST_DELAY_MS,
  LONGEST_TIMEOUT_MS,
  MOST_CONCURRENT_DELIVERIES,
} from '../base/delivery-rules';
import { firstProblemOf, members, must } from '../base/json';
import { DEFAULT_RETRY_SCHEDULE } from '../config/followed-registries';
import { LONGEST_HEADER_VALUE, LONGEST_SINK, MOST_FILTERS, MOST_HEADERS, MOST_TYPES } from './bounds';
import { checkedSource, checkedTypes, checkSink } from './check-members';
import { SUBSCRIBABLE_TYPES } from '../events/event-types';
import { checkHeaders, mergeHeaders, newHeaders, type GivenHeaders } from './headers';
import { FILTER_SCHEMA, parseFilters } from './parse-filters';
import type { Headers, Subscription } from './subscription';
import { subscriptionError } from './subscription-error';

function wholeNumber(meaning: string, least: number, most: number, unit: string, ifAbsent: number) {
  const error = must(`a whole number of ${unit} from ${least} to ${most}`, `The default is ${ifAbsent}.`);
  const whole = z.int({ error }).min(least, { error }).max(most, { error });
  return whole.default(ifAbsent).meta({ description: `${meaning} In ${unit}.` });
}

function flag(meaning: string) {
  const error = must('true or false', meaning);
  return z.boolean({ error }).default(false).meta({ description: meaning });
}

const BLOCK = must('`now`, `beginning` or the number of a block', 'The default is `now`.');

const retrySchema = members('config/retry', {
  initialDelayMs: wholeNumber(
    'Pause after the first failure; it doubles with each further one.',
    1,
    LONGEST_DELAY_MS,
    'milliseconds',
    DEFAULT_RETRY_SCHEDULE.initialDelayMs,
  ),
  maxDelayMs: wholeNumber(
    'The longest pause.',
    1,
    LONGEST_DELAY_MS,
    'milliseconds',
    DEFAULT_RETRY_SCHEDULE.maxDelayMs,
  ),
  giveUpAfterMs: wholeNumber(
    'The event becomes a dead letter after this time, and after 50 attempts at least.',
    0,
    Number.MAX_SAFE_INTEGER,
    'milliseconds',
    DEFAULT_RETRY_SCHEDULE.giveUpAfterMs,
  ),
});

/** Options of the delivery. */
export const SUBSCRIPTION_CONFIG = members(
  'config',
  {
    startFrom: z
      .union([z.enum(['now', 'beginning']), z.int({ error: BLOCK }).nonnegative({ error: BLOCK })], {
        error: BLOCK,
      })
      .default('now')
      .meta({
        description:
          'The first event: `now`, `beginning`, or the number of a block. It counts at the creation only.',
      }),
    state: z
      .enum(['active', 'paused', 'gone'], { error: must('`active` or `paused`', 'The default is `active`.') })
      .default('active')
      .meta({
        description:
          '`paused`: events are kept and not sent. `gone`: the sink answered 410; events are kept until it ' +
          'is set to `active`; only the service sets it.',
      }),
    timeoutMs: wholeNumber(
      'Time that the sink has for its answer.',
      1,
      LONGEST_TIMEOUT_MS,
      'milliseconds',
      DEFAULT_TIMEOUT_MS,
    ),
    maxConcurrentDeliveries: wholeNumber(
      'Deliveries under way at once, of different tokens.',
      1,
      MOST_CONCURRENT_DELIVERIES,
      'deliveries',
      DEFAULT_CONCURRENT_DELIVERIES,
    ),
    retry: retrySchema.prefault({}),
    contentType: z
      .enum(['application/json', 'application/cloudevents+json'], {
        error: must(
          '`application/json` or `application/cloudevents+json`',
          'The default is `application/json`.',
        ),
      })
      .default('application/json')
      .meta({ description: 'Content type of the deliveries.' }),
    standardWebhooks: flag('True adds the headers of Standard Webhooks.'),
    retractions: flag('True sends an event for each event that a reorganisation took back.'),
  },
  { secret: 'is made by the service. Leave it out.' },
);

/** The body of `POST /subscriptions`. Its lists and headers are checked one by one afterwards. */
export const SUBSCRIPTION_REQUEST = members(
  'a subscription',
  {
    id: z.unknown().optional().meta({ description: 'Made by the service; ignored here.' }),
    source: z
      .string({ error: must('a string', 'Leave it out for all registries.') })
      .optional()
      .meta({
        description: 'The registry, `urn:service:<chain id>:<address>`. Absent: all registries.',
        pattern: '^urn:service:[1-9][0-9]*:0[xX][0-9a-fA-F]{40}$',
      }),
    types: z
      .array(z.unknown().meta({ type: 'string', enum: SUBSCRIBABLE_TYPES }), {
        error: must('an array', 'Leave it out for all types.'),
      })
      .optional()
      .meta({
        description: 'Types of events, each once. Absent: all types.',
        minItems: 1,
        maxItems: MOST_TYPES,
        uniqueItems: true,
      }),
    config: SUBSCRIPTION_CONFIG.prefault({}),
    filters: z
      .array(z.unknown().meta(FILTER_SCHEMA), { error: must('an array', 'Put each filter in it.') })
      .optional()
      .meta({ description: 'Conditions that all have to be true.', maxItems: MOST_FILTERS }),
    sink: z.string({ error: must('a string', 'Give the URL that events are sent to.') }).meta({
      description:
        'The URL that events are sent to: https, and http too on a local chain. Without user, password and ' +
        'fragment; not at a private address unless the operator allows it.',
      format: 'uri',
      maxLength: LONGEST_SINK,
      examples: ['https://subscriber.example/webhook'],
    }),
    protocol: z.literal('HTTP', { error: must('`HTTP`', 'No other protocol is supported.') }),
    protocolsettings: members('protocolsettings', {
      headers: z
        .unknown()
        .optional()
        .meta({
          description:
            'Headers that each delivery gets, by name. Answers show `***` instead of values, which are ' +
            'secrets. In a PUT, `***` keeps the stored value, and null removes a header.',
          type: 'object',
          maxProperties: MOST_HEADERS,
          additionalProperties: { type: ['string', 'null'], maxLength: LONGEST_HEADER_VALUE },
        }),
      method: z.literal('POST', { error: must('`POST`', 'No other method is supported.') }).default('POST'),
    }).prefault({}),
  },
  {
    sinkcredential:
      'is not supported. Send the credential in a header: protocolsettings/headers/authorization.',
  },
);

/**
 * Checks the body of `POST /subscriptions` and fills the defaults in. An `id` in the body is ignored.
 *
 * @param body from a parser that refuses `__proto__` as a name.
 * @throws RequestError SUBSCRIPTION_INVALID, with JSON pointer and remedy in the message.
 */
export function parseSubscription(body: unknown, id: string): Subscription {
  return realised(body, id, newHeaders, undefined);
}

/**
 * Checks the body of `PUT /subscriptions/{id}`. It replaces the stored subscription, except for the values of
 * headers that it masks or leaves out.
 *
 * @param stored with the values of its headers.
 * @throws RequestError SUBSCRIPTION_INVALID, with JSON pointer and remedy in the message.
 */
export function parseReplacement(body: unknown, stored: Subscription): Subscription {
  const merge = (put: GivenHeaders): Headers => mergeHeaders(stored.protocolsettings?.headers ?? {}, put);
  return realised(withoutHealth(body), stored.id, merge, stored.config.state);
}

/** The body without `failingSince`, which a GET adds: the answer of a GET can be sent as it is. */
function withoutHealth(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'failingSince'));
}

function realised(
  body: unknown,
  id: string,
  headersOf: (given: GivenHeaders) => Headers,
  storedState: string | undefined,
): Subscription {
  const { source, types, filters, sink, protocol, protocolsettings, config } = shapeOf(body);
  if (config.state === 'gone' && storedState !== 'gone') {
    const problem = 'is set to `gone` by the service, when the sink answers 410. Write `active` or `paused`.';
    throw subscriptionError(['config', 'state'], problem);
  }
  checkSink(sink);
  const headers = headersOf(checkHeaders(protocolsettings.headers ?? {}));
  return {
    id,
    ...(source !== undefined && { source: checkedSource(source) }),
    ...(types !== undefined && { types: checkedTypes(types, config.retractions) }),
    config,
    ...(filters !== undefined && { filters: parseFilters(filters) }),
    sink,
    protocol,
    protocolsettings: {
      ...(Object.keys(headers).length > 0 && { headers }),
      method: protocolsettings.method,
    },
  };
}

function shapeOf(body: unknown): z.infer<typeof SUBSCRIPTION_REQUEST> {
  const { data, error } = SUBSCRIPTION_REQUEST.safeParse(body);
  if (data !== undefined) return data;
  const { path, problem } = firstProblemOf(error);
  throw subscriptionError(path, problem);
}
