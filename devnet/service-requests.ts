import { createClient, type components } from '../client/create-client';
import { ServiceError } from '../service/base/errors';
import { RETRY } from './stack-settings';

type Schemas = components['schemas'];

/** The signed credential, as POST /create answers it. */
export type SignedDocument = Schemas['IssuedDocument']['signedW3CDocument'];

/** A document that was issued. */
export interface Issued {
  /** 64 hexadecimal digits, as in `credentialStatus`. */
  tokenId: string;
  document: SignedDocument;
  /** Hash of the transaction that minted its token. */
  transactionHash: string;
}

/**
 * Issues a Bill of Lading.
 *
 * @throws ServiceError with the code of the answer (docs/error-codes.md).
 */
export async function issueDocument(url: string, body: Schemas['CreateRequest']): Promise<Issued> {
  const path = { documentId: 'BILL_OF_LADING' } as const;
  const created = dataOf(
    await createClient({ url }).POST('/create/{documentId}', { params: { path }, body }),
  );
  if (!('signedW3CDocument' in created)) throw new ServiceError('INTERNAL', 'The document was not minted.');
  const { signedW3CDocument: document, txHash: transactionHash } = created;
  return { tokenId: document.credentialStatus.tokenId, document, transactionHash };
}

/**
 * Subscribes a sink to all events and their retractions, unless it is subscribed already. The subscription of
 * an earlier run to another sink is deleted.
 *
 * @throws ServiceError with the code of the answer.
 */
export async function subscribe(url: string, adminApiKey: string, sink?: string): Promise<void> {
  const client = createClient({ url, adminApiKey });
  const own = dataOf(await client.GET('/subscriptions')).filter(isOwn);
  for (const { id } of own.filter((one) => one.sink !== sink))
    dataOf(await client.DELETE('/subscriptions/{id}', { params: { path: { id } } }));
  if (sink === undefined || own.some((one) => one.sink === sink)) return;
  const config = { retractions: true, retry: RETRY };
  dataOf(await client.POST('/subscriptions', { body: { sink, protocol: 'HTTP', config } }));
}

/** Whether a devnet made it: its pauses tell it from those of the user. */
function isOwn({ config: { retractions, retry } }: Schemas['Subscription']): boolean {
  const { initialDelayMs, maxDelayMs } = retry;
  return retractions && initialDelayMs === RETRY.initialDelayMs && maxDelayMs === RETRY.maxDelayMs;
}

/**
 * Makes a link to the console that logs in once.
 *
 * @throws ServiceError DEVNET_FAILED.
 */
export async function makeConsoleLink(
  { serviceUrl, adminApiKey }: { serviceUrl: string; adminApiKey: string },
  page?: string,
): Promise<string> {
  const headers = { authorization: `Bearer ${adminApiKey}` };
  const response = await fetch(`${serviceUrl}/console/api/links`, { method: 'POST', headers });
  if (!response.ok) throw new ServiceError('DEVNET_FAILED', `${response.url} answered ${response.status}.`);
  const { url } = (await response.json()) as { url: string };
  return `${serviceUrl}${url}${page === undefined ? '' : `&to=${page}`}`;
}

/** The answers of the client's calls. */
type Answer<Data> =
  | { data: Data; error?: never; response: Response }
  | { data?: never; error: Schemas['Error']; response: Response };

function dataOf<Data>({ data, error, response }: Answer<Data>): Data {
  if (error === undefined) return data;
  const code = response.headers.get('X-Error-Code') ?? 'INTERNAL';
  // In development an error has a stack, whose first line says why a 500 was answered.
  const [reason = error.error.message] = error.error.stack?.split('\n') ?? [];
  throw new ServiceError(code, `${response.url} answered ${response.status}: ${reason}`);
}
