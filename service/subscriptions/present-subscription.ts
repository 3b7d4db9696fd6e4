import { printableUrl } from '../base/mask-secrets';
import { registryName } from '../base/registry-name';
import type { FollowedRegistry, Webhook } from '../config/followed-registries';
import { sourceOf } from '../events/cloud-event';
import { DEFAULT_SUBSCRIPTION } from '../outbox/channels';
import type { Headers, StoredSubscription, Subscription, SubscriptionState } from './subscription';

/** Replaces the value of every header in the answers of the API. */
export const MASK = '***';

/** The subscription as the API shows it: without the secret, and with a mask for the value of each header. */
export function presentSubscription({ config, protocolsettings, ...rest }: StoredSubscription): Subscription {
  const shown = { ...config };
  delete shown.secret;
  return {
    ...rest,
    ...(protocolsettings && { protocolsettings: withMaskedHeaders(protocolsettings) }),
    config: shown,
  };
}

export function withMaskedHeaders<Settings extends { readonly headers?: Headers }>(
  settings: Settings,
): Settings {
  if (settings.headers === undefined) return settings;
  const names = Object.keys(settings.headers);
  return { ...settings, headers: Object.fromEntries(names.map((name) => [name, MASK])) };
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
