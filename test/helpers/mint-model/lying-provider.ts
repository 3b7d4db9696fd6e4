import { Part, type ScenarioParts } from './faults';
import type { Answerer, HttpAnswer, RpcAnswer, RpcCall } from '../chain/rpc-proxy';
import { DEPLOYER } from '../chain/local-setup';
import type { SeededRandom } from '../seeded-random';
import { hex, type UnsteadyChain } from './unsteady-chain';

type Decision = 'drop request' | RpcAnswer | HttpAnswer;

/**
 * A process of the service. It may be killed before or after each of its steps: statements of the journal and
 * sent transactions.
 */
export interface Mortal {
  readonly isDead: boolean;
  step(moment: 'before' | 'after'): void;
}

interface Arrived {
  key: string;
  admit: () => void;
}

const USUAL_MS = 40;
const SLOW_MS = 8_000;
/** The most blocks by which a backend is behind. */
const MOST_BEHIND = 2;

/** Refusals that a provider may give whether or not it passed the transaction on. */
const LIES = [
  { code: -32603, message: 'Internal error' },
  { code: -32000, message: 'the transaction could not be processed' },
  { code: -32005, message: 'rate limit exceeded' },
  { code: -32000, message: 'server is busy, try again later' },
  { code: -32000, message: 'txpool is full' },
  { code: -32000, message: 'request timed out' },
  { code: -32000, message: 'nonce too low' },
  { code: -32000, message: 'nonce too high' },
  { code: -32000, message: 'replacement transaction underpriced' },
  { code: -32000, message: 'transaction underpriced' },
  { code: -32000, message: 'already known' },
];
/** Refusals that a provider gives only if it did not pass the transaction on: no node has it. */
const DENIALS = [
  { code: -32000, message: 'insufficient funds for gas * price + value' },
  { code: -32000, message: 'intrinsic gas too low' },
];
/** Refusals for which a mint is given up if they are repeated. */
const BELIEVED = [
  { code: -32000, message: 'the transaction could not be processed' },
  { code: -32000, message: 'transaction underpriced' },
];

/** Sending a transaction more often than this within SENDS_WITHIN_MS is a violation. */
const MOST_SENDS = 30;
const SENDS_WITHIN_MS = 10_000;

const GATEWAYS: HttpAnswer[] = [
  { status: 502 },
  { status: 503, body: 'try again' },
  { status: 429, body: 'slow down' },
];

/**
 * Answers like a provider that has several nodes, loses connections and gives false answers.
 */
export class LyingProvider extends Part {
  /** The times when each transaction was sent, keyed by its bytes. */
  readonly #sent = new Map<string, number[]>();
  /** The refusal of the transactions of each token; undefined: they are treated as others. */
  readonly #refusals = new Map<string, RpcAnswer | undefined>();
  #arrived: Arrived[] = [];
  /**
   * Constants of a scenario: the false answers of its nodes, how often they pass on a refused transaction,
   * and the block of their estimates.
   */
  readonly #lies: RpcAnswer[];
  readonly #passedOn: number;
  readonly #estimatesAt: 'latest' | 'pending';

  /** @param nonceKeptFor the nonce under which the journal has a transaction. */
  constructor(
    parts: ScenarioParts,
    random: SeededRandom,
    private readonly nonceKeptFor: (hash: string) => Promise<number | undefined>,
  ) {
    super(parts, random);
    const all = [...LIES, ...DENIALS];
    const few = Array.from({ length: 1 + random.below(3) }, () => random.pick(all));
    this.#lies = (random.chance(0.5) ? all : few).map((error) => ({ error }));
    this.#passedOn = random.fraction();
    this.#estimatesAt = random.chance(0.5) ? 'latest' : 'pending';
  }

