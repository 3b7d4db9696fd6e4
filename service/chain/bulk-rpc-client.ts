import {
  FetchResponse,
  JsonRpcProvider,
  makeError,
  type JsonRpcApiProviderOptions,
  type JsonRpcPayload,
  type JsonRpcResult,
  type Networkish,
} from 'ethers';
import { Agent, request, type Dispatcher } from 'undici';
import { percentDecoded } from '../secrets';
import { retryIdempotent } from './retry-idempotent';

/** Connections kept open: more than the reader asks at the same time. */
const CONNECTIONS = 16;

/**
 * A provider over HTTP for answers of many megabytes, as ranges of logs are. ethers' own transport copies what has come for each piece that
 * comes and turns bytes into text one by one: a range with 12,000 logs took it 15 times as long. Every refusal is reported, none waited out.
 */
export class BulkRpcClient extends JsonRpcProvider {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #timeoutMs: number;
  readonly #agent = new Agent({ connections: CONNECTIONS });

  constructor(url: string, chain: Networkish, options: JsonRpcApiProviderOptions, timeoutMs: number) {
    // The parent never uses its own URL: all of its requests go through `_send`.
    super(undefined, chain, options);
    const { username, password } = new URL(url);
    const credentials = `${percentDecoded(username)}:${percentDecoded(password)}`;
    this.#url = withoutCredentials(url);
    this.#headers = {
      'content-type': 'application/json',
      ...((username || password) && {
        authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
      }),
    };
    this.#timeoutMs = timeoutMs;
  }

  override _send(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    return retryIdempotent(payload, () => this.#sendOnce(payload));
  }

  override destroy(): void {
    void this.#agent.destroy();
    super.destroy();
  }

  async #sendOnce(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    const { statusCode, text } = await this.#post(JSON.stringify(payload));
    if (statusCode >= 300) throw serverError(statusCode, text);
    const answer = JSON.parse(text) as JsonRpcResult | JsonRpcResult[];
    return Array.isArray(answer) ? answer : [answer];
  }

  async #post(body: string): Promise<{ statusCode: number; text: string }> {
    const options: Partial<Dispatcher.RequestOptions> = {
      method: 'POST',
      headers: this.#headers,
      body,
      signal: AbortSignal.timeout(this.#timeoutMs),
    };
    try {
      const answer = await request(this.#url, { ...options, dispatcher: this.#agent });
      return { statusCode: answer.statusCode, text: await answer.body.text() };
    } catch (cause) {
      if (!(cause instanceof Error && cause.name === 'TimeoutError')) throw cause;
      const message = `no answer within ${this.#timeoutMs} ms`;
      const timeout: Error = makeError(message, 'TIMEOUT', { operation: 'request', reason: 'timeout' });
      throw timeout;
    }
  }
}

function withoutCredentials(url: string): string {
  const bare = new URL(url);
  bare.username = '';
  bare.password = '';
  return bare.href;
}

/** In the form that ethers gives to it; without the URL, which holds a key. */
function serverError(status: number, responseBody: string): Error {
  const response = new FetchResponse(status, '', {}, Buffer.from(responseBody));
  const info = { responseBody: responseBody.slice(0, 1_000) };
  return makeError(`server response ${status}`, 'SERVER_ERROR', { request: '', response, info });
}
