import type { components } from '../../client/api-types';
import type {
  DeliveryList,
  EventDetails,
  Facts,
  IssuingProgress,
  LogIn,
  Overview,
  Session,
  TokenQuestion,
  TokenView,
  ValidateBody,
  Validation,
  VerifyView,
} from '../../service/console/views';
import { sender, type Answer } from './request';

type Schemas = components['schemas'];
export type Subscription = Schemas['Subscription'];
export type SubscriptionRequest = Schemas['SubscriptionRequest'];
export type IssuedDocument = Schemas['IssuedDocument'];
export type Issuance = Schemas['Issuance'];
export type Redelivery = Schemas['Redelivery'];

/** Large documents are uploaded, signed and stored before their answer. */
const LONG_MS = 15 * 60_000;

/** An overview, and the ETag that names its content. */
export interface TaggedOverview {
  etag: string | undefined;
  overview: Overview;
}

/** The requests of the console. */
export type Api = ReturnType<typeof createApi>;

export function createApi(onSessionEnded: () => void) {
  const send = sender(onSessionEnded);
  const get = async <T>(path: string, signal?: AbortSignal): Promise<T> =>
    (await send<T>('GET', path, { ...(signal && { signal }) })).body;
  const post = async <T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> =>
    (await send<T>('POST', path, { ...(body !== undefined && { body }), ...(signal && { signal }) })).body;
  return {
    logIn: (body: LogIn) => post<Session>('session', body),
    /** Undefined: nobody is logged in. */
    session: () => get<Session | undefined>('session'),
    logOut: async (): Promise<void> => {
      await send<undefined>('DELETE', 'session');
    },
    facts: () => get<Facts>('facts'),
    /** Undefined: the overview with this ETag is still the present one. */
    overview: async (etag: string | undefined): Promise<TaggedOverview | undefined> => {
      const headers = etag === undefined ? {} : { 'If-None-Match': etag };
      const answer = await send<Overview | undefined>('GET', 'overview', { headers });
      return answer.body && { etag: answer.headers.get('ETag') ?? undefined, overview: answer.body };
    },
    validate: (body: ValidateBody, signal: AbortSignal) => post<Validation>('validate', body, signal),
    /** `json` and `key` are the same each time: then the service issues the document once. */
    issue: (json: string, key: string): Promise<Answer<Schemas['AcceptedDocument'] | IssuedDocument>> =>
      send('POST', 'create/BILL_OF_LADING', {
        json,
        headers: { Prefer: 'respond-async', 'Idempotency-Key': key },
        timeoutMs: LONG_MS,
      }),
    progress: (tokenId: string, signal: AbortSignal) =>
      get<IssuingProgress>(`documents/${tokenId}/progress`, signal),
    /** The newest first. */
    documents: (limit: number, signal: AbortSignal) => get<Issuance[]>(`documents?limit=${limit}`, signal),
    document: (tokenId: string) => get<IssuedDocument>(`documents/${tokenId}`),
    token: (body: TokenQuestion, signal: AbortSignal) => post<TokenView>('token', body, signal),
    deliveries: (query: Readonly<Record<string, string>>, signal: AbortSignal) =>
      get<DeliveryList>(`deliveries?${new URLSearchParams(query).toString()}`, signal),
    event: (id: string, signal: AbortSignal) => get<EventDetails>(`events/${encodeURIComponent(id)}`, signal),
    verify: async (json: string): Promise<VerifyView> =>
      (await send<VerifyView>('POST', 'verify', { json, timeoutMs: LONG_MS })).body,
    subscriptions: async (signal: AbortSignal): Promise<Subscription[]> => {
      const found: Subscription[] = [];
      for (let path: string | undefined = 'subscriptions?limit=100'; path !== undefined;) {
        const { headers, body }: Answer<Subscription[]> = await send('GET', path, { signal });
        found.push(...body);
        // The path of the next page is that of the public API.
        path = /<[^>]*\/(subscriptions\?[^>]*)>; rel="next"/.exec(headers.get('Link') ?? '')?.[1];
      }
      return found;
    },
    subscription: (id: string) => get<Subscription>(pathOf(id)),
    createSubscription: (body: SubscriptionRequest) => post<Subscription>('subscriptions', body),
    replaceSubscription: async (id: string, body: unknown): Promise<Subscription> =>
      (await send<Subscription>('PUT', pathOf(id), { body })).body,
    deleteSubscription: async (id: string, { force }: { force: boolean }): Promise<void> => {
      await send<unknown>('DELETE', `${pathOf(id)}${force ? '?force=true' : ''}`);
    },
    testSubscription: async (id: string): Promise<Schemas['TestOutcome']> =>
      // The sink may take as long as its timeout allows.
      (await send<Schemas['TestOutcome']>('POST', `${pathOf(id)}/test`, { timeoutMs: LONG_MS })).body,
    redeliver: (id: string, body: { event: string } | { dead: true }) =>
      post<Redelivery>(`${pathOf(id)}/redeliver`, body),
  };
}

function pathOf(subscription: string): string {
  return `subscriptions/${encodeURIComponent(subscription)}`;
}
