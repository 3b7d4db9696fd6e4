import { newState, openState, removeRows, type Engine } from '../database/engines';
import { ChangingRegistry } from '../changing-registry';
import { stopLater } from '../resources';
import { History, type Place } from '../scenario';
import { seededRandom, type SeededRandom } from '../seeded-random';
import { VirtualTime } from '../virtual-time';
import { ask, type ModelKey, type ModelSubscription } from './caller';
import { Prober } from './prober';
import { ADMIN_KEY, PAUSE_WITHIN_MS, startReplica, type Replica } from './replica';
import { drawEvent, drawRule, drawScope, REGISTRIES, sees, type DrawnScope, type ModelScope } from './sight';

// A model test of keys with a scope. Three registries grow, are reorganised, delivered and purged, while 50
// keys of random scopes read, subscribe, end, are revoked and made again, in two processes on PostgreSQL.
// What each may see follows from the chain's events by the plain code of sight.ts. Everything else must look
// as if it did not exist: the answers to what others have, and to what nobody has, may not differ.

const KEYS = 50;
const NAMES = 30;
const SUBSCRIPTIONS = 12;
const FEWEST_ROUNDS = 3;
const MOST_ROUNDS = 6;
const BEGINNING = Date.UTC(2026, 8, 21);
/** Names may have any characters, and look like the owner of a wallet's key. */
const STRANGE_NAMES = ['eip155:31337:0x0a', 'a\u0007b\r\nc', 'name:1', '1 ', ' ', '💶'];

/** Undefined if the engine is not installed. */
export async function createIsolationPlace(engine: Engine): Promise<Place | undefined> {
  const state = await newState(engine);
  if (state === undefined) return undefined;
  stopLater('the state of the model', () => state[Symbol.asyncDispose]());
  return {
    async run(seed) {
      const history = new History(seed);
      const database = await openState(state);
      await removeRows(database, engine);
      await database.close();
      const time = new VirtualTime(BEGINNING);
      const replicas: Replica[] = [];
      for (let count = engine === 'SQLite' ? 1 : 2; count > 0; count--)
        replicas.push(await startReplica(await openState(state), time));
      const isolation = new Isolation(history, time, replicas);
      await history.of(isolation.run());
      for (const replica of replicas) {
        await replica.stop();
        await replica.database.close();
      }
      return history;
    },
  };
}

/** What happened so far. */
export class Isolation {
  readonly keys: ModelKey[] = [];
  readonly subscriptions: ModelSubscription[] = [];
  readonly registries: readonly ChangingRegistry[];
  /** Bodies that arrived at the sink of each subscription. */
  readonly arrived = new Map<string, string[]>();
  hasPurged = false;
  readonly #random: SeededRandom;
  #drawn = 0;
  readonly #scopes = new Map<string, DrawnScope[]>();

  constructor(
    readonly history: History,
    readonly time: VirtualTime,
    readonly replicas: readonly Replica[],
  ) {
    this.#random = this.nextRandom();
    this.registries = REGISTRIES.map((identity) => {
      const random = this.nextRandom();
      return new ChangingRegistry({
        identity,
        random,
        run: history,
        failing: 0.2,
        draw: (number) => drawEvent(random, number),
        onSent: ({ body, subscription }) => this.#arrive(subscription, body),
      });
    });
  }

