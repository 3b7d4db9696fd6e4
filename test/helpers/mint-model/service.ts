import { connectNode, type Chain } from '../../../service/chain/chain';
import type { Network } from '../../../service/chain/networks';
import type { Journal } from '../../../service/journal/journal';
import { createLogger, type Logger } from '../../../service/base/logger';
import type { TransactionSigner } from '../../../service/keys/transaction-signer';
import { createMintQueue, type MintQueue } from '../../../service/minting/mint-queue';
import { both } from '../chain/node-limits';
import { startRpcProxy, type Answerer, type RpcProxy } from '../chain/rpc-proxy';
import { queueOptions } from '../processes/running-mint-queue';
import type { SeededRandom } from '../seeded-random';
import type { History } from '../scenario';
import type { ScenarioParts } from './faults';
import type { LyingProvider, Mortal } from './lying-provider';
import { tellOfRequests } from '../virtual-time';

const LONGEST_DOWN_MS = 8_000;
const LONGEST_LIFE_MS = 30_000;
/** The most steps before a kill. Steps are statements of the journal and sent transactions. */
const MOST_STEPS = 60;
/** The share of processes that are stopped gracefully, if processes are killed at all. */
const STOPPED_IN_ORDER = 0.3;
const LOOK_EVERY_MS = 100;

/**
 * The service: one process after the other on the same journal. Each is killed or stopped until the faults
 * end.
 */
export class Service {
  readonly #lives: ServiceLife[] = [];

  constructor(private readonly surroundings: ServiceSurroundings) {}

  /** The last process, dead or alive. */
  get current(): ServiceLife | undefined {
    return this.#lives.at(-1);
  }

  async live(isOver: () => boolean): Promise<void> {
    const { time, history } = this.surroundings.parts;
    while (!isOver()) {
      const life = await ServiceLife.start(this.surroundings, this.#nextDeath());
      this.#lives.push(life);
      history.note(`process ${this.#lives.length} starts`);
      await this.#watch(life, isOver);
      if (!isOver()) await time.sleep(this.surroundings.random.below(LONGEST_DOWN_MS));
    }
    for (const life of this.#lives) await life.end();
  }

  /** Closes the clients and proxies of all processes. */
  async close(): Promise<void> {
    for (const life of this.#lives) await life.close();
  }

  /** Waits until the process has ended; stops it if that is how it ends. */
  async #watch(life: ServiceLife, isOver: () => boolean): Promise<void> {
    const { time, faults, history } = this.surroundings.parts;
    const isStopped = faults.has('kill') && this.surroundings.random.chance(STOPPED_IN_ORDER);
    const stopsAt = time.now() + this.surroundings.random.below(LONGEST_LIFE_MS);
    while (!isOver() && !life.isDead) {
      await time.sleep(LOOK_EVERY_MS);
      if (!isStopped || !faults.has('kill') || time.now() < stopsAt || life.isDead) continue;
      history.note('stopped');
      history.count('stop');
      await life.stop();
    }
  }

  #nextDeath(): Death {
    const step = 1 + this.surroundings.random.below(MOST_STEPS);
    const moment = this.surroundings.random.pick(['before', 'after'] as const);
    const afterMs = this.surroundings.random.below(LONGEST_LIFE_MS);
    if (!this.surroundings.parts.faults.has('kill')) return undefined;
    return this.surroundings.random.chance(0.7) ? { step, moment } : { afterMs };
  }
}

/** The time when a process is killed: before or after one of its steps, or after some milliseconds. */
type Death = { step: number; moment: 'before' | 'after' } | { afterMs: number } | undefined;

/** The parts that all processes of a scenario share. */
interface ServiceSurroundings {
  parts: ScenarioParts;
  random: SeededRandom;
  provider: LyingProvider;
  /** The node's habits before the provider's answers. */
  profile: Answerer | undefined;
  journal: Journal;
  wallet: TransactionSigner;
  registryAddress: string;
  network: Network;
}

/** The proxy never forwards a call. */
const NOWHERE = 'http://nowhere.invalid';

/**
 * One process of the service with its mint queue. After it is killed or stopped, it reaches neither the
 * journal nor the node.
 */
export class ServiceLife implements Mortal {
  readonly journal: Journal;
  private readonly parts: ScenarioParts;
  isDead = false;
  readonly #client: Chain;
  readonly #queue: MintQueue;
  /** Rejects when the process ends. */
  readonly #ended: Promise<never>;
  #end: (error: Error) => void = () => undefined;
  #steps = 0;
  #stopped: Promise<void> | undefined;

  static async start(surroundings: ServiceSurroundings, death: Death): Promise<ServiceLife> {
    const { provider, profile, parts } = surroundings;
    const proxy = await parts.time.real(startRpcProxy(NOWHERE));
    const life = new ServiceLife(surroundings, death, proxy);
    const answerer = provider.answererFor(life);
    proxy.answer(profile ? both(profile, answerer) : answerer);
    return life;
  }

