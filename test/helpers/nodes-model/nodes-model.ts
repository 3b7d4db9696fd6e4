import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../../service/base/errors';
import { createFinalBlockReading } from '../../../service/chain/finality';
import { BlockSpan, existingBlock } from '../../../service/chain/read-chain';
import { chainOfOne } from '../../../service/chain/chain';
import { connectSeveral, type ConnectedNodes } from '../../../service/chain/connect-nodes';
import type { Issuance } from '../../../service/journal/issuance';
import { createMintQueue } from '../../../service/minting/mint-queue';
import {
  createRegistryFinder,
  escrowInterface,
  titleEscrowAddress,
} from '../../../service/registry/registry-contracts';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import { BlockAlarm, followChain, keepRead } from '../../../service/watcher/follow-chain';
import { KnownEscrows } from '../../../service/watcher/known-escrows';
import { readRange } from '../../../service/watcher/read-range';
import type { FeedCursor } from '../../../service/outbox/feeds';
import { drawNode } from '../chain/node-profiles';
import { drawProgram } from '../chain/other-nodes';
import { randomCounting } from '../chain/unusual-logs';
import { createMemoryJournal } from '../database/memory-journal';
import { CONFIRMATIONS, NETWORK } from '../mint-model/mint-model';
import { ADMIN_KEY, type MintPlace } from '../mint-model/place';
import { loggerInto } from '../mint-model/service';
import { UnsteadyChain } from '../mint-model/unsteady-chain';
import { BLOCK_MS } from '../mint-model/unsteady-network';
import { VirtualTime } from '../virtual-time';
import { newIssuance, queueOptions } from '../processes/running-mint-queue';
import { History, type ScenarioResult } from '../scenario';
import { seededRandom, type SeededRandom } from '../seeded-random';
import { type Absence, LIES, type Lie, ModelNode } from './model-node';

// A model test of several nodes. A seed is a scenario: the real reader and the real mint queue use three
// nodes of one chain. Each counts logs in its own way. One of them lies, in a way that the seed changes from
// time to time, and any one is away at times. Every event must be read once, in order, as it is; every
// document must get its token; and nothing may stand still while the two honest nodes answer. Time is
// virtual.

const SHORTEST_MS = 40_000;
const LONGEST_MS = 80_000;
const SETTLED_WITHIN_MS = 180_000;
const FEWEST_MINTS = 4;
const MOST_MINTS = 8;
const TRANSFERS = 0.6;
const REORGANISED = 0.08;
/** Both honest nodes have answered for this long: by then everything must go on. */
const STANDS_STILL_MS = 40_000;
/** Between two absences. After a short one, the service may not know yet that the first node is back. */
const SHORT_BREAK_MS = 3_000;
const LONGEST_BREAK_MS = 45_000;
const FINALITY_DEPTH = 64;

/** The scenario of a seed. No other may run in this place at the same time. */
export class NodesScenario {
  readonly #time = new VirtualTime();
  readonly #history: History;
  readonly #random: SeededRandom;
  readonly #chain: UnsteadyChain;
  readonly #nodes: ModelNode[];
  readonly #liar: ModelNode;
  readonly #minedAt = new Map<number, number>();
  readonly #lengthMs: number;
  readonly #connections: ConnectedNodes[];
  readonly #journal = createMemoryJournal();
  readonly #stopping = new AbortController();
  readonly #events: RegistryEvent[] = [];
  readonly #told = new Set<string>();
  /** When each mint was asked for that was not made yet. */
  readonly #waiting = new Map<string, number>();
  readonly #liesOf: readonly Lie[];
  readonly #hasReorganisations: boolean;
  #nextBlock = 0;
  #honestSince = 0;
  #mintsAsked = 0;

