import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { pipeline, type Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createGunzip } from 'node:zlib';
import {
  FetchRequest,
  JsonRpcProvider,
  makeError,
  type GetUrlResponse,
  type JsonRpcApiProviderOptions,
  type JsonRpcPayload,
  type JsonRpcResult,
  type Networkish,
} from 'ethers';
import { retryIdempotent } from './retry-idempotent';

/** A provider over HTTP that repeats requests after connection failures. */
export class HttpRpcClient extends JsonRpcProvider {
  constructor(url: string, chain: Networkish, options: JsonRpcApiProviderOptions, timeoutMs: number) {
    const request = new FetchRequest(url);
    request.timeout = timeoutMs;
    request.getUrlFunc = answerOf;
    super(request, chain, options);
  }

  override _send(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    return retryIdempotent(payload, () => super._send(payload));
  }
}

/**
 * Sends a request. The timeout covers the whole answer, and closes the connection: ethers' own transport
 * leaves it open, and waits for ever for an answer that arrives byte by byte.
 */
async function answerOf({ url, method, headers, body, timeout }: FetchRequest): Promise<GetUrlResponse> {
  const send = new URL(url).protocol === 'https:' ? httpsRequest : httpRequest;
  const late = AbortSignal.timeout(timeout);
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      send(url, { method, headers, signal: late }, resolve).on('error', reject).end(body);
    });
    const { statusCode = 0, statusMessage = '' } = response;
    const named = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
    return {
      statusCode,
      statusMessage,
      headers: Object.fromEntries(named) as Record<string, string>,
      body: await buffer(decoded(response)),
    };
  } catch (cause) {
    if (!late.aborted) throw cause;
    const message = `no answer within ${timeout} ms`;
    const timedOut: Error = makeError(message, 'TIMEOUT', { operation: 'request', reason: 'timeout' });
    throw timedOut;
  }
}

/** ethers asks for gzip, and some proxies use it whatever was asked for. */
function decoded(response: IncomingMessage): Readable {
  if (response.headers['content-encoding'] !== 'gzip') return response;
  return pipeline(response, createGunzip(), () => undefined);
}
