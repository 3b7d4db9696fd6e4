import { printableUrl, splitCredentials } from '../base/mask-secrets';
import { registryName } from '../base/registry-name';
import { sourceOf } from '../events/cloud-event';
import type { FollowedRegistry, Webhook } from '../config/followed-registries';
import { DEFAULT_SUBSCRIPTION } from '../outbox/channels';
import { MASK } from './headers';
import type { Subscription, SubscriptionState } from './subscription';

/** The subscription `default` as the API shows it. */
export type DefaultSubscription = Subscription & {
  readonly config: {
    /** The sinks of registries with a webhook of their own, by `source`. */
    readonly sinks?: Readonly<Record<string, string>>;
  };
};

/** The subscription of WEBHOOK_URL and service.config.json. Undefined if no webhook is configured. */
export function defaultSubscription(
  registries: readonly FollowedRegistry[],
  state: SubscriptionState,
): DefaultSubscription | undefined {
  const having = registries.flatMap(({ webhook, network, address }) =>
    webhook ? [{ webhook, source: sourceOf(registryName(network.chainId, address)) }] : [],
  );
  const [first] = having;
  if (first === undefined) return undefined;
  const { webhook } = first;
  const others = having.filter((one) => one.webhook !== webhook);
  const headers = headersOf(webhook);
  return {
    id: DEFAULT_SUBSCRIPTION,
    sink: printableUrl(webhook.url),
    protocol: 'HTTP',
    protocolsettings: { ...(headers && { headers }), method: 'POST' },
    config: {
      startFrom: 'beginning',
      state,
      timeoutMs: webhook.timeoutMs,
      maxConcurrentDeliveries: webhook.maxConcurrentDeliveries,
      retry: webhook.retry,
      contentType: 'application/json',
      standardWebhooks: false,
      retractions: false,
      ...(others.length > 0 && {
        sinks: Object.fromEntries(having.map(({ source, webhook: { url } }) => [source, printableUrl(url)])),
      }),
    },
  };
}

function headersOf({ url, headers }: Webhook): Record<string, string> | undefined {
  const { authorization } = splitCredentials(url);
  const names = [...Object.keys(headers), ...(authorization === undefined ? [] : ['authorization'])];
  return names.length === 0 ? undefined : Object.fromEntries(names.map((name) => [name, MASK]));
}
