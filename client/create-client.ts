import createFetchClient, { type Client } from 'openapi-fetch';
import { KEYS_OF_PATH, type paths } from './api-types';

/** The types of requests and answers, by path and by component. */
export type { components, paths } from './api-types';

/** A service, and the keys that requests to it carry. */
export interface ClientOptions {
  /** Address of the service, such as `https://carrier.example`. */
  url: string;
  /** API_KEY of the service, sent with the requests that it opens, unless `adminApiKey` opens them too. */
  apiKey?: string | undefined;
  /** ADMIN_API_KEY of the service, sent with the requests that it opens. */
  adminApiKey?: string | undefined;
  /** Replaces the global `fetch`. */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
}

/** A typed client: `client.POST('/create/{documentId}', …)` resolves with `{ data, error, response }`. */
export type ServiceClient = Client<paths>;

/** Creates a client of the HTTP API. Its types are generated from the API's description. */
export function createClient({ url, fetch, ...keys }: ClientOptions): ServiceClient {
  const client = createFetchClient<paths>({ baseUrl: url, ...(fetch && { fetch }) });
  client.use({
    onRequest({ request, schemaPath }) {
      const [key] = KEYS_OF_PATH[schemaPath]?.flatMap((name) => keys[name] ?? []) ?? [];
      if (key !== undefined) request.headers.set('Authorization', `Bearer ${key}`);
    },
  });
  return client;
}
