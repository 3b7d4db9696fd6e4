import { printableUrl } from '../base/mask-secrets';
import { MASK } from './headers';
import type { Subscription, SubscriptionConfig } from './subscription';

/** A subscription with its secrets. `config.secret` signs deliveries with `standardWebhooks`. */
export type StoredSubscription = Subscription & { readonly config: { readonly secret?: string } };

/** The subscription as the API shows it: without the secret, and with a mask for the value of each header. */
export function presentSubscription({ config, protocolsettings, ...rest }: StoredSubscription): Subscription {
  const headers = protocolsettings?.headers;
  const masked = headers && Object.fromEntries(Object.keys(headers).map((name) => [name, MASK]));
  return {
    ...rest,
    ...(protocolsettings && {
      protocolsettings: { ...protocolsettings, ...(masked && { headers: masked }) },
    }),
    config: withoutSecret(config),
  };
}

/** The subscription as readers see it, who may not send to its sink: the path may hold a key. */
export function forReaders<Shown extends Pick<Subscription, 'sink'>>(subscription: Shown): Shown {
  return { ...subscription, sink: printableUrl(subscription.sink) };
}

function withoutSecret(config: StoredSubscription['config']): SubscriptionConfig {
  const shown = { ...config };
  delete shown.secret;
  return shown;
}
