import {
  JsonRpcProvider,
  type JsonRpcApiProviderOptions,
  type JsonRpcPayload,
  type JsonRpcResult,
  type Networkish,
} from 'ethers';
import { retryIdempotent } from './retry-idempotent';
import { answersTo } from './rpc-answer';
import { openSocket, type SocketConnection } from './socket-connection';

/**
 * A provider over WebSocket that reconnects. It connects for the first request, and again after the
 * connection was lost. ethers' own WebSocketProvider does neither, and a refused connection ends the process.
 */
export class SocketRpcClient extends JsonRpcProvider {
  readonly #url: string;
  readonly #timeoutMs: number;
  readonly #newHeadListeners = new Set<() => void>();
  #connection: Promise<SocketConnection> | undefined;
  #isDestroyed = false;

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
    const answers = requests.map((request) =>
      connection.ask(request.id, JSON.stringify(request), this.#timeoutMs),
    );
    return answersTo(payload, await Promise.all(answers)) as JsonRpcResult[];
  }

  /** Calls the listener for each new block that the node reports, on the current and later connections. */
  onNewHead(listener: () => void): () => void {
    this.#newHeadListeners.add(listener);
    void this.#connection?.then(subscribe, () => undefined);
    return () => this.#newHeadListeners.delete(listener);
  }

  override destroy(): void {
    this.#isDestroyed = true;
    void this.#connection?.then(
      (connection) => connection.close(),
      () => undefined,
    );
    super.destroy();
  }

  #connected(): Promise<SocketConnection> {
    if (this.#isDestroyed) return Promise.reject(new Error('the provider was destroyed'));
    this.#connection ??= this.#connect();
    return this.#connection;
  }

  async #connect(): Promise<SocketConnection> {
    const connection = await openSocket(this.#url, this.#timeoutMs, {
      onClosed: () => {
        this.#connection = undefined;
      },
      onNewHead: () => {
        for (const listener of this.#newHeadListeners) listener();
      },
    });
    if (this.#newHeadListeners.size > 0) subscribe(connection);
    return connection;
  }
}

const subscribed = new WeakSet<SocketConnection>();

/**
 * Subscribes to new blocks, once per connection. A node without subscriptions refuses, and new blocks are
 * found by polling. Id 0 is free, because the ids of requests are positive.
 */
function subscribe(connection: SocketConnection): void {
  if (subscribed.has(connection)) return;
  subscribed.add(connection);
  connection.tell(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'eth_subscribe', params: ['newHeads'] }));
}
