import type { components } from '../../client/api-types';
import type { EventDetails, IssuingProgress, KnownToken, VerifiedView } from '../../service/answers/views';
import type { WalletPlace } from '../../service/access/wallet-login';
import type { Facts, LogIn, Overview, Session, ValidateBody } from '../../service/console/views';
import type { Validation } from '../../service/validation/problems';
import { sender, type Answer, type RequestOptions } from './request';

type Schemas = components['schemas'];
export type Subscription = Schemas['Subscription'];
export type SubscriptionRequest = Schemas['SubscriptionRequest'];
export type AccessKey = Schemas['AccessKey'];
export type KeyRequest = Schemas['AccessKeyRequest'];
export type NewKey = Schemas['NewAccessKey'];
export type IssuedDocument = Schemas['IssuedDocument'];
export type Issuance = Schemas['Issuance'];
export type Redelivery = Schemas['Redelivery'];
export type FoundDelivery = Schemas['FoundDeliveries'][number];

/** Large documents are uploaded, signed and stored before their answer. */
const LONG_MS = 15 * 60_000;

const LARGEST_PAGE = 100;

/** Entries of a list, and whether there are more. */
export interface Listed<T> {
  entries: T[];
  hasMore: boolean;
}

/** An overview, and the ETag that names its content. */
export interface TaggedOverview {
  etag: string | undefined;
  overview: Overview;
}

/** A token, and the id of its credential, which decrypts the remarks. */
export interface TokenQuestion {
  tokenId: string;
  /** `<chain id>:<address>`; by default the registry in which documents are issued. */
  registry?: string | undefined;
  credentialId?: string | undefined;
}

/** A page of deliveries may be short, or empty, although others follow through all that was ever recorded. */
const MOST_DELIVERY_PAGES = 3;

/** The paths that are for the page alone. */
const OWN = '/console/api';

/** The requests of the console. */
export type Api = ReturnType<typeof createApi>;

