import { setTimeout as sleep } from 'node:timers/promises';
import {
  JsonRpcProvider,
  type JsonRpcApiProviderOptions,
  type JsonRpcPayload,
  type JsonRpcResult,
  type Networkish,
} from 'ethers';
import { createHttpTransport, type HttpTransport } from './http-transport';
import { isThrottled } from './refusals';
import { retryIdempotent } from './retry-idempotent';

/** Attempts of a request that the provider throttles. The pauses before them take 16 seconds on average. */
const ATTEMPTS = 7;
const FIRST_PAUSE_MS = 500;

/** A provider over HTTP that repeats requests after connection failures, and throttled ones. */
export class HttpRpcClient extends JsonRpcProvider {
  /** Public so that tests can observe requests. */
  readonly transport: HttpTransport;

  constructor(url: string, chain: Networkish, options: JsonRpcApiProviderOptions, timeoutMs: number) {
    // The parent never uses its own URL: all of its requests go through `_send`.
    super(undefined, chain, options);
    this.transport = createHttpTransport(url, timeoutMs);
  }

  override _send(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    return retryIdempotent(payload, () => this.#sendPatiently(payload));
  }

  async #sendPatiently(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return (await this.transport.send(payload)) as JsonRpcResult[];
      } catch (cause) {
        if (attempt === ATTEMPTS || !isThrottled(cause)) throw cause;
        await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1) * Math.random());
      }
    }
  }

  override destroy(): void {
    this.transport.close();
    super.destroy();
  }
}
