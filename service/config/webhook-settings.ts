import type { KeyObject } from 'node:crypto';
import type { WebhookOptions } from './config-file';
import { DEFAULT_RETRY_SCHEDULE, type RetrySchedule } from '../delivery/retry-schedule';
import { urlOf, wrong, type Settings } from './settings';
import { parseSigningKey } from '../base/signing-key';
import { splitCredentials } from '../base/url-credentials';

/** The webhook that receives the events of a registry, and its options. */
export interface Webhook {
  /** A user and password in the URL are sent as Basic authorization. */
  readonly url: string;
  /** Sent with every delivery. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxConcurrentDeliveries: number;
  readonly retry: RetrySchedule;
  readonly signingKey: KeyObject;
}

const DEFAULT_TIMEOUT_MS = 15_000;
const DEFAULT_CONCURRENT_DELIVERIES = 16;

/** The common options, overridden by the registry's own. WEBHOOK_URL overrides the common URL. */
export function webhookOptionsOf(
  settings: Settings,
  common: WebhookOptions = {},
  own: WebhookOptions = {},
): WebhookOptions {
  const url = own.url ?? urlOf(settings, 'WEBHOOK_URL', ['http:', 'https:']) ?? common.url;
  return {
    ...common,
    ...own,
    url,
    headers: { ...lowerCased(common.headers), ...lowerCased(own.headers) },
    retry: { ...common.retry, ...own.retry },
  };
}

/** Header names are case-insensitive. */
function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** The webhook with its defaults. Undefined if there is no URL. */
export function webhookOf(options: WebhookOptions, signingKey: KeyObject | undefined): Webhook | undefined {
  const { url, headers = {}, retry } = options;
  if (url === undefined) return undefined;
  if (signingKey === undefined) {
    const remedy = 'Make a key with `npx tdoc signing-key`.';
    throw wrong('SIGNING_PRIVATE_KEY', 'is needed to sign what is sent to the webhook', remedy);
  }
  if (headers.authorization !== undefined && splitCredentials(url).authorization !== undefined) {
    const problem = "is set, and so are a user or a password in the webhook's URL";
    const remedy = 'Both would be the header Authorization: leave one of them out.';
    throw wrong('webhook.headers.authorization', problem, remedy);
  }
  return {
    url,
    headers,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxConcurrentDeliveries: options.maxConcurrentDeliveries ?? DEFAULT_CONCURRENT_DELIVERIES,
    retry: {
      initialDelayMs: retry?.initialDelayMs ?? DEFAULT_RETRY_SCHEDULE.initialDelayMs,
      maxDelayMs: retry?.maxDelayMs ?? DEFAULT_RETRY_SCHEDULE.maxDelayMs,
      giveUpAfterMs: retry?.giveUpAfterMs ?? DEFAULT_RETRY_SCHEDULE.giveUpAfterMs,
    },
    signingKey,
  };
}

/** SIGNING_PRIVATE_KEY. */
export function signingKeyOf(settings: Settings): KeyObject | undefined {
  const text = settings.SIGNING_PRIVATE_KEY;
  if (text === undefined) return undefined;
  const key = parseSigningKey(text);
  if (key) return key;
  const remedy = 'It is the base64 of a 32-byte seed, or a PKCS#8 PEM; `npx tdoc signing-key` makes one.';
  throw wrong('SIGNING_PRIVATE_KEY', 'is not an Ed25519 private key', remedy);
}