  private constructor(
    { parts, random, journal, wallet, network, registryAddress }: ServiceSurroundings,
    private readonly death: Death,
    private readonly proxy: RpcProxy,
  ) {
    this.parts = parts;
    this.#ended = new Promise<never>((_, reject) => (this.#end = reject));
    // No caller may be waiting for it.
    this.#ended.catch(() => undefined);
    this.#client = connectNode(proxy.url, {}, parts.time);
    tellOfRequests(this.#client, parts.time);
    this.journal = mortalJournal(journal, parts, random, this);
    this.#queue = createMintQueue({
      ...queueOptions(this.#client, proxy.url, network),
      wallet,
      registryAddress,
      journal: this.journal,
      logger: loggerInto(parts.history),
      time: parts.time,
    });
    if (death && 'afterMs' in death) void parts.time.sleep(death.afterMs).then(() => this.#mayBeKilled());
  }

  /** Mints for a caller, whose connection breaks when the process ends. */
  mint(...given: Parameters<MintQueue['mint']>): Promise<string> {
    const minted = this.#queue.mint(...given);
    minted.catch(() => undefined);
    return Promise.race([minted, this.#ended]);
  }

  /** Called at each step; kills the process if this is its last. */
  step(moment: 'before' | 'after'): void {
    if (moment === 'before') this.#steps++;
    const { death } = this;
    if (death && 'step' in death && death.step === this.#steps && death.moment === moment)
      this.#mayBeKilled();
  }

  /** Stops the process gracefully. */
  async stop(): Promise<void> {
    this.#stopped ??= this.#queue.stop();
    await this.#stopped;
    this.#die();
  }

  /** Ends the process at once, and waits until none of its work is running. */
  async end(): Promise<void> {
    this.#die();
    await this.#stopped;
  }

  /** Closes its client and its proxy. */
  async close(): Promise<void> {
    this.#client.close();
    await this.proxy.close();
  }

  #mayBeKilled(): void {
    const { faults, history } = this.parts;
    if (this.isDead || !faults.has('kill')) return;
    history.count('kill');
    history.note('killed');
    this.#die();
  }

  #die(): void {
    this.isDead = true;
    this.#end(new Error('the process has ended'));
    this.#stopped ??= this.#queue.stop();
  }
}

type LogField = 'node' | 'tokenId' | 'nonce' | 'attempts' | 'reason';

interface LogLine extends Partial<Record<LogField, string | number>> {
  level: string;
  msg: string;
  error?: { code?: string; message: string };
}

export function loggerInto(history: History): Logger {
  const write = (line: string): void => {
    const { level, msg, error, ...fields } = JSON.parse(line) as LogLine;
    const cause = error === undefined ? '' : ` (${error.code ?? ''} ${error.message.slice(0, 160)})`;
    const { node, tokenId, nonce, attempts, reason } = fields;
    const said = [node, tokenId, nonce, attempts, reason].filter((field) => field !== undefined).join(' ');
    history.note(`${level}: ${msg} ${said}${cause}`);
  };
  return createLogger({ level: 'info', mask: (text) => text, destination: { write } });
}

type Statement = (...given: unknown[]) => Promise<unknown>;

const LONGEST_STATEMENT_MS = 20;

/**
 * A journal for a process that may be killed before or after every statement, and whose database may be
 * unreachable.
 */
function mortalJournal(
  journal: Journal,
  { time, faults, history }: ScenarioParts,
  random: SeededRandom,
  mortal: Mortal,
): Journal {
  const requireAlive = (): void => {
    if (mortal.isDead) throw new Error('the process is dead');
  };
  const statement =
    (name: string): Statement =>
    async (...given) => {
      const isAway = random.chance(faults.chanceOf('journal away', time.now()));
      const isAwayBefore = isAway && random.chance(0.5);
      await time.sleep(1 + random.below(LONGEST_STATEMENT_MS));
      requireAlive();
      mortal.step('before');
      requireAlive();
      if (isAway) history.count('journal away');
      if (isAwayBefore) throw new Error('the database is away');
      const statements = journal as unknown as Record<string, Statement | undefined>;
      const result = await time.real(statements[name]?.(...given) ?? Promise.resolve());
      history.note(`journal: ${name} ${given.map(inFewWords).join(' ')}${isAway ? ', unanswered' : ''}`);
      mortal.step('after');
      await time.sleep(1 + random.below(LONGEST_STATEMENT_MS));
      requireAlive();
      if (isAway) throw new Error('the answer of the database was lost');
      return result;
    };
  return new Proxy(journal, { get: (_, name) => statement(String(name)) });
}

/** The arguments of a statement, in short. */
function inFewWords(given: unknown): string {
  if (Array.isArray(given)) return `[${given.map(inFewWords).join(', ')}]`;
  if (typeof given !== 'object' || given === null) return String(given);
  const { tokenId, nonce, hash, txHash, block, key, code } = given as Record<string, unknown>;
  const minedIn = block === undefined ? undefined : inFewWords(block);
  const words = [tokenId, nonce, hash, txHash, minedIn, key, code];
  return words.flatMap((word) => (word === undefined ? [] : String(word as string))).join(' ');
}
