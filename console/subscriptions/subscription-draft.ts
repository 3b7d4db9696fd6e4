import type { SubscriptionRequest } from '../requests/api';

/** The content of the form of a new subscription. */
export interface SubscriptionDraft {
  sink: string;
  /** `urn:service:…`; empty: all registries. */
  source: string;
  types: readonly string[];
  /** One in each line. */
  tokens: string;
  parties: string;
  startFrom: 'now' | 'beginning' | 'block';
  block: string;
  contentType: 'application/json' | 'application/cloudevents+json';
  standardWebhooks: boolean;
  retractions: boolean;
  headers: readonly { name: string; value: string }[];
}

export const EMPTY_SUBSCRIPTION: SubscriptionDraft = {
  sink: '',
  source: '',
  types: [],
  tokens: '',
  parties: '',
  startFrom: 'now',
  block: '',
  contentType: 'application/json',
  standardWebhooks: false,
  retractions: false,
  headers: [],
};

/** The body of POST /subscriptions. Empty conditions are left out: then everything is sent. */
export function subscriptionRequestOf(draft: SubscriptionDraft): SubscriptionRequest {
  const { sink, source, types, contentType, standardWebhooks, retractions, startFrom, block } = draft;
  const tokens = linesOf(draft.tokens);
  const parties = linesOf(draft.parties);
  const filters = [...(tokens.length > 0 ? [{ tokens }] : []), ...(parties.length > 0 ? [{ parties }] : [])];
  const headers = draft.headers.filter(({ name }) => name.trim() !== '');
  return {
    sink: sink.trim(),
    protocol: 'HTTP',
    ...(source !== '' && { source }),
    // The service refuses a type that it does not have, and names it.
    ...(types.length > 0 && { types: [...types] as NonNullable<SubscriptionRequest['types']> }),
    ...(filters.length > 0 && { filters }),
    ...(headers.length > 0 && {
      protocolsettings: {
        headers: Object.fromEntries(headers.map(({ name, value }) => [name.trim(), value])),
      },
    }),
    config: {
      startFrom: startFrom === 'block' ? Number(block) : startFrom,
      contentType,
      standardWebhooks,
      retractions,
    },
  };
}

function linesOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((line) => line !== '');
}