  nextRandom(): SeededRandom {
    return seededRandom(this.history.seed * 128 + this.#drawn++);
  }

  async run(): Promise<void> {
    const { history, time } = this;
    const random = this.#random;
    for (const registry of this.registries) await registry.openIn(this.#any().database, time.now());
    for (let made = 0; made < KEYS; made++) await this.#makeKey();
    const prober = new Prober(this, this.nextRandom());
    for (let made = 0; made < SUBSCRIPTIONS; made++) await this.subscribe(random.pick(this.keys), random);
    const rounds = FEWEST_ROUNDS + random.below(MOST_ROUNDS - FEWEST_ROUNDS);
    for (let round = 0; round < rounds; round++) {
      const now = time.now();
      await Promise.all([
        ...this.registries.map((registry) => registry.live(this.#any().database, now)),
        ...Array.from({ length: 4 }, () => prober.disturb(this.live())),
        this.#change(),
      ]);
      for (const { lifecycle } of this.replicas) lifecycle.emit('recorded', '31337:0x', 0);
      for (const registry of this.registries) await registry.fill(now);
      for (const key of this.#someKeys(4)) await prober.probe(key);
      await time.pass(500 + random.below(20_000));
      if (random.chance(0.1)) await this.#purge();
      await prober.endWaits();
    }
    for (const registry of this.registries) await registry.deliverAll(this.#any().database, time.now());
    for (const key of this.live().slice(0, 8)) await prober.compareStream(key);
    for (const subscription of this.subscriptions) await prober.compareArrived(subscription);
    history.count('keys', this.keys.length);
    history.count('subscriptions', this.subscriptions.length);
  }

  /** The URL of one of the processes. */
  get url(): string {
    return this.#any().url;
  }

  live(): ModelKey[] {
    return this.keys.filter(({ endsAt }) => endsAt > this.time.now());
  }

  /** Whether the subscriptions of an owner may deliver. */
  isLive(owner: string): boolean {
    return this.live().some((key) => key.owner === owner);
  }

  /** Whether an event that was ever recorded has this transaction, and the scope shows it. */
  seesTransaction(scope: ModelScope, transactionHash: string): boolean {
    return this.registries.some((registry, index) =>
      registry
        .recorded()
        .some(
          (event) =>
            event.transactionHash === transactionHash &&
            sees(scope, REGISTRIES[index] ?? REGISTRIES[0], event),
        ),
    );
  }

  /** Revokes a key. A request of it that is under way may be answered either way. */
  async revoke(key: ModelKey): Promise<void> {
    const wasLive = key.endsAt > this.time.now();
    key.endsAt = Math.min(key.endsAt, this.time.now());
    const { status } = await ask(this.url, ADMIN_KEY, 'DELETE', `/keys/${key.id}`);
    if (status !== 204 && wasLive) this.history.violation(`a key is not revoked: ${status}`);
    this.history.count('keys revoked');
  }

  #any(): Replica {
    return this.#random.pick(this.replicas);
  }

  #someKeys(count: number): ModelKey[] {
    return Array.from({ length: count }, () => this.#random.pick(this.keys));
  }

  /** Makes a key of a name. A name has subscriptions for each of its scopes; a wallet has one scope. */
  async #makeKey(): Promise<void> {
    const random = this.#random;
    const name = random.chance(0.2) ? random.pick(STRANGE_NAMES) : `holder ${random.below(NAMES)}`;
    const isWallet = random.chance(0.15);
    const known = this.#scopes.get(`${isWallet} ${name}`) ?? [];
    const drawn =
      known.length > 0 && (isWallet || random.chance(0.8)) ? random.pick(known) : drawScope(random);
    this.#scopes.set(`${isWallet} ${name}`, [...known, drawn]);
    const { scope } = drawn;
    const owner = isWallet ? name : `name:${name} ${JSON.stringify(scope)}`;
    const may = random.pick([['read'], ['read', 'subscribe'], ['read', 'subscribe'], ['subscribe']] as const);
    const endsAt = this.time.now() + 1 + random.below(180_000);
    if (isWallet) {
      const nonce = random.hex(8);
      const made = await this.#any().keys.make({
        ...{ owner, name, may, nonce },
        scope: drawn.ofWallet,
        expiresAt: endsAt,
      });
      if (made) this.keys.push({ id: made.id, key: made.key, owner, scope, may, endsAt });
      return;
    }
    const terms = { name, scope: drawn.written, may, expiresAt: new Date(endsAt).toISOString() };
    const { status, body, message } = await ask(this.url, ADMIN_KEY, 'POST', '/keys', terms);
    const { id, key } = body as { id: string; key: string };
    if (status === 201) this.keys.push({ id, key, owner, scope, may, endsAt });
    else this.history.violation(`POST /keys is answered ${status} ${message}`);
  }

  /** Ends, revokes or makes keys, and lets the operator touch what belongs to a key. */
  async #change(): Promise<void> {
    const random = this.#random;
    const live = this.live();
    if (live.length > 0 && random.chance(0.6)) await this.revoke(random.pick(live));
    for (let made = random.below(4); made > 0; made--) await this.#makeKey();
    const owned = this.subscriptions.filter(({ isDeleted }) => !isDeleted);
    if (owned.length === 0 || !random.chance(0.5)) return;
    const subscription = random.pick(owned);
    const { id, owner } = subscription;
    const path = `/subscriptions/${id}`;
    const { body, status } = await ask(this.url, ADMIN_KEY, 'GET', path);
    if (status !== 200) return;
    const { config, ...members } = body as { config: object; scope: object[] };
    const changed = { ...members, config: { ...config, state: 'active' } };
    subscription.resumedAt = this.time.now();
    const put = await ask(this.url, ADMIN_KEY, 'PUT', path, changed);
    const { scope } = put.body as { scope?: object[] };
    if (put.status === 200 && JSON.stringify(scope) !== JSON.stringify(members.scope))
      this.history.violation(`the operator changed the scope of a subscription of ${owner}`);
  }

  async #purge(): Promise<void> {
    this.hasPurged = true;
    const { database } = this.#any();
    const before = this.time.now() + 1;
    for (const registry of this.registries) {
      await registry.deliverAll(database, before);
      await registry.purge(database, before);
    }
    this.history.count('purges');
  }

  /** An event arrives at the sink of a subscription. */
  #arrive(id: string, body: string): void {
    const subscription = this.subscriptions.find((one) => one.id === id);
    // Its request may be under way: the name is not known yet, and so it is compared at the end.
    this.arrived.set(id, [...(this.arrived.get(id) ?? []), body]);
    if (subscription === undefined) return;
    const ends = this.keys.filter(({ owner }) => owner === subscription.owner).map(({ endsAt }) => endsAt);
    const late = this.time.now() - Math.max(...ends, subscription.resumedAt);
    if (late > PAUSE_WITHIN_MS)
      this.history.violation(
        `${id} of ${subscription.owner} delivers ${late} ms after the end of its last key`,
      );
  }

  /** Adds a subscription of a key. */
  async subscribe(key: ModelKey, random: SeededRandom): Promise<void> {
    const rule = drawRule(random);
    const hasRetractions = random.chance(0.4);
    const startFrom = random.pick(['now', 'beginning'] as const);
    const { status, body, message } = await ask(this.url, key.key, 'POST', '/subscriptions', {
      ...rule.members,
      sink: `http://127.0.0.1:1/${random.hex(4)}`,
      protocol: 'HTTP',
      config: { startFrom, retractions: hasRetractions },
    });
    const { owner, scope } = key;
    if (status === 201) {
      const { id } = body as { id: string };
      const since = this.registries.map((registry) => registry.recorded().length);
      const made = { id, owner, scope, rule, hasRetractions, startFrom, since };
      this.subscriptions.push({ ...made, isDeleted: false, resumedAt: 0 });
    } else if (!key.may.includes('subscribe')) {
      if (status !== 403 && key.endsAt > this.time.now())
        this.history.violation(`a key that may not subscribe is answered ${status}`);
    } else if (key.endsAt > this.time.now())
      this.history.violation(`a subscription is refused: ${status} ${message}`);
  }
}
