import {
  isError,
  JsonRpcProvider,
  type JsonRpcApiProviderOptions,
  type JsonRpcPayload,
  type JsonRpcResult,
  type Networkish,
} from 'ethers';
import pMap from 'p-map';
import { createHttpTransport, type HttpTransport } from './http-transport';
import { isThrottled } from './refusals';
import { createRequestPace } from './request-pace';
import { retryIdempotent } from './retry-idempotent';
import { AnswerTooLargeError } from './rpc-answer';

/** Open connections: more than the reader's concurrent requests. */
const CONNECTIONS = 16;
/** Attempts of a request that the provider throttles. */
const ATTEMPTS = 5;
/**
 * Calls per request. This is within every provider's limit, and within free plans: six receipts cost 480 of
 * the 500 credits per second of Infura's.
 */
const BATCH = 6;
const CONCURRENT_BATCHES = 8;

/**
 * A provider over HTTP for ranges of logs. A throttled request is repeated at a slower pace; a throttled
 * range is repeated once, after which the caller asks for fewer blocks.
 */
export class BulkRpcClient extends JsonRpcProvider {
  readonly #transport: HttpTransport;
  readonly #pace = createRequestPace();
  /** Whether the provider was seen to answer "too many requests" to a range that is too wide. */
  #refusesWidth = false;
  /** Whether the provider supports batches; undefined while that is not known. */
  #answersBatches: boolean | undefined;

  constructor(url: string, chain: Networkish, options: JsonRpcApiProviderOptions, timeoutMs: number) {
    // The parent never uses its own URL: all of its requests go through `_send`.
    super(undefined, chain, options);
    this.#transport = createHttpTransport(url, timeoutMs, CONNECTIONS);
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
      // The provider does answer batches; the answers to some of these calls are long.
      if (cause instanceof AnswerTooLargeError) this.#answersBatches = true;
      return undefined;
    }
  }

  override destroy(): void {
    this.#transport.close();
    super.destroy();
  }

  async #sendPaced(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    for (let attempt = 1; ; attempt++) {
      const pace = await this.#pace.turn();
      try {
        const answer = (await this.#transport.send(payload)) as JsonRpcResult[];
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
}

/** Whether a request asks for the logs of more than one block. */
function isRange(payload: JsonRpcPayload | JsonRpcPayload[]): boolean {
  const payloads = Array.isArray(payload) ? payload : [payload];
  return payloads.some(({ method, params }) => {
    const [filter] = params as [{ fromBlock?: string; toBlock?: string }?];
    return method === 'eth_getLogs' && filter?.fromBlock !== filter?.toBlock;
  });
}