/** @param owner for whom it asks: the session of another one does not answer. Empty: for anybody. */
export function createApi(onSessionEnded: () => void, owner = '') {
  const send = sender(onSessionEnded, { 'X-Console-Owner': owner });
  const get = async <T>(path: string, options?: RequestOptions): Promise<T> =>
    (await send<T>('GET', path, options)).body;
  const post = async <T>(path: string, options?: RequestOptions): Promise<T> =>
    (await send<T>('POST', path, options)).body;
  const remove = (path: string): Promise<unknown> => send('DELETE', path);
  /** All entries from a path on, page by page, but not many more than `most`, and of `pages` at most. */
  const list = async <T>(
    first: string,
    signal: AbortSignal,
    { most = Infinity, pages = Infinity } = {},
  ): Promise<Listed<T>> => {
    const entries: T[] = [];
    let path: string | undefined = first;
    for (let page = 0; path !== undefined && entries.length < most && page < pages; page++) {
      const { headers, body }: Answer<T[] | { keys: T[] }> = await send('GET', path, { signal });
      entries.push(...(Array.isArray(body) ? body : body.keys));
      path = /<([^>]*)>; rel="next"/.exec(headers.get('Link') ?? '')?.[1];
    }
    return { entries, hasMore: path !== undefined };
  };
  return {
    logIn: (body: LogIn) => post<Session>(`${OWN}/session`, { body }),
    /** Undefined: nobody is logged in. */
    session: () => get<Session | undefined>(`${OWN}/session`),
    logOut: () => remove(`${OWN}/session`),
    /** Undefined: wallets do not log in. */
    walletPlace: () => get<WalletPlace | undefined>(`${OWN}/wallet-login`),
    makeNonce: () => post<Schemas['LoginNonce']>('/login/nonce'),
    logInWallet: (body: Schemas['LoginRequest']) => post<NewKey>('/login', { body }),
    facts: () => get<Facts>(`${OWN}/facts`),
    /** Undefined: the overview with this ETag is still the present one. */
    overview: async (etag: string | undefined, signal: AbortSignal): Promise<TaggedOverview | undefined> => {
      const headers = etag === undefined ? {} : { 'If-None-Match': etag };
      const answer = await send<Overview | undefined>('GET', `${OWN}/overview`, { headers, signal });
      return answer.body && { etag: answer.headers.get('ETag') ?? undefined, overview: answer.body };
    },
    validate: (body: ValidateBody, signal: AbortSignal) =>
      post<Validation>(`${OWN}/validate`, { body, signal }),
    /** `json` and `key` are the same each time: then the service issues the document once. */
    issue: (json: string, key: string): Promise<Answer<Schemas['AcceptedDocument'] | IssuedDocument>> =>
      send('POST', '/create/BILL_OF_LADING', {
        json,
        headers: { Prefer: 'respond-async', 'Idempotency-Key': key },
        timeoutMs: LONG_MS,
      }),
    progress: (tokenId: string, signal: AbortSignal) =>
      get<IssuingProgress>(`${OWN}/documents/${tokenId}/progress`, { signal }),
    /** The newest first. */
    documents: (limit: number, signal: AbortSignal) =>
      get<Issuance[]>(`/documents?limit=${limit}`, { signal }),
    document: (tokenId: string) => get<IssuedDocument>(`/documents/${tokenId}`),
    token: async (question: TokenQuestion, signal: AbortSignal): Promise<KnownToken> => {
      const { tokenId, registry, credentialId } = question;
      // The id of the credential is a key: it is never in an address.
      const headers: Record<string, string> =
        credentialId === undefined ? {} : { 'X-Credential-Id': encodeURIComponent(credentialId) };
      const path = tokenPath(tokenId, '', registry);
      return get(path, { headers, signal });
    },
    /** Every block with an event of the token is read. */
    evidence: (tokenId: string, registry: string) =>
      get<Schemas['Evidence']>(tokenPath(tokenId, '/evidence', registry), { timeoutMs: LONG_MS }),
    /** The newest first. Of few deliveries among many events, not all may be found. */
    deliveries: (query: Readonly<Record<string, string>>, most: number, signal: AbortSignal) => {
      const limit = String(Math.min(most, LARGEST_PAGE));
      const path = `/deliveries?${new URLSearchParams({ ...query, limit }).toString()}`;
      return list<FoundDelivery>(path, signal, { most, pages: MOST_DELIVERY_PAGES });
    },
    /** The oldest first, after a cursor or ''. An answer may be empty although more follow. */
    events: (after: string, signal: AbortSignal) => {
      const query = new URLSearchParams({ limit: '1000', after });
      return get<Schemas['FetchedEvents']>(`/events/stream?${query.toString()}`, { signal });
    },
    event: (id: string, signal: AbortSignal) =>
      get<EventDetails>(`/events/${encodeURIComponent(id)}`, { signal }),
    /** @param credential in JSON. */
    verify: (credential: string) => {
      const json = `{"verifiableCredential":${credential}}`;
      return post<VerifiedView>('/credentials/verify', { json, timeoutMs: LONG_MS });
    },
    subscriptions: async (signal: AbortSignal): Promise<Subscription[]> =>
      (await list<Subscription>('/subscriptions?limit=100', signal)).entries,
    subscription: (id: string) => get<Subscription>(pathOf(id)),
    createSubscription: (body: SubscriptionRequest) => post<Subscription>('/subscriptions', { body }),
    replaceSubscription: async (id: string, body: unknown): Promise<Subscription> =>
      (await send<Subscription>('PUT', pathOf(id), { body })).body,
    deleteSubscription: (id: string, { force }: { force: boolean }) =>
      remove(`${pathOf(id)}${force ? '?force=true' : ''}`),
    // The sink may take as long as its timeout allows.
    testSubscription: (id: string) =>
      post<Schemas['TestOutcome']>(`${pathOf(id)}/test`, { timeoutMs: LONG_MS }),
    /** The newest first. */
    keys: (signal: AbortSignal) => list<AccessKey>('/keys?limit=100', signal, { most: 200 }),
    createKey: (body: KeyRequest) => post<NewKey>('/keys', { body }),
    revokeKey: (id: string) => remove(`/keys/${encodeURIComponent(id)}`),
    redeliver: (id: string, body: { event: string } | { dead: true }) =>
      post<Redelivery>(`${pathOf(id)}/redeliver`, { body }),
  };
}

/** @param registry `<chain id>:<address>`. */
function tokenPath(tokenId: string, rest: string, registry: string | undefined): string {
  const [chainId = '', address = ''] = registry?.split(':') ?? [];
  const query = registry === undefined ? {} : { registry: address, chainId };
  return `/tokens/${encodeURIComponent(tokenId)}${rest}?${new URLSearchParams(query).toString()}`;
}

function pathOf(subscription: string): string {
  return `/subscriptions/${encodeURIComponent(subscription)}`;
}
