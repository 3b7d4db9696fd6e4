import * as z from 'zod';
import { found, members, must } from './json';

/**
 * The options of deliveries that every subscription has: those of the API, and `default`, which WEBHOOK_URL
 * and `webhook` of service.config.json define. Times are in milliseconds.
 */

/** A delivery is leased for more than twice this time, even if its process has died. */
const LONGEST_TIMEOUT_MS = 120_000;
const MOST_CONCURRENT_DELIVERIES = 1_000;
/** The longest delay of a timer. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

const MINUTE_MS = 60_000;

export const MOST_HEADERS = 20;
export const LONGEST_HEADER_NAME = 256;
export const LONGEST_HEADER_VALUE = 4_096;

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;

/** Printable ASCII and tabs. */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;

/** Headers of deliveries, Standard Webhooks, traces and connections: no subscription sets them. */
export const SET_BY_SERVICE: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'traceparent',
  'tracestate',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
  'x-service-key-id',
  'x-service-signature',
]);

export const NOTHING_TO_REMOVE = 'is null, and there is no header to remove. Leave it out.';

function wholeNumber(meaning: string, least: number, most: number, ifAbsent: number, unit = 'milliseconds') {
  const error = must(`a whole number of ${unit} from ${least} to ${most}`, `The default is ${ifAbsent}.`);
  const whole = z.int({ error }).min(least, { error }).max(most, { error });
  return whole.default(ifAbsent).describe(`${meaning} In ${unit}.`);
}

const RETRY_OPTIONS = {
  initialDelayMs: wholeNumber(
    'Pause after the first failure; it doubles with each further one.',
    1,
    LONGEST_DELAY_MS,
    1_000,
  ),
  maxDelayMs: wholeNumber('The longest pause.', 1, LONGEST_DELAY_MS, 15 * MINUTE_MS),
  giveUpAfterMs: wholeNumber(
    'The event becomes a dead letter after this time, and after 50 attempts at least.',
    0,
    Number.MAX_SAFE_INTEGER,
    3 * 24 * 60 * MINUTE_MS,
  ),
};

/** Bounds of the exponential backoff (docs/specification.md 8.3). */
export type RetrySchedule = z.output<z.ZodObject<typeof RETRY_OPTIONS>>;

export const DELIVERY_OPTIONS = {
  timeoutMs: wholeNumber('Time that the sink has for its answer.', 1, LONGEST_TIMEOUT_MS, 15_000),
  maxConcurrentDeliveries: wholeNumber(
    'Deliveries of a registry under way at once, of different tokens.',
    1,
    MOST_CONCURRENT_DELIVERIES,
    16,
    'deliveries',
  ),
  retry: members('config/retry', RETRY_OPTIONS).prefault({}),
};

/** Realised options: with a value for each that has a default. */
export type DeliveryOptions = z.output<z.ZodObject<typeof DELIVERY_OPTIONS>>;

/** The same options where none has a default, because others may complete them. */
export const PARTIAL_DELIVERY_OPTIONS = {
  timeoutMs: DELIVERY_OPTIONS.timeoutMs.unwrap().optional(),
  maxConcurrentDeliveries: DELIVERY_OPTIONS.maxConcurrentDeliveries.unwrap().optional(),
  retry: members('retry', {
    initialDelayMs: RETRY_OPTIONS.initialDelayMs.unwrap().optional(),
    maxDelayMs: RETRY_OPTIONS.maxDelayMs.unwrap().optional(),
    giveUpAfterMs: RETRY_OPTIONS.giveUpAfterMs.unwrap().optional(),
  }).optional(),
};

/** Completes options with the defaults. */
export function realisedOptions(
  given: z.output<z.ZodObject<typeof PARTIAL_DELIVERY_OPTIONS>>,
): DeliveryOptions {
  return z.object(DELIVERY_OPTIONS).parse(given);
}

/**
 * The headers of every delivery, by name: in lower case once they are checked. Null removes a header. Their
 * values are secrets, so an error shows none. It does not show a wrong name either, which may be a whole
 * header with its key.
 */
export const CHANGED_HEADERS = z.unknown().transform((given, context): Record<string, string | null> => {
  const checked = new Map<string, string | null>();
  let problems = 0;
  const refuse = (message: string, ...path: string[]): void => {
    problems += 1;
    context.addIssue({ code: 'custom', message, path });
  };
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    refuse(`must be an object, ${found(given)}. Give the names of headers and their values.`);
  else
    for (const [index, [written, value]] of Object.entries<unknown>({ ...given }).entries()) {
      if (problems === MOST_HEADERS) break;
      const name = written.toLowerCase();
      const which = `header ${index + 1}`;
      if (written.length > LONGEST_HEADER_NAME)
        refuse(`has a name of more than ${LONGEST_HEADER_NAME} characters: ${which}. Shorten it.`);
      else if (!HEADER_NAME.test(written))
        refuse(`has a name that is not a header name: ${which}. Correct it.`);
      // A subscription may have one from before it became a header of the service.
      else if (value !== null && SET_BY_SERVICE.has(name))
        refuse('is set by the service itself. Leave it out.', written);
      else if (checked.has(name))
        refuse('is there twice: the case of letters makes no difference. Leave one out.', written);
      else if (value === null) checked.set(name, value);
      else if (typeof value !== 'string')
        refuse(`must be a string, ${found(value)}. Write it in double quotes.`, written);
      else if (value.length > LONGEST_HEADER_VALUE)
        refuse(`has more than ${LONGEST_HEADER_VALUE} characters. Shorten it.`, written);
      else if (!HEADER_VALUE.test(value))
        refuse('is not a header value. Use printable ASCII characters only.', written);
      else checked.set(name, value);
    }
  return Object.fromEntries(checked);
});

/** Headers where there is none to remove. */
export const HEADERS = CHANGED_HEADERS.transform((given, context): Record<string, string> => {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given))
    if (value !== null) headers[name] = value;
    else context.addIssue({ code: 'custom', message: NOTHING_TO_REMOVE, path: [name] });
  return headers;
});
