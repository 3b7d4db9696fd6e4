import { AbiCoder, FetchResponse, JsonRpcApiProvider, keccak256, makeError } from 'ethers';
import { nothingLearned, type Node } from '../../../service/chain/node';
import { mintTopics } from '../../../service/minting/node';
import { registryInterface } from '../../../service/registry/registry-contracts';
import { answerAs, type NodeProgram } from '../chain/other-nodes';
import type { Answerer, RpcAnswer, RpcCall } from '../chain/rpc-proxy';
import { ofRemovedBlock, renumber, type Counting } from '../chain/unusual-logs';
import { answerUpTo } from '../mint-model/lying-provider';
import { hex, type UnsteadyChain } from '../mint-model/unsteady-chain';
import type { VirtualTime } from '../virtual-time';
import type { SeededRandom } from '../seeded-random';

/**
 * How a faulty node answers:
 *
 * - `behind`: it does not have the newest blocks.
 * - `omits`: it leaves out logs, also of receipts.
 * - `invents`: it adds and changes logs, and gives receipts and tokens that do not exist.
 * - `forgets`: it has no transactions, receipts and logs, and swallows transactions.
 * - `fork`: it has other blocks than the others from some block on.
 * - `removed`: it gives logs of blocks that are gone, without a mark, beside those of a range.
 * - `absurd`: its heads and counts are far too high or too low.
 * - `hangs`, `refuses`.
 * - `wild`: each answer is of another one of these.
 */
export const LIES = [
  'honest',
  'behind',
  'omits',
  'invents',
  'forgets',
  'fork',
  'removed',
  'absurd',
  'hangs',
  'refuses',
  'wild',
] as const;
export type Lie = (typeof LIES)[number];

/** How a node is away. */
export type Absence = 'refused' | 'hanging';

/** The chain, and when each of its blocks was mined. */
export interface ObservedChain {
  chain: UnsteadyChain;
  registryAddress: string;
  minedAt: ReadonlyMap<number, number>;
  time: VirtualTime;
  random: SeededRandom;
}

type Log = Record<string, string | string[] | boolean>;
type Block = Record<string, unknown>;

const LATENCY_MS = 40;
const TIMEOUT_MS = 30_000;
/** An honest node has a block this long after it was mined, at most. */
const LONGEST_DELAY_MS = 600;
const MOST_BEHIND = 30;
const DEEPEST_FORK = 6;
const ABSURD_HEADS = [0, 1, 1_000_000, 2 ** 53 - 2];
const ABSURD_COUNTS = [0, 1_000_000, 2 ** 40];
const UNKNOWN_BLOCK: RpcAnswer = { error: { code: -32000, message: 'unknown block' } };

/** A node of the simulated chain, which may lie or be away. */
export class ModelNode implements Node {
  /** Honest nodes count logs in different ways too. */
  counting: Counting = { logs: 'block', receipts: 'block' };
  /** Whether it also gives logs of blocks that are gone, marked as removed. */
  givesRemoved = false;
  lie: Lie = 'honest';
  program: NodeProgram | undefined;
  /** Its habits, if it answers like a public node. */
  profile: Answerer | undefined;
  absence: Absence | undefined;
  readonly time: VirtualTime;
  readonly learned = nothingLearned();
  readonly #delayMs: number;
  #behind = 0;
  #forkedAt = 0;
  #fork = '';
  /** Undefined: another one in each answer. */
  #absurdHead: number | undefined;
  #absurdCount: number | undefined;
  /** Logs that it gave before. */
  readonly #seen: Log[] = [];

  constructor(
    readonly name: string,
    private readonly observed: ObservedChain,
  ) {
    this.time = observed.time;
    this.#delayMs = observed.random.below(LONGEST_DELAY_MS);
  }

  async send(method: string, params: readonly unknown[]): Promise<unknown> {
    const answer = await this.#answer({ method, params });
    if ('result' in answer) return answer.result;
    const call = { jsonrpc: '2.0' as const, id: 1, method, params: [...params] };
    throw JsonRpcApiProvider.prototype.getRpcError(call, { id: 1, ...answer });
  }

  sendBatch(method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]> {
    return Promise.all(params.map((one) => this.send(method, one)));
  }

  subscribe(): () => void {
    return () => undefined;
  }

  close(): void {
    // Nothing is open.
  }

  /** Begins to lie in another way. */
  begin(lie: Lie): void {
    const { chain, random } = this.observed;
    this.lie = lie;
    this.#behind = 1 + random.below(MOST_BEHIND);
    this.#forkedAt = Math.max(chain.head - random.below(DEEPEST_FORK), chain.base + 1);
    this.#fork = random.hex(8);
    const isSteady = random.chance(0.7);
    this.#absurdHead = isSteady ? random.pick(ABSURD_HEADS) : undefined;
    this.#absurdCount = isSteady ? random.pick(ABSURD_COUNTS) : undefined;
  }

