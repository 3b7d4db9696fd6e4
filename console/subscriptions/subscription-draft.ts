import { problemsAt, type FieldProblem } from '../parts/field-problem';
import type { SubscriptionRequest } from '../requests/api';
import type { RequestFailure } from '../requests/request';
import { linesOf } from '../text/words';

/** The content of the form of a new subscription, at first. */
export const EMPTY_SUBSCRIPTION = {
  sink: '',
  /** `urn:service:…`; empty: all registries. */
  source: '',
  types: [] as readonly string[],
  /** One in each line, as the parties. */
  tokens: '',
  parties: '',
  startFrom: 'now' as 'now' | 'beginning' | 'block',
  block: '',
  contentType: 'application/json' as 'application/json' | 'application/cloudevents+json',
  standardWebhooks: false,
  retractions: false,
  headers: [] as readonly { name: string; value: string }[],
};

export type SubscriptionDraft = typeof EMPTY_SUBSCRIPTION;

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

/** Fields that an error of the service may name. */
export type DraftProblems = Partial<
  Record<'sink' | 'source' | 'tokens' | 'parties' | 'block', FieldProblem[]>
>;

/** The fields for which the request was refused, each with its problem. */
export function problemsOf(failure: RequestFailure | undefined, draft: SubscriptionDraft): DraftProblems {
  return problemsAt(failure, {
    sink: '/sink',
    source: '/source',
    tokens: '/filters/0/tokens',
    parties: `/filters/${linesOf(draft.tokens).length > 0 ? 1 : 0}/parties`,
    block: '/config/startFrom',
  });
}
