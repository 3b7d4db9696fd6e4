import {
  FetchResponse,
  isError,
  JsonRpcProvider,
  makeError,
  type JsonRpcApiProviderOptions,
  type JsonRpcPayload,
  type JsonRpcResult,
  type Networkish,
} from 'ethers';
import { Agent, request, type Dispatcher } from 'undici';
import pMap from 'p-map';
import { secretMasker, secretPartsOf } from '../base/mask-secrets';
import { splitCredentials } from '../base/url-credentials';
import { isThrottled } from './refusals';
import { createRequestPace } from './request-pace';
import { retryIdempotent } from './retry-idempotent';

/** Attempts of a request that the provider throttles. */
const ATTEMPTS = 5;
/** Open connections: more than the reader's concurrent requests. */
const CONNECTIONS = 16;
/**
 * Calls per request. This is within every provider's limit, and within free plans: six receipts cost 480 of
 * the 500 credits per second of Infura's.
 */
const BATCH = 6;
const CONCURRENT_BATCHES = 8;

/**
 * A provider over HTTP for answers of many megabytes, such as ranges of logs. ethers' own transport copies
 * the answer for each chunk and decodes it byte by byte, which took 15 times as long for a range with 12,000
 * logs. A throttled request is repeated at a slower pace; a throttled range is repeated once, after which the
 * caller asks for fewer blocks.
 */
export class BulkRpcClient extends JsonRpcProvider {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #timeoutMs: number;
  readonly #mask: (text: string) => string;
  readonly #agent = new Agent({ connections: CONNECTIONS });
  readonly #pace = createRequestPace();
  /** Whether the provider was seen to answer "too many requests" to a range that is too wide. */
  #refusesWidth = false;
  /** Whether the provider supports batches; undefined while that is not known. */
  #answersBatches: boolean | undefined;

  constructor(url: string, chain: Networkish, options: JsonRpcApiProviderOptions, timeoutMs: number) {
    // The parent never uses its own URL: all of its requests go through `_send`.
    super(undefined, chain, options);
    const { url: bare, authorization } = splitCredentials(url);
    this.#url = bare;
    this.#headers = { 'content-type': 'application/json', ...(authorization && { authorization }) };
    this.#timeoutMs = timeoutMs;
    this.#mask = secretMasker(secretPartsOf(url));
  }

  override _send(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    return retryIdempotent(payload, () => this.#sendPaced(payload));
  }

  async sendBatches(method: string, params: readonly unknown[][]): Promise<unknown[]> {
    const batches = Array.from({ length: Math.ceil(params.length / BATCH) }, (_, index) =>
      params.slice(index * BATCH, (index + 1) * BATCH),
    );
    const results = await pMap(batches, (batch) => this.#sendBatch(method, batch), {
      concurrency: CONCURRENT_BATCHES,
    });
    return results.flat();
  }

  async #sendBatch(method: string, params: readonly unknown[][]): Promise<unknown[]> {
    const isBatch = params.length > 1;
    if (isBatch && this.#answersBatches !== false) {
      const together = await this.#sendTogether(method, params);
      if (together) {
        this.#answersBatches = true;
        return together;
      }
    }
    const results: unknown[] = [];
    for (const one of params) results.push(await this.send(method, one));
    // A provider that answered a batch before still supports batches.
    if (isBatch) this.#answersBatches ??= false;
    return results;
  }

  /**
   * Undefined when the provider did not answer all calls. One by one, it may answer them or give a reason.
   */
  async #sendTogether(method: string, params: readonly unknown[][]): Promise<unknown[] | undefined> {
    const payloads = params.map((one, id): JsonRpcPayload => ({ jsonrpc: '2.0', id, method, params: one }));
    try {
      const answers = await this._send(payloads);
      const results = new Map(answers.flatMap((one) => ('result' in one ? [[one.id, one.result]] : [])));
      return results.size === params.length ? params.map((_, id) => results.get(id) as unknown) : undefined;
    } catch (cause) {
      // More requests would make a timeout or throttling worse.
      if (isError(cause, 'TIMEOUT') || isThrottled(cause)) throw cause;
      return undefined;
    }
  }

  override destroy(): void {
    void this.#agent.destroy();
    super.destroy();
  }

  async #sendPaced(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    for (let attempt = 1; ; attempt++) {
      const pace = await this.#pace.turn();
      try {
        const answer = await this.#sendOnce(payload);
        this.#pace.answered();
        return answer;
      } catch (cause) {
        if (!isThrottled(cause)) throw cause;
        // The cause is the pace or the daily quota, and it may have been the cause of an earlier refusal of a
        // range.
        if (!isRange(payload)) this.#refusesWidth = false;
        if (isRange(payload) && (attempt > 1 || this.#refusesWidth)) {
          // A range that is refused at a slow pace too is too wide, so the caller must ask for fewer blocks.
          this.#refusesWidth = true;
          this.#pace.forget();
          throw cause;
        }
        this.#pace.refused(pace);
        if (attempt === ATTEMPTS) throw cause;
      }
    }
  }

  async #sendOnce(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    const { statusCode, text } = await this.#post(JSON.stringify(payload));
    if (statusCode >= 300) throw serverError(statusCode, this.#mask(text));
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

/** Whether a request asks for the logs of more than one block. */
function isRange(payload: JsonRpcPayload | JsonRpcPayload[]): boolean {
  const payloads = Array.isArray(payload) ? payload : [payload];
  return payloads.some(({ method, params }) => {
    const [filter] = params as [{ fromBlock?: string; toBlock?: string }?];
    return method === 'eth_getLogs' && filter?.fromBlock !== filter?.toBlock;
  });
}

/**
 * Builds an error like ethers' own, without the URL, which may contain a key. `responseBody` is masked before
 * it is cut, so that no part of a secret remains.
 */
function serverError(status: number, responseBody: string): Error {
  const response = new FetchResponse(status, '', {}, Buffer.from(responseBody));
  const info = { responseBody: responseBody.slice(0, 1_000) };
  return makeError(`server response ${status}`, 'SERVER_ERROR', { request: '', response, info });
}
