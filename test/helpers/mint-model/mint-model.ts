import { createHash } from 'node:crypto';
import { messageOf } from '../../../service/base/errors';
import { type Issuance, scopeName } from '../../../service/journal/issuance';
import { findNetwork, type Network } from '../../../service/chain/networks';
import { createDatabaseJournal, type Journal } from '../../../service/journal/journal';
import { drawNode } from '../chain/node-profiles';
import { FaultPlan, type ScenarioParts } from './faults';
import { LyingProvider } from './lying-provider';
import type { MintPlace } from './place';
import { Service, type ServiceLife } from './service';
import { UnsteadyChain } from './unsteady-chain';
import { BLOCK_MS, UnsteadyNetwork } from './unsteady-network';
import { UnsteadySigner } from './unsteady-signer';
import { VirtualTime } from '../virtual-time';
import { History, type ScenarioResult } from '../scenario';
import { seededRandom, type SeededRandom } from '../seeded-random';
import { DEPLOYER } from '../chain/local-setup';
import { newIssuance } from '../processes/running-mint-queue';

// A model test of the mint queue. A seed is a scenario: some callers want one document each, and the real
// queue mints them with the real journal and a real node. The seed chooses the faults: a provider that lies,
// a signer that lies too, a network that forgets and reorganises, a service that is killed. Then the faults
// end, and within some time every caller must have exactly one token, and the journal must agree with the
// chain. Time is virtual: a scenario takes little time, and its seed repeats it exactly.

export const CONFIRMATIONS = 3;
/** A public network, whose nodes may be behind one another, with the chain id of a local node. */
export const NETWORK: Network = {
  ...(findNetwork('31337') as Network),
  local: false,
  confirmations: CONFIRMATIONS,
  blockTimeMs: BLOCK_MS,
};
/**
 * In half of the scenarios, blocks become final later than a mint that cannot be made is looked up again: its
 * nonce is then used in the newest block and not in the final one.
 */
const LATE_CONFIRMATIONS = 12;
const FEWEST_CALLERS = 4;
const MOST_CALLERS = 8;
const SHORTEST_MS = 30_000;
const LONGEST_MS = 90_000;
/** The time in which everything must become final after the faults end. */
const SETTLED_WITHIN_MS = 600_000;

/** The scenario of a seed. No other may run in this place at the same time. */
export class MintScenario {
  readonly #parts: ScenarioParts;
  readonly #provider: LyingProvider;
  readonly #local: UnsteadyNetwork;
  readonly #service: Service;
  readonly #callers: Caller[];
  readonly #random: SeededRandom;
  readonly #scope: string;
  /** When the faults end. */
  readonly #lengthMs: number;
  readonly #confirmations: number;
  #isOver = false;