  /** The answerer of a proxy in front of one process of the service. */
  answererFor(mortal: Mortal): Answerer {
    return async (method, params) => {
      const { time } = this.parts;
      if (mortal.isDead) return 'drop request';
      // Time goes on while the call waits for its turn.
      time.end();
      const decision = await new Promise<Decision>((resolve, reject) => {
        const admit = (): void => void this.#serve({ method, params }, mortal).then(resolve, reject);
        this.#arrived.push({ key: `${method} ${JSON.stringify(params)}`, admit });
      });
      time.begin();
      return decision;
    };
  }

  /** Admits the calls that arrived together, in an order that does not depend on sockets. */
  admit(): void {
    const arrived = this.#arrived.sort((left, right) => (left.key < right.key ? -1 : 1));
    this.#arrived = [];
    for (const { admit } of arrived) admit();
  }

  async #serve(call: RpcCall, mortal: Mortal): Promise<Decision> {
    const { time } = this.parts;
    const random = this.random;
    const isLost = { request: this.strikes('lost request'), answer: this.strikes('lost answer') };
    const isGateway = this.strikes('gateway');
    const isOnItsWay = random.chance(0.5);
    await time.sleep(this.#latency());
    if (call.method === 'eth_sendRawTransaction') {
      mortal.step('before');
      await this.#judgeSending(String(call.params[0]));
    }
    if (mortal.isDead && !isOnItsWay) return 'drop request';
    if (isLost.request) return this.#lose(call, 'request');
    if (isGateway && random.chance(0.5)) return random.pick(GATEWAYS);
    const answer = await this.#answer(call);
    if (call.method === 'eth_sendRawTransaction') mortal.step('after');
    await time.sleep(this.#latency());
    if (isLost.answer) return this.#lose(call, 'answer');
    return isGateway ? random.pick(GATEWAYS) : answer;
  }

  #latency(): number {
    return 1 + this.random.below(this.strikes('slow') ? SLOW_MS : USUAL_MS);
  }

  #lose({ method, params }: RpcCall, what: string): 'drop request' {
    if (method === 'eth_sendRawTransaction')
      this.parts.history.note(`${what} lost: ${this.#mintIn(params[0])}`);
    return 'drop request';
  }

  async #judgeSending(raw: string): Promise<void> {
    const { chain, history, time } = this.parts;
    const now = time.now();
    const lately = (this.#sent.get(raw) ?? []).filter((at) => at > now - SENDS_WITHIN_MS);
    this.#sent.set(raw, [...lately, now]);
    if (lately.length === MOST_SENDS) history.violation(`sent again and again: ${this.#mintIn(raw)}`);
    const { hash, nonce, from } = chain.read(raw);
    const kept = await this.nonceKeptFor(hash);
    if (kept === undefined) history.violation(`sent and not kept: ${this.#mintIn(raw)}`);
    else if (kept !== nonce) history.violation(`sent and kept under nonce ${kept}: ${this.#mintIn(raw)}`);
    if (from !== DEPLOYER) history.violation(`sent and signed by ${from}: ${this.#mintIn(raw)}`);
  }

  #mintIn(raw: unknown): string {
    const { chain, history } = this.parts;
    const { tokenId, nonce, hash } = chain.read(String(raw));
    return `${history.nameOf(tokenId)} nonce ${nonce} ${hash}`;
  }

  #answer({ method, params }: RpcCall): Promise<RpcAnswer> {
    const { chain } = this.parts;
    if (method === 'eth_sendRawTransaction') return this.#take(String(params[0]));
    if (method === 'eth_getTransactionByHash' && this.strikes('unknown hash'))
      return Promise.resolve({ result: null });
    if (method === 'eth_estimateGas') return chain.ask(method, [params[0], this.#estimatesAt]);
    if (!this.strikes('stale')) return chain.ask(method, params);
    const last = Math.max(chain.head - 1 - this.random.below(MOST_BEHIND), chain.base);
    return answerUpTo(chain, last, { method, params }, () => this.random.chance(0.5));
  }

  /** The answer to every transaction of a mint that is lost and refused. */
  #refusalOf(raw: string): RpcAnswer | undefined {
    const { tokenId = '' } = this.parts.chain.read(raw);
    if (!this.#refusals.has(tokenId))
      this.#refusals.set(
        tokenId,
        this.strikes('lost and refused') ? { error: this.random.pick(BELIEVED) } : undefined,
      );
    return this.parts.faults.has('lost and refused') ? this.#refusals.get(tokenId) : undefined;
  }

  /** The node accepts a transaction that is new to it, forgets it, and refuses it from then on. */
  async #loseAndRefuse(raw: string, refusal: RpcAnswer): Promise<RpcAnswer> {
    const { chain, history } = this.parts;
    const { hash } = chain.read(raw);
    history.note(`lost and refused: ${this.#mintIn(raw)}, told ${JSON.stringify(refusal)}`);
    if (chain.heard.has(hash)) return refusal;
    const answer = await chain.send(raw);
    if ('result' in answer) await chain.forget(hash);
    return answer;
  }

  async #take(raw: string): Promise<RpcAnswer> {
    const { chain, history } = this.parts;
    const random = this.random;
    const name = this.#mintIn(raw);
    const refusal = this.#refusalOf(raw);
    if (refusal !== undefined) return this.#loseAndRefuse(raw, refusal);
    const lies = this.strikes('false refusal');
    const lie = random.pick(this.#lies);
    const isDenial = 'error' in lie && DENIALS.includes(lie.error);
    const isPassedOn = random.chance(this.#passedOn) && !isDenial;
    if (this.strikes('swallowed')) {
      history.note(`swallowed: ${name}`);
      return { result: chain.read(raw).hash };
    }
    const answer = lies && !isPassedOn ? undefined : await chain.send(raw);
    const truth = answer && ('error' in answer ? `refused "${answer.error.message}"` : 'taken');
    history.note(`sent ${name}: ${truth ?? 'not passed on'}${lies ? `, told ${JSON.stringify(lie)}` : ''}`);
    return lies || answer === undefined ? lie : answer;
  }
}

