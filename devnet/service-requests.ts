import { ServiceError } from '../service/base/errors';
import { RETRY } from './stack-settings';

/** A document that was issued. */
export interface Issued {
  /** 64 hexadecimal digits, as in `credentialStatus`. */
  tokenId: string;
  /** The signed credential. */
  document: Record<string, unknown>;
  /** Hash of the transaction that minted its token. */
  txHash: string;
}

/** The body of POST /create. */
export interface CreateBody {
  credentialSubject: Record<string, unknown>;
  owner: string;
  holder: string;
  remarks?: string;
}

/**
 * Issues a Bill of Lading.
 *
 * @throws ServiceError with the code of the answer (docs/error-codes.md).
 */
export async function issueDocument(serviceUrl: string, body: CreateBody): Promise<Issued> {
  const answer = (await post(`${serviceUrl}/create/BILL_OF_LADING`, body)) as {
    signedW3CDocument: Record<string, unknown> & { credentialStatus: { tokenId: string } };
    txHash: string;
  };
  const { signedW3CDocument: document, txHash } = answer;
  return { tokenId: document.credentialStatus.tokenId, document, txHash };
}

/**
 * Subscribes a sink to all events and their retractions, unless it is subscribed already.
 *
 * @throws ServiceError with the code of the answer.
 */
export async function subscribe(serviceUrl: string, adminApiKey: string, sink: string): Promise<void> {
  const authorization = { authorization: `Bearer ${adminApiKey}` };
  const url = `${serviceUrl}/subscriptions`;
  const all = (await answerTo(url, { headers: authorization })) as { sink: string }[];
  if (all.some((one) => one.sink === sink)) return;
  const config = { retractions: true, retry: RETRY };
  await post(url, { sink, protocol: 'HTTP', config }, authorization);
}

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<unknown> {
  const json = { 'content-type': 'application/json', ...headers };
  return answerTo(url, { method: 'POST', headers: json, body: JSON.stringify(body) });
}

async function answerTo(url: string, request: RequestInit): Promise<unknown> {
  const response = await fetch(url, request);
  const text = await response.text();
  if (response.ok) return JSON.parse(text);
  const code = response.headers.get('x-error-code') ?? 'INTERNAL';
  throw new ServiceError(code, `${request.method ?? 'GET'} ${url} answered ${response.status}: ${text}`);
}
