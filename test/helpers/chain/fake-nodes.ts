import { makeError, toQuantity } from 'ethers';
import type { Time } from '../../../service/base/time';
import { chainOfOne, type Chain } from '../../../service/chain/chain';
import { findNetwork, type Network } from '../../../service/chain/networks';
import { nothingLearned, type Node } from '../../../service/chain/node';
import { VirtualTime } from '../virtual-time';

/** A network with a block every two seconds. */
export const AMOY = findNetwork('80002') as Network;

/** The answer to a block tag: the number of a block, no block, or an error. */
export type TagAnswer = number | null | Error;

const HANGS_MS = 30_000;

/** A node that answers from its fields, in virtual time. Its blocks have a hash that names its branch. */
export class FakeNode implements Node {
  chainId = AMOY.chainId;
  head = 100;
  branch = '';
  /** The answer to `finalized`. */
  final: TagAnswer = null;
  latencyMs = 10;
  absence: 'refused' | 'hanging' | undefined;
  /** Methods that hang while the node answers others. */
  hangs: readonly string[] = [];
  readonly learned = nothingLearned();
  /** Methods that it was asked, in order. */
  readonly asked: string[] = [];

  constructor(
    readonly name: string,
    readonly time: VirtualTime,
  ) {}

  sendBatch(method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]> {
    return Promise.all(params.map((one) => this.send(method, one)));
  }

  subscribe(): () => void {
    return () => undefined;
  }

  close(): void {
    // Nothing is open.
  }

  async send(method: string, [block]: readonly unknown[]): Promise<unknown> {
    this.asked.push(method);
    const isHanging = this.absence === 'hanging' || this.hangs.includes(method);
    await this.time.sleep(isHanging ? HANGS_MS : this.latencyMs);
    if (isHanging) throw makeError('no answer', 'TIMEOUT', { operation: 'request', reason: 'timeout' });
    if (this.absence === 'refused') throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    if (method === 'eth_chainId') return toQuantity(this.chainId);
    if (method === 'eth_blockNumber') return toQuantity(this.head);
    if (method !== 'eth_getBlockByNumber') return '0x1';
    if (block === 'latest') return this.#block(this.head);
    if (block !== 'finalized') return this.#block(Number(block));
    if (this.final instanceof Error) throw this.final;
    return this.final === null ? null : this.#block(this.final);
  }

  #block(number: number): unknown {
    if (number > this.head) return null;
    const hashOf = (one: number): string => `${this.branch}${toQuantity(one)}`;
    return {
      number: toQuantity(number),
      hash: hashOf(number),
      parentHash: hashOf(number - 1),
      timestamp: toQuantity(number * 2),
    };
  }
}

/** Runs `act` with so many nodes in virtual time. No second of it is waited for. */
export async function withFakeNodes(
  count: number,
  act: (nodes: FakeNode[], time: VirtualTime) => Promise<void>,
): Promise<void> {
  const time = new VirtualTime();
  const nodes = Array.from({ length: count }, (_, index) => new FakeNode(`http://node-${index + 1}`, time));
  await time.settled(act(nodes, time));
}

/** A chain of one node that answers by `send`. */
export function chainOf(send: Node['send'], time: Time = new VirtualTime()): Chain {
  const node: Node = {
    name: 'http://node',
    time,
    learned: nothingLearned(),
    send,
    sendBatch: (method, params) => Promise.all(params.map((one) => send(method, one))),
    subscribe: () => () => undefined,
    close: () => undefined,
  };
  return chainOfOne(node);
}
