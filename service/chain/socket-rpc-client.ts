import {
  JsonRpcProvider,
  type JsonRpcApiProviderOptions,
  type JsonRpcPayload,
  type JsonRpcResult,
  type Networkish,
} from 'ethers';
import { retryIdempotent } from './retry-idempotent';
import { openSocket, type SocketConnection } from './socket-connection';

/**
 * A provider over WebSocket that survives its connection: it connects when something is asked, and again after the connection was
 * lost. ethers' own WebSocketProvider does neither; a refused connection ends the process.
 */
export class SocketRpcClient extends JsonRpcProvider {
  readonly #url: string;
  readonly #timeoutMs: number;
  #connection: Promise<SocketConnection> | undefined;

  constructor(url: string, chain: Networkish, options: JsonRpcApiProviderOptions, timeoutMs: number) {
    // The parent never uses its own URL: all of its requests go through `_send`.
    super(url.replace(/^ws/, 'http'), chain, options);
    this.#url = url;
    this.#timeoutMs = timeoutMs;
  }

  override _send(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    return retryIdempotent(payload, () => this.#sendOnce(payload));
  }

  async #sendOnce(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    const connection = await this.#connected();
    const requests = Array.isArray(payload) ? payload : [payload];
    const answers = requests.map(
      (request) =>
        connection.ask(request.id, JSON.stringify(request), this.#timeoutMs) as Promise<JsonRpcResult>,
    );
    return Promise.all(answers);
  }

  override destroy(): void {
    void this.#connection?.then(
      (connection) => connection.close(),
      () => undefined,
    );
    super.destroy();
  }

  #connected(): Promise<SocketConnection> {
    this.#connection ??= openSocket(this.#url, this.#timeoutMs, () => {
      this.#connection = undefined;
    });
    return this.#connection;
  }
}
