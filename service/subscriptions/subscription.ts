import * as z from 'zod';
import { checksummed } from '../base/checksums';
import {
  CHANGED_HEADERS,
  DELIVERY_OPTIONS,
  LONGEST_HEADER_VALUE,
  MOST_HEADERS,
  NOTHING_TO_REMOVE,
  SET_BY_SERVICE,
} from '../base/delivery-options';
import { RequestError } from '../base/errors';
import { found, members, must, type Path, pointerOf, shaped } from '../base/json';
import { printableUrl } from '../base/mask-secrets';
import { registryName } from '../base/registry-name';
import { sinkProblem } from '../base/sink-rules';
import type { FollowedRegistry, Webhook } from '../config/followed-registries';
import { RETRACTED_TYPE, sourceOf, SUBSCRIBABLE_TYPES } from '../events/cloud-event';
import { namesOperations, type Filter, type Selection } from '../events/select-events';
import { DEFAULT_SUBSCRIPTION } from '../outbox/channels';
import { FILTERS, MOST_FILTERS } from './filter-schema';

/**
 * Terms of subscriptions, from the CloudEvents Subscriptions API (version 0.1-wip) where it has one:
 *
 * - subscription: the request of a subscriber to get events; sink: the URL that they are sent to.
 * - filter: a condition on an event; dialect: the kind of a filter, which is the name of its only member.
 * - attribute: a member of a CloudEvent beside `data`, such as `type`.
 * - party: an account or a contract whose address is in the payload of an event.
 * - realised: with a value for every member that has a default.
 */

export const LONGEST_SINK = 2_048;
export const MOST_TYPES = 50;

function flag(meaning: string) {
  const error = must('true or false', meaning);
  return z.boolean({ error }).default(false).describe(meaning);
}

const BLOCK = must('`now`, `beginning` or the number of a block', 'The default is `now`.');

/** Options of the delivery. docs/subscriptions.md describes them. */
export const SUBSCRIPTION_CONFIG = members(
  'config',
  {
    startFrom: z
      .union([z.enum(['now', 'beginning']), z.int({ error: BLOCK }).nonnegative({ error: BLOCK })], {
        error: BLOCK,
      })
      .default('now')
      .describe(
        'The first event: `now`, `beginning`, or the number of a block. It counts at the creation only.',
      ),
    state: z
      .enum(['active', 'paused', 'gone'], { error: must('`active` or `paused`', 'The default is `active`.') })
      .default('active')
      .describe(
        '`paused`: events are kept and not sent. `gone`: the sink answered 410; events are kept until it ' +
          'is set to `active`; only the service sets it.',
      ),
    ...DELIVERY_OPTIONS,
    contentType: z
      .enum(['application/json', 'application/cloudevents+json'], {
        error: must(
          '`application/json` or `application/cloudevents+json`',
          'The default is `application/json`.',
        ),
      })
      .default('application/json')
      .describe('Content type of the deliveries.'),
    standardWebhooks: flag('True adds the headers of Standard Webhooks.'),
    retractions: flag('True sends an event for each event that a reorganisation took back.'),
  },
  { secret: 'is made by the service. Leave it out.' },
);

/** The problem of a source: `urn:service:<chain id>:<address of the registry>`. */
function sourceProblem(source: string): string | undefined {
  const [, chainId, address = ''] = /^urn:service:([1-9]\d*):(0x[0-9a-f]{40})$/i.exec(source) ?? [];
  if (!source.startsWith('urn:service:') || !Number.isSafeInteger(Number(chainId)))
    return (
      'is not the source of a registry. ' +
      'Write urn:service:<chain id>:<address of the registry>, or leave it out for all registries.'
    );
  return checksummed(address) === undefined
    ? 'has an address with a wrong checksum. Correct it, or write it in lower case.'
    : undefined;
}

const without =
  (problemOf: (text: string) => string | undefined) =>
  (text: string, context: z.RefinementCtx): void => {
    const message = problemOf(text);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  };

const TYPE = z.enum(SUBSCRIBABLE_TYPES, {
  error: ({ input }) =>
    typeof input === 'string'
      ? `is not a type of event. Use one of ${SUBSCRIBABLE_TYPES.join(', ')}.`
      : `must be a string, ${found(input)}. Write it in double quotes.`,
});

/** Types of events. Their number is checked before each of them. */
const TYPES = z.preprocess(
  (given, context) => {
    const message = `has more than ${MOST_TYPES} entries. Leave it out for all types.`;
    if (Array.isArray(given) && given.length > MOST_TYPES) context.addIssue({ code: 'custom', message });
    return given;
  },
  z
    .array(TYPE, { error: must('an array', 'Leave it out for all types.') })
    .min(1, 'is empty. Give at least one type, or leave it out for all types.')
    .superRefine((types, context) => {
      for (const [index, type] of types.entries()) {
        const message = `is the same as types/${types.indexOf(type)}. Leave one out.`;
        if (types.indexOf(type) < index) context.addIssue({ code: 'custom', message, path: [index] });
      }
    }),
);

