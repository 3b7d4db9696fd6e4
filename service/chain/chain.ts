import { isDeepStrictEqual } from 'node:util';
import { ChainError } from '../base/errors';
import type { Time } from '../base/time';
import type { Network } from './networks';
import { createNode, type Node, type Params, type Rpc, type Use } from './node';

/** The result of a reading of several calls. Readings of the same logs count as the same. */
export interface Reading<T> {
  value: T;
  /** The names of its logs (`nameLogs`). */
  names: readonly string[];
}

/**
 * A chain to ask. Its answers are those of one node, or those that two of several nodes give:
 * docs/decisions/0017-no-single-node-is-believed.md
 */
export interface Chain extends Rpc {
  /** Whether an answer is that of two nodes. */
  readonly isOfSeveral: boolean;
  /** The same chain, of which only that is believed which all nodes say that are not away. */
  readonly unanimous: Chain;
  /** Asks one node. The next time that the same is asked, another one must confirm the answer. */
  sendUnconfirmed(method: string, params: Params): Promise<unknown>;
  /**
   * The content on which two readings of these blocks agree: of two nodes, or of the only one.
   *
   * @throws ChainError ANSWERS_DIFFER, NODES_DIFFER (both retryable); any error of `read`.
   */
  agree<T>(blocks: object, read: (node: Rpc) => Promise<Reading<T>>): Promise<T>;
}

/** Connects to one node. `network`: `{}` if it is not known. `timeoutMs`: of each request. */
export function connectNode(
  url: string,
  network: Pick<Network, 'addressPrefix'>,
  time: Time,
  use?: Use,
  timeoutMs?: number,
): Chain {
  return chainOfOne(createNode(url, network, time, use, timeoutMs));
}

/** Makes a chain of one node. */
export function chainOfOne(node: Node): Chain & { node: Node } {
  const chain = {
    node,
    time: node.time,
    learned: node.learned,
    isOfSeveral: false,
    get unanimous(): Chain {
      return chain;
    },
    send: (method: string, params: Params) => node.send(method, params),
    sendUnconfirmed: (method: string, params: Params) => node.send(method, params),
    sendBatch: (method: string, params: readonly Params[]) => node.sendBatch(method, params),
    subscribe: (listener: (head: unknown) => void) => node.subscribe(listener),
    agree: <T>(_blocks: object, read: (node: Rpc) => Promise<Reading<T>>) => readTwice(node, read),
    close: () => node.close(),
  };
  return chain;
}

/** Readings of a node that differs from itself. */
const READINGS = 3;

/** Providers behind a load balancer sometimes omit logs, and an omitted log would never be read. */
async function readTwice<T>(node: Node, read: (node: Rpc) => Promise<Reading<T>>): Promise<T> {
  for (let reading = 1; reading <= READINGS; reading++) {
    const [one, other] = await Promise.all([read(node), read(node)]);
    if (isDeepStrictEqual(one.names, other.names)) return one.value;
  }
  const message = 'The node gives different logs each time it is asked for the same blocks.';
  throw new ChainError('ANSWERS_DIFFER', message);
}