  constructor(
    private readonly place: MintPlace,
    seed: number,
    hasProfiles = false,
  ) {
    // Each part has its own random numbers, so that a change of one does not change the others.
    let drawn = 0;
    const nextRandom = (): SeededRandom => seededRandom(seed * 32 + drawn++);
    this.#random = nextRandom();
    this.#lengthMs = SHORTEST_MS + this.#random.below(LONGEST_MS - SHORTEST_MS);
    this.#confirmations = seededRandom(seed * 32 + 29).pick([CONFIRMATIONS, LATE_CONFIRMATIONS]);
    const time = new VirtualTime();
    const parts: ScenarioParts = {
      time,
      faults: new FaultPlan(nextRandom(), this.#lengthMs),
      chain: new UnsteadyChain({ ...place, time, confirmations: this.#confirmations }),
      history: new History(seed, time),
    };
    this.#parts = parts;
    const journalScope = {
      chainId: NETWORK.chainId,
      registryAddress: place.registryAddress,
      // A seed may run several times in one database.
      issuer: `did:web:seed-${seed}.${process.hrtime.bigint()}.example`,
    };
    this.#scope = scopeName(journalScope);
    const clock = { now: () => 1_700_000_000_000 + time.now() };
    this.#provider = new LyingProvider(parts, nextRandom(), (hash) => this.#nonceKeptFor(hash));
    // The last of the numbers but one, so that the others stay as they are without profiles.
    const random = seededRandom(seed * 32 + 30);
    const ask = (...call: Parameters<UnsteadyChain['ask']>) => parts.chain.ask(...call);
    const profile = hasProfiles ? drawNode({ random, time, ask }) : undefined;
    if (profile) parts.history.note(`profile: ${profile.name}`);
    this.#local = new UnsteadyNetwork(parts, nextRandom());
    this.#service = new Service({
      parts,
      random: nextRandom(),
      // The last of its numbers, however many callers there are.
      wallet: new UnsteadySigner(parts, seededRandom(seed * 32 + 31)),
      provider: this.#provider,
      profile: profile?.answerer,
      journal: this.#watched(createDatabaseJournal(place.database, journalScope, clock)),
      registryAddress: place.registryAddress,
      network: { ...NETWORK, confirmations: this.#confirmations },
    });
    const callers = FEWEST_CALLERS + this.#random.below(MOST_CALLERS - FEWEST_CALLERS + 1);
    this.#callers = Array.from(
      { length: callers },
      (_, index) => new Caller(String(index), parts, nextRandom()),
    );
  }

  async run(): Promise<ScenarioResult> {
    const { time, history } = this.#parts;
    time.onQuiet = () => this.#provider.admit();
    await history.of(time.during(this.#random, () => this.#play()));
    await this.#service.close();
    return history;
  }

  async #play(): Promise<void> {
    const { chain } = this.#parts;
    await chain.begin();
    const isOver = (): boolean => this.#isOver;
    await Promise.all([
      this.#befall(),
      this.#service.live(isOver),
      ...this.#callers.map((caller) => this.#call(caller)),
    ]);
    await this.#judge();
  }

  /** Runs the chain, first with faults and then without. */
  async #befall(): Promise<void> {
    const { time, faults, history } = this.#parts;
    await this.#local.goWrong(this.#lengthMs);
    history.note('nothing goes wrong any more');
    faults.end();
    await this.#local.goWell(async () => {
      const isLate = time.now() > this.#lengthMs + SETTLED_WITHIN_MS;
      this.#isOver = isLate || (await this.#isSettled());
      return this.#isOver;
    });
  }

  async #call(caller: Caller): Promise<void> {
    await this.#parts.time.sleep(this.#random.below(this.#lengthMs * 0.7));
    const isOver = (): boolean => this.#isOver;
    await caller.insist(() => this.#service.current, isOver);
  }

  /** Whether every caller has its answer and every issuance is final or failed. */
  async #isSettled(): Promise<boolean> {
    if (this.#callers.some(({ told }) => told === undefined)) return false;
    return (await this.#rows()).every(({ state }) => state === 'final' || state === 'failed');
  }

  #rows(): Promise<{ tokenId: string; state: Issuance['state']; txHash: string | null }[]> {
    const rows = this.place.database.db
      .selectFrom('issuances')
      .select(['token_id as tokenId', 'state', 'tx_hash as txHash'])
      .where('scope', '=', this.#scope)
      .orderBy('position')
      .execute();
    return this.#parts.time.real(rows);
  }

  /** The nonce of a transaction in the journal. */
  async #nonceKeptFor(hash: string): Promise<number | undefined> {
    const row = this.place.database.db
      .selectFrom('mint_transactions')
      .select('nonce')
      .where('scope', '=', this.#scope)
      .where('hash', '=', hash)
      .executeTakeFirst();
    return (await this.#parts.time.real(row))?.nonce;
  }

  /** A journal that judges each failure when it is written. */
  #watched(journal: Journal): Journal {
    const failed: Journal['failed'] = async (tokenId, failure) => {
      await journal.failed(tokenId, failure);
      await this.#judgeFailure(tokenId);
    };
    return { ...journal, failed };
  }

  /**
   * A failure must be certain: no reorganisation and no transaction that any node remembers can make the
   * token.
   */
  async #judgeFailure(tokenId: string): Promise<void> {
    const { chain, history } = this.#parts;
    history.count('failed');
    const name = history.nameOf(tokenId);
    if ((await chain.mints()).has(tokenId)) history.violation(`${name} failed, and its token exists`);
    const used = await chain.count(DEPLOYER, chain.settledBlock);
    for (const heard of chain.heard.values())
      if (heard.tokenId === tokenId && heard.nonce >= used)
        history.violation(`${name} failed, and its nonce ${heard.nonce} may yet be mined`);
    for (const { key, told } of this.#callers)
      if (told === tokenId) history.violation(`${key} was told of ${name}, which failed`);
  }

  async #judge(): Promise<void> {
    const { chain, history } = this.#parts;
    for (const { key, told } of this.#callers)
      if (told === undefined) history.violation(`${key} was never told of a token`);
    // The network sends every transaction again that it ever had.
    const heard = [...chain.heard.values()].sort((left, right) => left.nonce - right.nonce);
    for (const { raw } of heard) await chain.send(raw);
    for (let block = 0; block < this.#confirmations; block++) await chain.mine();
    const mints = await chain.mints();
    const rows = await this.#rows();
    for (const { tokenId, state, txHash } of rows) {
      const name = history.nameOf(tokenId);
      const made = mints.get(tokenId) ?? [];
      if (state !== 'final' && state !== 'failed') history.violation(`${name} stands still: it is ${state}`);
      if (state === 'failed' && made.length > 0) history.violation(`${name} failed, and has a token`);
      if (state === 'final' && made.join() !== txHash)
        history.violation(`${name} is final by ${txHash}, and was made by ${made.join()}`);
    }
    for (const caller of this.#callers) {
      const tokens = [...mints.keys()].filter((tokenId) => caller.owns(tokenId));
      if (tokens.length !== 1) history.violation(`${caller.key} has ${tokens.length} tokens`);
    }
    history.count('token', mints.size);
    history.count('issuance', rows.length);
  }
}

/** The longest time until a caller repeats a failed request. */
const LONGEST_PAUSE_MS = 8_000;

/** A caller that repeats its request, with an Idempotency-Key, until it has one document. */
class Caller {
  readonly key: string;
  /** The token of the answer. */
  told: string | undefined;
  /** The tokens of all documents signed for this caller. There is another one after each failure. */
  readonly #tokenIds = new Set<string>();

  constructor(
    private readonly name: string,
    private readonly parts: ScenarioParts,
    private readonly random: SeededRandom,
  ) {
    this.key = `key ${name}`;
  }

  owns(tokenId: string): boolean {
    return this.#tokenIds.has(tokenId);
  }

  /** Repeats the request to the current process of the service. */
  async insist(service: () => ServiceLife | undefined, isOver: () => boolean): Promise<void> {
    const { time, history } = this.parts;
    while (!isOver()) {
      const life = service();
      try {
        if (life !== undefined && this.told === undefined) await this.#ask(life);
      } catch (error) {
        history.note(`${this.key} is told: ${messageOf(error)}`);
      }
      await time.sleep(1 + this.random.below(LONGEST_PAUSE_MS));
    }
  }

  /** Like issue-document.ts: continues the document with this key, or stores a new one. */
  async #ask(life: ServiceLife): Promise<void> {
    const earlier = await life.journal.findByKey(this.key);
    const issuance = earlier ?? (await this.#store(life));
    const hash = issuance.txHash ?? (await life.mint(issuance));
    this.parts.history.note(`${this.key} is told of ${issuance.tokenId} by ${hash}`);
    this.told = issuance.tokenId;
  }

  async #store(life: ServiceLife): Promise<Issuance> {
    const issuance = this.#newIssuance();
    const requestHash = createHash('sha256').update(this.key).digest('hex');
    const document = Buffer.from(issuance.tokenId);
    return life.journal.add({ ...issuance, document }, { key: this.key, requestHash });
  }

  #newIssuance(): Issuance {
    const tokenId = this.random.hex(32).slice(2);
    this.#tokenIds.add(tokenId);
    this.parts.history.name(tokenId, `${this.name}.${this.#tokenIds.size}`);
    // The gas of a mint depends on the length of its remark.
    const remark = this.random.chance(0.8) ? '0x' : this.random.hex(1 + this.random.below(100));
    return newIssuance({ tokenId, remark, createdAt: this.parts.time.now() });
  }
}