/** The body of `POST /subscriptions`. */
export const SUBSCRIPTION_REQUEST = members(
  'a subscription',
  {
    id: z.unknown().optional().describe('Made by the service; ignored here.'),
    source: z
      .string({ error: must('a string', 'Leave it out for all registries.') })
      .superRefine(without(sourceProblem))
      .optional()
      .meta({
        description: 'The registry, `urn:service:<chain id>:<address>`. Absent: all registries.',
        pattern: '^urn:service:[1-9][0-9]*:0[xX][0-9a-fA-F]{40}$',
      }),
    types: TYPES.optional().meta({
      description: 'Types of events, each once. Absent: all types.',
      maxItems: MOST_TYPES,
      uniqueItems: true,
    }),
    config: SUBSCRIPTION_CONFIG.prefault({}),
    filters: FILTERS.optional().meta({
      description: 'Conditions that all have to be true.',
      maxItems: MOST_FILTERS,
    }),
    sink: z
      .string({ error: must('a string', 'Give the URL that events are sent to.') })
      .max(LONGEST_SINK, `has more than ${LONGEST_SINK} characters. Shorten it.`)
      .superRefine(without(sinkProblem))
      .meta({
        description:
          'The URL that events are sent to: https, and http too on a local chain. Without user, password ' +
          'and fragment; not at a private address unless the operator allows it.',
        format: 'uri',
        examples: ['https://subscriber.example/webhook'],
      }),
    protocol: z.literal('HTTP', { error: must('`HTTP`', 'No other protocol is supported.') }),
    protocolsettings: members('protocolsettings', {
      headers: CHANGED_HEADERS.optional().meta({
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

/** The body of PUT /subscriptions/default. */
export const STATE_OF_DEFAULT = z
  .strictObject({ config: z.strictObject({ state: z.enum(['active', 'paused']) }) })
  .describe('For `default` alone, whose other members come from the settings.');

export type SubscriptionConfig = Readonly<z.output<typeof SUBSCRIPTION_CONFIG>>;

/** `gone`: the sink has answered 410. Only the service sets it. */
export type SubscriptionState = SubscriptionConfig['state'];

/** The state to show for several channels of a subscription. */
export function worstOf(states: Iterable<SubscriptionState | undefined>): SubscriptionState {
  const all = new Set(states);
  return (['gone', 'paused'] as const).find((state) => all.has(state)) ?? 'active';
}

/** Header values by name, in lower case. The values are secrets. */
export type Headers = Readonly<Record<string, string>>;

/** A realised subscription. */
export interface Subscription extends Selection {
  /** A UUID, or `default`. */
  readonly id: string;
  readonly sink: string;
  readonly protocol: 'HTTP';
  readonly protocolsettings?: { readonly headers?: Headers; readonly method?: 'POST' };
  readonly config: SubscriptionConfig;
}

/** A subscription with its secrets. `config.secret` signs deliveries with `standardWebhooks`. */
export type StoredSubscription = Subscription & { readonly config: { readonly secret?: string } };

/** Replaces the value of every header in the answers of the API. */
export const MASK = '***';

/** The headers of a request, by name in lower case. Null removes one. */
type ChangedHeaders = Readonly<Record<string, string | null>>;

const HEADERS_PATH = ['protocolsettings', 'headers'];

/**
 * Checks the body of `POST /subscriptions` and fills the defaults in. An `id` in the body is ignored.
 *
 * @param body from a parser that refuses `__proto__` as a name.
 * @param scope of the key that makes it.
 * @throws RequestError SUBSCRIPTION_INVALID, with JSON pointer and remedy in the message.
 */
export function parseSubscription(body: unknown, id: string, scope?: readonly Filter[]): Subscription {
  return realised(body, { id, ...(scope && { scope }) }, undefined);
}

/**
 * Checks the body of `PUT /subscriptions/{id}`. It replaces the stored subscription, except for the values of
 * headers that it masks or leaves out.
 *
 * @param stored with the values of its headers.
 * @throws RequestError SUBSCRIPTION_INVALID, with JSON pointer and remedy in the message.
 */
export function parseReplacement(body: unknown, stored: Subscription): Subscription {
  return realised(withoutShown(body), stored, stored);
}

/** The body without what a GET adds: the answer of a GET can be sent as it is. */
function withoutShown(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(
    Object.entries(body).filter(([name]) => !['failingSince', 'scope'].includes(name)),
  );
}

function realised(
  body: unknown,
  { id, scope }: Pick<Subscription, 'id' | 'scope'>,
  stored: Subscription | undefined,
): Subscription {
  const { source, types, filters, sink, protocol, protocolsettings, config } = shaped(
    SUBSCRIPTION_REQUEST,
    body,
    'SUBSCRIPTION_INVALID',
  );
  if (config.state === 'gone' && stored?.config.state !== 'gone') {
    const problem = 'is set to `gone` by the service, when the sink answers 410. Write `active` or `paused`.';
    throw subscriptionError(['config', 'state'], problem);
  }
  const retracted = types?.indexOf(RETRACTED_TYPE) ?? -1;
  if (retracted >= 0 && !config.retractions) {
    const problem = 'is sent only if config/retractions is true. Set it, or leave the type out.';
    throw subscriptionError(['types', retracted], problem);
  }
  const operation = scope && types ? types.findIndex((type) => namesOperations({ types: [type] })) : -1;
  if (operation >= 0) {
    const problem = 'tells of the service itself, and your key sees events of tokens only. Leave it out.';
    throw subscriptionError(['types', operation], problem);
  }
  const headers = mergeHeaders(stored, protocolsettings.headers ?? {});
  return {
    id,
    ...(source !== undefined && { source: asInEvents(source) }),
    ...(types !== undefined && { types }),
    config,
    ...(filters !== undefined && { filters }),
    ...(scope !== undefined && { scope }),
    sink,
    protocol,
    protocolsettings: {
      ...(Object.keys(headers).length > 0 && { headers }),
      method: protocolsettings.method,
    },
  };
}

/** A source with its address in lower case. */
function asInEvents(source: string): string {
  const [chainId = '', address = ''] = source.split(':').slice(2);
  return sourceOf(registryName(Number(chainId), address));
}

/**
 * The headers of a new subscription, or after a PUT. A header that is not named, or is named with its mask,
 * keeps its value, unless that cannot be decrypted: the stored subscription then has the mask itself. Headers
 * that became those of the service since are dropped.
 */
function mergeHeaders(stored: Subscription | undefined, put: ChangedHeaders): Headers {
  const kept = Object.entries(stored?.protocolsettings?.headers ?? {});
  const merged = new Map(kept.filter(([name]) => !SET_BY_SERVICE.has(name)));
  const refuse = (problem: string, ...name: string[]): never => {
    throw subscriptionError([...HEADERS_PATH, ...name], problem);
  };
  for (const [name, value] of Object.entries(put)) {
    if (value === null && stored === undefined) refuse(NOTHING_TO_REMOVE, name);
    else if (value === null) merged.delete(name);
    else if (value !== MASK) merged.set(name, value);
    else if (!merged.has(name)) refuse(`is ${MASK}, which stands for a stored value. Give the value.`, name);
  }
  if (merged.size > MOST_HEADERS) refuse(`has more than ${MOST_HEADERS} headers. Leave some out.`);
  for (const [name, value] of merged)
    if (value === MASK)
      refuse('cannot be kept: its value cannot be read with SECRETS_KEY. Give the value, or null.', name);
  return Object.fromEntries(merged);
}

/** @param problem with the remedy; the pointer is the subject of its first sentence. */
function subscriptionError(path: Path, problem: string): RequestError {
  return new RequestError('SUBSCRIPTION_INVALID', `${pointerOf(path) || 'The body'} ${problem}`);
}

/** The subscription as the API shows it: without the secret, and with a mask for the value of each header. */
export function presentSubscription({ config, protocolsettings, ...rest }: StoredSubscription): Subscription {
  const shown = { ...config };
  delete shown.secret;
  const names = Object.keys(protocolsettings?.headers ?? {});
  const headers = Object.fromEntries(names.map((name) => [name, MASK]));
  return {
    ...rest,
    ...(protocolsettings && {
      protocolsettings: { ...protocolsettings, ...(protocolsettings.headers && { headers }) },
    }),
    config: shown,
  };
}

/** The subscription as readers see it, who may not send to its sink: the path may hold a key. */
export function forReaders<Shown extends Pick<Subscription, 'sink'>>(subscription: Shown): Shown {
  return { ...subscription, sink: printableUrl(subscription.sink) };
}

/** The subscription `default` for a registry, as WEBHOOK_URL and service.config.json define it. */
export function definedBySettings(webhook: Webhook, state: SubscriptionState): Subscription {
  const { url, headers, ...options } = webhook;
  return {
    id: DEFAULT_SUBSCRIPTION,
    sink: url,
    protocol: 'HTTP',
    protocolsettings: { ...(Object.keys(headers).length > 0 && { headers }), method: 'POST' },
    config: {
      startFrom: 'beginning',
      state,
      ...options,
      contentType: 'application/json',
      standardWebhooks: false,
      retractions: false,
    },
  };
}

/**
 * The subscription `default` of all registries, as the API shows it. If registries have webhooks of their
 * own, `config.sinks` has the sinks by `source`. Undefined if no webhook is configured.
 */
export function presentDefault(
  registries: readonly FollowedRegistry[],
  state: SubscriptionState,
): (Subscription & { readonly config: { readonly sinks?: object } }) | undefined {
  const having = registries.flatMap(({ webhook, network, address }) =>
    webhook ? [{ webhook, source: sourceOf(registryName(network.chainId, address)) }] : [],
  );
  const [first] = having;
  if (first === undefined) return undefined;
  const shown = forReaders(presentSubscription(definedBySettings(first.webhook, state)));
  if (having.every(({ webhook }) => webhook === first.webhook)) return shown;
  const sinks = having.map(({ source, webhook }) => [source, printableUrl(webhook.url)] as const);
  return { ...shown, config: { ...shown.config, sinks: Object.fromEntries(sinks) } };
}
