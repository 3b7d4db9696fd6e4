import { JsonRpcProvider, Network as EthersNetwork, type JsonRpcPayload } from 'ethers';
import type { Time } from '../base/time';
import type { Network } from './networks';
import { createNode, type Learned, type Params, type RpcNode, type Use } from './node';
import type { Reading } from './read-chain';

/** An ethers provider for one chain, over HTTP or WebSocket. */
export type RpcClient = JsonRpcProvider & {
  /** The time of its pauses and limits. */
  readonly time: Time;
  readonly learned?: Learned;
  /**
   * WebSocket only: calls the listener for each new block that the node reports, until the returned function
   * is called.
   */
  onNewHead?(listener: () => void): () => void;
  /** WebSocket only: the newest block as the node reported it, once. Undefined if it reported none since. */
  takeReportedHead?(): unknown;
  /**
   * `bulk`, or over WebSocket: calls the method once for each entry of `params`, several calls at a time.
   * The results are in the same order.
   */
  sendBatches?(method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]>;
  /**
   * Several nodes only: asks one of them. The next time that the same question is asked, another one must
   * confirm the answer.
   */
  sendUnconfirmed?(method: string, params: readonly unknown[]): Promise<unknown>;
  /** Several nodes only: what two of them read of these blocks, each in its own way. */
  agree?<T>(blocks: object, read: (node: RpcClient) => Promise<Reading<T>>): Promise<T>;
  /** Several nodes only: believes only what all nodes say that are not away. */
  readonly unanimous?: RpcClient;
};

/** The polling interval is the block time, within these bounds. */
const SHORTEST_POLLING_INTERVAL_MS = 200;
const LONGEST_POLLING_INTERVAL_MS = 4_000;

/** Creates a client of one node. ethers caches equal calls for 250 ms, which makes nonces and heads stale, so
 * the cache is off. */
export function createRpcClient(
  url: string,
  network: Network,
  time: Time,
  use: Use = 'single',
  timeoutMs?: number,
): RpcClient {
  const node = createNode(url, time, use, timeoutMs);
  const client = new NodeClient(node, network);
  if (node.reportsHeads || use === 'bulk')
    client.sendBatches = (method, params) => node.sendBatch(method, params);
  if (!node.reportsHeads) return client;
  let reported: unknown;
  client.onNewHead = (listener) =>
    node.subscribe((head) => {
      reported = head;
      listener();
    });
  client.takeReportedHead = () => {
    const head = reported;
    reported = undefined;
    return head;
  };
  return client;
}

class NodeClient extends JsonRpcProvider implements RpcClient {
  readonly time: Time;
  readonly learned: Learned;
  declare onNewHead?: NonNullable<RpcClient['onNewHead']>;
  declare takeReportedHead?: NonNullable<RpcClient['takeReportedHead']>;
  declare sendBatches?: NonNullable<RpcClient['sendBatches']>;

  constructor(
    readonly node: RpcNode,
    network: Network,
  ) {
    const options = ethersOptionsOf(network);
    super(undefined, options.staticNetwork, options);
    this.time = node.time;
    this.learned = node.learned;
  }

  override send(method: string, params: Params): Promise<unknown> {
    return this.node.send(method, params);
  }

  override async _send(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<never> {
    throw new Error(`requests go through the node, not ${JSON.stringify(payload)}`);
  }

  override destroy(): void {
    this.node.close();
    super.destroy();
  }
}

/** The options of ethers for a client of a network. */
export function ethersOptionsOf({ name, chainId, blockTimeMs }: Network) {
  // ethers' own entry for the chain is not used: for Polygon it asks a gas station of ethers' choice instead
  // of the node for the fees.
  const staticNetwork = new EthersNetwork(name, chainId);
  const pollingInterval = Math.min(
    Math.max(blockTimeMs, SHORTEST_POLLING_INTERVAL_MS),
    LONGEST_POLLING_INTERVAL_MS,
  );
  return { cacheTimeout: -1, batchMaxCount: 1, staticNetwork, pollingInterval };
}