  async #answer(call: RpcCall): Promise<RpcAnswer> {
    const { time, random } = this.observed;
    await time.sleep(1 + random.below(LATENCY_MS));
    const lie = this.lie === 'wild' ? random.pick(LIES) : this.lie;
    if (this.absence === 'refused') throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    if (this.absence === 'hanging' || lie === 'hangs') {
      await time.sleep(TIMEOUT_MS);
      throw makeError('no answer', 'TIMEOUT', { operation: 'request', reason: 'timeout' });
    }
    const { program, profile } = this;
    const forward = (params = call.params): Promise<RpcAnswer> => {
      const forwarded = { ...call, params };
      const ask = (): Promise<RpcAnswer> => this.#answerAs(lie, forwarded);
      return program ? answerAs(program, forwarded, ask) : ask();
    };
    const decision = profile === undefined ? 'none' : await profile(call.method, call.params, forward);
    const answer = decision === 'none' ? await forward() : decision;
    await time.sleep(1 + random.below(LATENCY_MS));
    if (typeof answer === 'string') throw new Error(`a profile does not ${answer}`);
    if (!('status' in answer)) return answer;
    const { status, body = '' } = answer;
    const response = new FetchResponse(status, '', {}, null);
    const info = { responseBody: String(body) };
    throw makeError(`server response ${status}`, 'SERVER_ERROR', { request: '', response, info });
  }

  async #answerAs(lie: Lie, call: RpcCall): Promise<RpcAnswer> {
    switch (lie) {
      case 'behind':
        return this.#truth(call, Math.max(this.observed.chain.head - this.#behind, this.observed.chain.base));
      case 'omits':
        return this.#omit(await this.#truth(call), call);
      case 'invents':
        return this.#invent(await this.#truth(call), call);
      case 'forgets':
        return this.#forget(call);
      case 'fork':
        return this.#answerOfFork(call);
      case 'removed':
        return this.#withRemoved(await this.#truth(call), call, false);
      case 'absurd':
        return this.#exaggerate(call);
      case 'refuses':
        return { error: { code: -32000, message: 'internal error' } };
      default:
        return this.#truth(call);
    }
  }

  /** What the chain says, up to the newest block that the node has. */
  async #truth(call: RpcCall, last = this.#newest()): Promise<RpcAnswer> {
    const { chain } = this.observed;
    const { method, params } = call;
    if (method === 'eth_sendRawTransaction') return chain.send(String(params[0]));
    const { blockHash } = (params[0] ?? {}) as { blockHash?: string };
    if (method === 'eth_getLogs' && blockHash !== undefined) {
      const block = await chain.ask('eth_getBlockByHash', [blockHash, false]);
      const { number } = (('result' in block ? block.result : null) ?? {}) as { number?: string };
      if (number === undefined || Number(number) > last) return UNKNOWN_BLOCK;
    }
    const told = await answerUpTo(chain, last, call, () => true);
    const answer = await renumber(method, told, this.counting, (...one) => chain.ask(...one));
    if (method === 'eth_getLogs' && 'result' in answer) this.#remember(answer.result as Log[]);
    return this.givesRemoved ? this.#withRemoved(answer, call, true) : answer;
  }

  /** Gives a log a second time, as that of a block that is gone. Without a mark, only in a range. */
  #withRemoved(answer: RpcAnswer, { method, params }: RpcCall, isMarked: boolean): RpcAnswer {
    const { fromBlock, toBlock } = (params[0] ?? {}) as { fromBlock?: string; toBlock?: string };
    if (method !== 'eth_getLogs' || 'error' in answer || (!isMarked && fromBlock === toBlock)) return answer;
    const logs = answer.result as Log[];
    return { result: [...logs.slice(0, 1).map((log) => ofRemovedBlock(log, isMarked)), ...logs] };
  }

  #newest(): number {
    const { chain, minedAt, time } = this.observed;
    let last = chain.head;
    while (last > chain.base && (minedAt.get(last) ?? 0) + this.#delayMs > time.now()) last--;
    return last;
  }

  #remember(logs: readonly Log[]): void {
    this.#seen.push(...logs);
    this.#seen.splice(0, Math.max(this.#seen.length - 50, 0));
  }

  #omit(answer: RpcAnswer, { method }: RpcCall): RpcAnswer {
    const { random } = this.observed;
    if ('error' in answer || answer.result === null) return answer;
    const some = (logs: Log[]): Log[] =>
      random.chance(0.5) ? [] : logs.slice(random.below(logs.length + 1));
    if (method === 'eth_getLogs') return { result: some(answer.result as Log[]) };
    if (method !== 'eth_getTransactionReceipt') return answer;
    const receipt = answer.result as { logs: Log[] };
    return { result: { ...receipt, logs: some(receipt.logs) } };
  }

  async #invent(answer: RpcAnswer, { method, params }: RpcCall): Promise<RpcAnswer> {
    const { chain, random, registryAddress } = this.observed;
    if (method === 'eth_getLogs' && 'result' in answer)
      return { result: await this.#inventLogs(answer, params) };
    if (method === 'eth_getTransactionReceipt') {
      const heard = chain.heard.get(String(params[0]));
      const block = await this.#blockAt(chain.head);
      if (heard?.tokenId === undefined) return answer;
      const log = {
        address: registryAddress,
        topics: mintTopics(heard.tokenId),
        data: '0x',
        logIndex: '0x0',
      };
      const place = { blockNumber: block.number, blockHash: block.hash, transactionHash: heard.hash };
      const status = random.chance(0.5) ? '0x1' : '0x0';
      const logs = status === '0x1' ? [{ ...log, ...place }] : [];
      return { result: { ...place, status, gasUsed: hex(100_000), logs } };
    }
    if (method !== 'eth_call') return answer;
    const { data = '' } = params[0] as { data?: string };
    const name = registryInterface.parseTransaction({ data })?.name;
    const someone = AbiCoder.defaultAbiCoder().encode(['address'], [`0x${random.hex(20).slice(2)}`]);
    if (name === 'ownerOf') return { result: someone };
    return name === 'titleEscrowFactory' || data.length === 10 ? { result: someone } : answer;
  }

  async #inventLogs(answer: { result: unknown }, [filter]: readonly unknown[]): Promise<Log[]> {
    const { chain, random } = this.observed;
    const logs = answer.result as Log[];
    const { toBlock } = filter as { toBlock?: string };
    const number = toBlock === undefined ? chain.head : Number(toBlock);
    const block = await this.#blockAt(Math.min(number, chain.head));
    const old = this.#seen.length === 0 ? [] : [random.pick(this.#seen)];
    const invented = old.map((log) => ({
      ...log,
      blockNumber: String(block.number),
      blockHash: (filter as { blockHash?: string }).blockHash ?? String(block.hash),
      transactionHash: random.hex(32),
      logIndex: hex(random.below(200)),
    }));
    const changed = logs.map((log) => (random.chance(0.5) ? { ...log, data: `${String(log.data)}00` } : log));
    return [...(random.chance(0.5) ? changed : logs), ...invented];
  }

  async #forget({ method, params }: RpcCall): Promise<RpcAnswer> {
    switch (method) {
      case 'eth_getLogs':
        return { result: [] };
      case 'eth_getTransactionReceipt':
      case 'eth_getTransactionByHash':
        return { result: null };
      case 'eth_getTransactionCount':
        return { result: '0x0' };
      case 'eth_sendRawTransaction':
        return { result: keccak256(String(params[0])) };
      default:
        return this.#truth({ method, params });
    }
  }

  /** From `forkedAt` on, its blocks are others, and empty. */
  async #answerOfFork(call: RpcCall): Promise<RpcAnswer> {
    const { method, params } = call;
    const [first] = params;
    const { blockHash, fromBlock } = (first ?? {}) as { blockHash?: string; fromBlock?: string };
    if (method === 'eth_getBlockByNumber') {
      const number = String(first).startsWith('0x') ? Number(first) : this.#newest() + 1;
      return number < this.#forkedAt ? this.#truth(call) : { result: await this.#forkedBlock(number) };
    }
    if (method === 'eth_getLogs' && blockHash?.startsWith(this.#fork)) return { result: [] };
    if (method === 'eth_getLogs' && fromBlock !== undefined && Number(fromBlock) >= this.#forkedAt)
      return { result: [] };
    if (method === 'eth_getTransactionReceipt') return { result: null };
    if (method === 'eth_blockNumber') return { result: hex(this.#newest() + 1) };
    return this.#truth(call);
  }

  async #forkedBlock(number: number): Promise<Block> {
    const truth = await this.#blockAt(Math.min(number, this.observed.chain.head));
    const hashOf = (one: number): string =>
      this.#fork + one.toString(16).padStart(66 - this.#fork.length, '0');
    const before = await this.#blockAt(this.#forkedAt - 1);
    const parentHash = number === this.#forkedAt ? before.hash : hashOf(number - 1);
    return { ...truth, number: hex(number), hash: hashOf(number), parentHash, transactions: [] };
  }

  async #exaggerate(call: RpcCall): Promise<RpcAnswer> {
    const { method, params } = call;
    const { random } = this.observed;
    const head = hex(this.#absurdHead ?? random.pick(ABSURD_HEADS));
    if (method === 'eth_blockNumber') return { result: head };
    if (method === 'eth_getTransactionCount')
      return { result: hex(this.#absurdCount ?? random.pick(ABSURD_COUNTS)) };
    const answer = await this.#truth(call);
    if (method !== 'eth_getBlockByNumber' || params[0] !== 'latest' || 'error' in answer) return answer;
    return { result: { ...(answer.result as Block), number: head } };
  }

  async #blockAt(number: number): Promise<Block> {
    return (await this.observed.chain.call('eth_getBlockByNumber', hex(number), false)) as Block;
  }
}