/**
 * The answer of a node that does not have the blocks after `last`. A question about the state at a missing
 * block is an error.
 *
 * @param refusesLogs whether a question about the logs of missing blocks is an error too.
 */
export async function answerUpTo(
  chain: Pick<UnsteadyChain, 'ask'>,
  last: number,
  { method, params }: RpcCall,
  refusesLogs: () => boolean,
): Promise<RpcAnswer> {
  const [first, second] = params;
  switch (method) {
    case 'eth_blockNumber':
      return { result: hex(last) };
    case 'eth_getTransactionCount':
    case 'eth_call':
    case 'eth_getCode':
      if (isNumber(second) && Number(second) > last) return headerNotFound();
      return chain.ask(method, [first, isNumber(second) ? second : hex(last)]);
    case 'eth_getBlockByNumber':
      if (isNumber(first)) return Number(first) > last ? { result: null } : chain.ask(method, params);
      return chain.ask(method, [hex(last), second]);
    case 'eth_getTransactionReceipt':
      return upTo(last, await chain.ask(method, params));
    case 'eth_getLogs': {
      const { toBlock } = first as { toBlock?: string };
      if (isNumber(toBlock) && Number(toBlock) > last && refusesLogs()) return headerNotFound();
      return upTo(last, await chain.ask(method, params));
    }
    default:
      return chain.ask(method, params);
  }
}

function isNumber(block: unknown): boolean {
  return typeof block === 'string' && block.startsWith('0x');
}

function headerNotFound(): RpcAnswer {
  return { error: { code: -32000, message: 'header not found' } };
}

/** A receipt or logs, without those of later blocks. */
function upTo(last: number, answer: RpcAnswer): RpcAnswer {
  if ('error' in answer || answer.result === null) return answer;
  const isThere = ({ blockNumber }: { blockNumber: string }): boolean => Number(blockNumber) <= last;
  const { result } = answer as { result: { blockNumber: string } | { blockNumber: string }[] };
  if (Array.isArray(result)) return { result: result.filter(isThere) };
  return { result: isThere(result) ? result : null };
}
