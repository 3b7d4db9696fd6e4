import { readFees } from '../../../service/chain/transactions';
import type { Network } from '../../../service/chain/networks';
import { createChainCheck, createRpcClient, type RpcClient } from '../../../service/chain/rpc-client';
import type { Transport } from '../../../service/chain/transport';
import type { Journal } from '../../../service/journal/journal';
import { createLogger, type Logger } from '../../../service/base/logger';
import { createMintQueue, type MintQueue } from '../../../service/minting/mint-queue';
import type { MintTiming } from '../../../service/minting/mint';
import { startRpcProxy, type RpcProxy } from '../chain/rpc-proxy';
import type { SeededRandom } from '../seeded-random';
import { DEPLOYER_KEY } from '../chain/local-setup';
import type { History } from './history';
import type { LyingProvider } from './lying-provider';
import { mortalJournal } from './mortal-journal';
import type { Mortal, ScenarioParts } from './scenario-parts';
import type { VirtualTime } from './virtual-time';

/** The time when a process is killed: before or after one of its steps, or after some milliseconds. */
export type Death = { step: number; moment: 'before' | 'after' } | { afterMs: number } | undefined;

/** The parts that all processes of a scenario share. */
export interface ServiceSurroundings {
  parts: ScenarioParts;
  random: SeededRandom;
  provider: LyingProvider;
  journal: Journal;
  registryAddress: string;
  network: Network;
  timing: MintTiming;
}

/** The proxy never forwards a call. */
const NOWHERE = 'http://nowhere.invalid';

/**
 * One process of the service with its mint queue. After it is killed or stopped, it reaches neither the
 * journal nor the node.
 */
export class ServiceLife {
  readonly journal: Journal;
  readonly #parts: ScenarioParts;
  readonly #death: Death;
  readonly #proxy: RpcProxy;
  readonly #client: RpcClient;
  readonly #queue: MintQueue;
  /** Rejects when the process ends. */
  readonly #ended: Promise<never>;
  #end: (error: Error) => void = () => undefined;
  #isDead = false;
  #steps = 0;
  #stopped: Promise<void> | undefined;

  static async start(surroundings: ServiceSurroundings, death: Death): Promise<ServiceLife> {
    const { provider, parts } = surroundings;
    const lives: ServiceLife[] = [];
    const mortal: Mortal = {
      isDead: () => lives.some(({ isDead }) => isDead),
      step: (moment) => lives[0]?.step(moment),
    };
    const proxy = await parts.time.real(startRpcProxy(NOWHERE, provider.answererFor(mortal)));
    const life = new ServiceLife(surroundings, death, proxy);
    lives.push(life);
    return life;
  }

  private constructor(surroundings: ServiceSurroundings, death: Death, proxy: RpcProxy) {
    const { parts, random, journal, network, timing, registryAddress } = surroundings;
    this.#parts = parts;
    this.#death = death;
    this.#proxy = proxy;
    this.#ended = new Promise<never>((_, reject) => (this.#end = reject));
    // No caller may be waiting for it.
    this.#ended.catch(() => undefined);
    const client = createRpcClient(proxy.url, network);
    tellOfRequests(client as RpcClient & { transport: Transport }, parts.time);
    this.#client = client;
    this.journal = mortalJournal(journal, parts, random, {
      isDead: () => this.#isDead,
      step: (moment) => this.step(moment),
    });
    this.#queue = createMintQueue({
      client,
      network,
      confirmations: network.confirmations,
      privateKey: DEPLOYER_KEY,
      registryAddress,
      journal: this.journal,
      checkChain: createChainCheck(client, proxy.url, network),
      readFees: () =>
        readFees({
          gasPricing: network.gasPricing,
          readStation: undefined,
          readNode: () => client.getFeeData(),
          warn: () => undefined,
        }),
      logger: loggerInto(parts.history),
      mask: (text) => text,
      observer: { mined: () => undefined, failed: () => undefined, reorganised: () => undefined },
      timing,
    });
    if (death && 'afterMs' in death) void parts.time.sleep(death.afterMs).then(() => this.#mayBeKilled());
  }

  get isDead(): boolean {
    return this.#isDead;
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
    const death = this.#death;
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
    this.#client.destroy();
    await this.#proxy.close();
  }

  #mayBeKilled(): void {
    const { faults, history } = this.#parts;
    if (this.#isDead || !faults.has('kill')) return;
    faults.count('kill');
    history.note('killed');
    this.#die();
  }

  #die(): void {
    this.#isDead = true;
    this.#end(new Error('the process has ended'));
    this.#stopped ??= this.#queue.stop();
  }
}

/** Stops virtual time while a request of the client is running. */
function tellOfRequests({ transport }: { transport: Transport }, time: VirtualTime): void {
  const send = transport.send.bind(transport);
  transport.send = (payload) => time.real(send(payload));
}

interface LogLine extends Partial<Record<'tokenId' | 'nonce' | 'attempts' | 'reason', string | number>> {
  level: string;
  msg: string;
  error?: { code?: string; message: string };
}

function loggerInto(history: History): Logger {
  const write = (line: string): void => {
    const { level, msg, error, ...fields } = JSON.parse(line) as LogLine;
    const cause = error === undefined ? '' : ` (${error.code ?? ''} ${error.message.slice(0, 160)})`;
    const { tokenId, nonce, attempts, reason } = fields;
    const said = [tokenId, nonce, attempts, reason].filter((field) => field !== undefined).join(' ');
    history.note(`${level}: ${msg} ${said}${cause}`);
  };
  return createLogger({ level: 'info', mask: (text) => text, destination: { write } });
}