  constructor(
    private readonly place: MintPlace,
    private readonly seed: number,
    hasProfiles = false,
  ) {
    const random = seededRandom(seed * 32);
    this.#random = random;
    this.#history = new History(seed, this.#time);
    this.#chain = new UnsteadyChain({ ...place, time: this.#time, confirmations: CONFIRMATIONS });
    this.#lengthMs = SHORTEST_MS + random.below(LONGEST_MS - SHORTEST_MS);
    const observed = (index: number) => ({
      chain: this.#chain,
      registryAddress: place.registryAddress,
      minedAt: this.#minedAt,
      time: this.#time,
      random: seededRandom(seed * 32 + 1 + index),
    });
    this.#nodes = [0, 1, 2].map((index) => new ModelNode(`node ${index + 1}`, observed(index)));
    // The nodes of a chain are of one program. Each of them may have begun with a snapshot.
    const program = drawProgram(seededRandom(seed * 32 + 10));
    for (const [index, node] of this.#nodes.entries()) {
      const { block0 } = drawProgram(seededRandom(seed * 32 + 11 + index));
      node.program = { ...program, block0 };
    }
    for (const [index, node] of hasProfiles ? this.#nodes.entries() : []) {
      const ask = (...call: Parameters<UnsteadyChain['ask']>) => this.#chain.ask(...call);
      const profile = drawNode({ random: seededRandom(seed * 32 + 20 + index), time: this.#time, ask });
      node.profile = profile.answerer;
      this.#history.note(`${node.name}: ${profile.name}`);
    }
    this.#history.count(`program: logs of hashes silent ${program.silentHashes}`);
    this.#history.note(`program: ${JSON.stringify(this.#nodes.map((node) => node.program))}`);
    this.#liar = random.pick(this.#nodes);
    this.#liesOf = random.chance(0.5) ? LIES : ['honest', random.pick(LIES), random.pick(LIES)];
    this.#hasReorganisations = random.chance(0.5);
    for (const node of this.#nodes) {
      node.counting = randomCounting(random);
      node.givesRemoved = random.chance(0.3);
    }
    const logger = loggerInto(this.#history);
    this.#connections = [0, 1].map(() => connectSeveral(this.#nodes, NETWORK, this.#time, logger));
  }

  async run(): Promise<ScenarioResult> {
    const random = seededRandom(this.seed * 32 + 9);
    await this.#history.of(this.#time.during(random, () => this.#play()));
    for (const { client } of this.#connections) client.close();
    return this.#history;
  }

  async #play(): Promise<void> {
    await this.#chain.begin();
    this.#nextBlock = this.#chain.head + 1;
    this.#history.note(`${this.#liar.name} lies: ${this.#liesOf.join(', ')}`);
    const [reading, minting] = this.#connections;
    if (reading === undefined || minting === undefined) return;
    const logger = loggerInto(this.#history);
    const queue = createMintQueue({
      ...queueOptions(minting.client, '', NETWORK),
      checkChain: minting.checkChain,
      registryAddress: this.place.registryAddress,
      journal: this.#journal,
      logger,
      time: this.#time,
    });
    const following = this.#follow(reading);
    const mints = FEWEST_MINTS + this.#random.below(MOST_MINTS - FEWEST_MINTS + 1);
    const callers = Array.from({ length: mints }, () => this.#mint((issuance) => queue.mint(issuance)));
    await Promise.all([this.#lie(), this.#takeAway(), this.#watch(), this.#mine(mints)]);
    this.#stopping.abort();
    await queue.stop();
    await following;
    await Promise.all(callers);
    await this.#judge(mints);
  }

  get #isOver(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Mines blocks until everything has settled, or it is too late. */
  async #mine(mints: number): Promise<void> {
    const isSettled = (): boolean =>
      this.#told.size === mints &&
      [...this.#journal.issuances.values()].every(({ state }) => state === 'final') &&
      this.#nextBlock > this.#chain.head - CONFIRMATIONS - 4;
    for (;;) {
      await this.#time.sleep(BLOCK_MS * (0.5 + this.#random.fraction()));
      const isReorganised =
        this.#hasReorganisations && this.#chain.reversible > 0 && this.#random.chance(REORGANISED);
      const depth = isReorganised ? 1 + this.#random.below(Math.min(this.#chain.reversible, 2)) : 0;
      if (depth > 0) {
        this.#history.count('reorganisation');
        await this.#chain.takeBack(depth, () => true);
      }
      for (let block = 0; block <= depth; block++) {
        await this.#chain.mine();
        this.#minedAt.set(this.#chain.head, this.#time.now());
      }
      this.#history.note(`block ${this.#chain.head}${depth > 0 ? `, ${depth} were replaced` : ''}`);
      await this.#transfer();
      const isLate = this.#time.now() > this.#lengthMs + SETTLED_WITHIN_MS;
      if (isLate || (this.#time.now() > this.#lengthMs && isSettled())) break;
    }
    this.#stopping.abort();
  }

  /** The holder of some token transfers it. */
  async #transfer(): Promise<void> {
    if (!this.#random.chance(TRANSFERS)) return;
    const made = [...(await this.#chain.mints()).keys()];
    if (made.length === 0) return;
    const to = this.#escrowOf(this.#random.pick(made));
    const data = escrowInterface.encodeFunctionData('transferHolder', [this.#random.hex(20), '0x']);
    await this.#chain.sendAs(ADMIN_KEY, { to, data });
  }

  #contracts: Parameters<typeof titleEscrowAddress>[0] | undefined;
  #escrows: KnownEscrows | undefined;

  #escrowOf(tokenId: string): string {
    return this.#contracts === undefined
      ? this.place.registryAddress
      : titleEscrowAddress(this.#contracts, BigInt(`0x${tokenId}`));
  }

  async #lie(): Promise<void> {
    while (!this.#isOver) {
      const lie = this.#random.pick(this.#liesOf);
      this.#liar.begin(lie);
      this.#history.count(lie);
      this.#history.note(`${this.#liar.name} begins: ${lie}`);
      await this.#time.sleep(2_000 + this.#random.below(30_000));
    }
  }

  /** Takes one node away at a time. In the end, all answer. */
  async #takeAway(): Promise<void> {
    while (this.#time.now() < this.#lengthMs) {
      const soon = this.#random.chance(0.5);
      await this.#time.sleep(this.#random.below(soon ? SHORT_BREAK_MS : LONGEST_BREAK_MS));
      const node = this.#random.pick(this.#nodes);
      node.absence = this.#random.pick<Absence>(['refused', 'hanging']);
      this.#history.count(node.absence);
      this.#history.note(`${node.name} is away: ${node.absence}`);
      await this.#time.sleep(500 + this.#random.below(25_000));
      node.absence = undefined;
      if (node !== this.#liar) this.#honestSince = this.#time.now();
      this.#history.note(`${node.name} is back`);
    }
  }

  /** Notes when reading stands still although both honest nodes answer. */
  async #watch(): Promise<void> {
    while (!this.#isOver) {
      await this.#time.sleep(1_000);
      const now = this.#time.now();
      const isHonest = this.#nodes.every((node) => node === this.#liar || node.absence === undefined);
      if (!isHonest) this.#honestSince = now;
      if (now - this.#honestSince < STANDS_STILL_MS) continue;
      const [waiting] = [...this.#waiting].filter(([, askedAt]) => now - askedAt >= STANDS_STILL_MS);
      if (waiting !== undefined) {
        this.#history.violation(`${this.#history.nameOf(waiting[0])} waits for ${now - waiting[1]} ms`);
        this.#honestSince = now;
        continue;
      }
      const finalAt = this.#minedAt.get(this.#nextBlock + CONFIRMATIONS) ?? Infinity;
      if (now - finalAt < STANDS_STILL_MS) continue;
      this.#history.violation(`block ${this.#nextBlock} is final for ${now - finalAt} ms and was not read`);
      this.#honestSince = now;
    }
  }

  /** Asks for one document. */
  async #mint(mint: (issuance: Issuance) => Promise<string>): Promise<void> {
    await this.#time.sleep(this.#random.below(this.#lengthMs * 0.8));
    const tokenId = this.#random.hex(32).slice(2);
    this.#history.name(tokenId, `mint ${++this.#mintsAsked}`);
    const issuance = newIssuance({ tokenId, createdAt: this.#time.now() });
    try {
      this.#history.note(`${tokenId} is asked for`);
      this.#waiting.set(tokenId, this.#time.now());
      const hash = await mint(this.#journal.add(issuance));
      this.#told.add(tokenId);
      this.#waiting.delete(tokenId);
      this.#history.note(`${tokenId} was made by ${hash}`);
    } catch (error) {
      if (!this.#isOver)
        this.#history.violation(`${this.#history.nameOf(tokenId)} failed: ${messageOf(error)}`);
    }
  }

  /** Reads the events into memory, as the watcher reads them into the database. */
  async #follow({ client, checkChain }: ConnectedNodes): Promise<void> {
    const { signal } = this.#stopping;
    const findRegistry = createRegistryFinder(client, this.place.registryAddress);
    const readFinalBlock = createFinalBlockReading(client, NETWORK, CONFIRMATIONS);
    const alarm = new BlockAlarm(this.#time, client, {
      shortest: 500 + this.#random.below(2_000),
      longest: 6_000,
    });
    const span = new BlockSpan(2_000);
    let cursor: FeedCursor = {
      nextBlock: this.#nextBlock,
      kept: [{ number: this.#nextBlock - 1, hash: undefined }],
    };
    for (let failures = 0; !signal.aborted;) {
      try {
        await checkChain();
        const { origin, ...registry } = await findRegistry();
        this.#contracts ??= registry.contracts;
        const escrows = (this.#escrows ??= new KnownEscrows(registry, FINALITY_DEPTH));
        const following = { client, escrows, origin, readFinalBlock, span, alarm, signal, cursor };
        for await (const sighting of followChain({ ...following, finalityDepth: FINALITY_DEPTH })) {
          failures = 0;
          if (sighting.kind === 'range') {
            this.#events.push(...sighting.events);
            const kept = keepRead(cursor.kept, sighting.blocks, FINALITY_DEPTH);
            cursor = { nextBlock: sighting.nextBlock, kept };
            this.#nextBlock = sighting.nextBlock;
          }
          if (sighting.kind === 'mismatch')
            this.#history.violation('a block that was read is said to be gone');
          if (sighting.kind === 'reorganised') break;
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#history.count('reading failed');
        this.#history.note(`cannot read: ${messageOf(error)}`);
        await this.#time.sleep(Math.min(500 * 2 ** failures++, 15_000));
      }
    }
    alarm.stop();
  }

  async #judge(mints: number): Promise<void> {
    const node = new ModelNode('honest', {
      chain: this.#chain,
      registryAddress: this.place.registryAddress,
      minedAt: new Map(),
      time: this.#time,
      random: this.#random,
    });
    const honest = chainOfOne(node);
    const registry = await createRegistryFinder(honest, this.place.registryAddress)();
    const reading = { client: honest, escrows: new KnownEscrows(registry, FINALITY_DEPTH) };
    const first = await existingBlock(honest, this.#chain.base + 1);
    const last = await existingBlock(honest, this.#nextBlock - 1);
    const expected = this.#nextBlock - 1 > first.number ? (await readRange(reading, first, last)).events : [];
    for (const [index, event] of expected.entries())
      if (!isDeepStrictEqual(event, this.#events[index])) {
        this.#history.violation(
          `event ${index} is ${inShort(this.#events[index])} instead of ${inShort(event)}`,
        );
        break;
      }
    if (this.#events.length !== expected.length)
      this.#history.violation(`${this.#events.length} events were read instead of ${expected.length}`);
    const made = await this.#chain.mints();
    for (const [tokenId, { state, failure }] of this.#journal.issuances) {
      const name = this.#history.nameOf(tokenId);
      const times = made.get(tokenId)?.length ?? 0;
      if (times !== 1) this.#history.violation(`${name} has ${times} tokens`);
      if (state !== 'final') this.#history.violation(`${name} is ${state} ${failure?.message ?? ''}`);
    }
    if (this.#told.size !== mints) this.#history.violation(`${this.#told.size} of ${mints} mints were made`);
    if (this.#nextBlock <= this.#chain.head - CONFIRMATIONS - 10)
      this.#history.violation(`block ${this.#nextBlock} of ${this.#chain.head} was not read`);
    for (const violation of this.#journal.violations) this.#history.violation(`journal: ${violation}`);
    this.#history.count('events', expected.length);
    this.#history.count('tokens', made.size);
  }
}

function inShort(event: RegistryEvent | undefined): string {
  return JSON.stringify(event, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}
