import { randomUUID } from 'node:crypto';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import type { SeededRandom } from '../seeded-random';
import { ask, faceOf, nextOf, type Answer, type ModelKey, type ModelSubscription } from './caller';
import type { Isolation } from './isolation-model';
import { ADMIN_KEY } from './replica';
import { hexOf, REGISTRIES, sees, sourceOf } from './sight';

interface Body {
  id: string;
  type: string;
  data: { transactionHash?: string; retracts?: string; retracted?: { transactionHash: string } };
}

interface StreamPage {
  events: { body: string; cursor: string }[];
  cursor: string;
}

/** Asks with keys for what is theirs, what is others', and what nobody has. */
export class Prober {
  readonly #waits: { key: ModelKey; answered: Promise<Answer> }[] = [];
  /** The lengths of all cursors, and of all positions of pages. */
  #cursorLength: number | undefined;
  #positionLength: number | undefined;
  readonly #cursors: string[] = [];
  readonly #positions: { owner: string; path: string }[] = [];

  constructor(
    private readonly model: Isolation,
    private readonly random: SeededRandom,
  ) {}

  /** Does something while the chains change. */
  async disturb(live: readonly ModelKey[]): Promise<void> {
    if (live.length === 0) return;
    const { model, random } = this;
    const key = random.pick(live);
    const kind = random.below(6);
    if (kind === 0) {
      const wait = 1 + random.below(30);
      this.#waits.push({ key, answered: this.#as(key, 'GET', `/events/stream?after=now&wait=${wait}`) });
    } else if (kind === 1) await Promise.all([model.subscribe(key, random), model.revoke(key)]);
    else if (kind === 2) await this.#change(key);
    else if (kind === 3) this.#expectOwn(key, await this.#as(key, 'GET', '/events/stream?retractions=true'));
    else await model.subscribe(key, random);
  }

  /** Waits for the answers to those that waited for events. */
  async endWaits(): Promise<void> {
    await this.model.time.pass(31_000);
    for (const { key, answered } of this.#waits.splice(0)) {
      const answer = await answered;
      this.model.history.count('waits');
      if (answer.status === 200) this.#expectOwn(key, answer);
      if (answer.status === 200 && key.endsAt < this.model.time.now() - 31_000 - 20_500)
        this.#wrong(`a key that had ended is answered ${answer.status}`);
    }
  }

  /** Asks for everything, while nothing else happens. */
  async probe(key: ModelKey): Promise<void> {
    const { model } = this;
    if (key.endsAt <= model.time.now()) return this.#expectEnded(key);
    model.history.count('probes');
    await this.#probeSubscriptions(key);
    if (!key.may.includes('read')) return;
    await this.#probeEvents(key);
    await this.#probeTokens(key);
    await this.#probeLists(key);
    await this.#probePositions(key);
    await this.compareStream(key);
  }

  /** Expects in the stream of a key what its scope shows of the chain, and nothing else. */
  async compareStream(key: ModelKey): Promise<void> {
    if (!key.may.includes('read')) return;
    const { model } = this;
    const found = await this.#stream(key, '?retractions=true');
    const retracted = new Set(found.flatMap(({ data }) => data.retracts ?? []));
    const standing = found.filter(({ id, data }) => data.retracts === undefined && !retracted.has(id));
    const transactions = new Set(standing.map(({ data }) => data.transactionHash));
    if (model.hasPurged) return;
    for (const [index, registry] of model.registries.entries())
      for (const event of registry.present())
        if (sees(key.scope, REGISTRIES[index] ?? REGISTRIES[0], event)) {
          if (!transactions.delete(event.transactionHash))
            this.#wrong(`${key.owner} lacks ${event.transactionHash} in its stream`);
        }
    for (const transaction of transactions) this.#wrong(`${key.owner} still has ${transaction}`);
  }

  /** Expects at the sink of a subscription what its key sees, and its rule selects. */
  async compareArrived(subscription: ModelSubscription): Promise<void> {
    const { model } = this;
    const { id, owner, scope, rule, since } = subscription;
    const bodies = (model.arrived.get(id) ?? []).map((body) => JSON.parse(body) as Body);
    model.history.count('deliveries', bodies.length);
    for (const body of bodies)
      if (!model.seesTransaction(scope, transactionOf(body)))
        this.#wrong(`${owner} got ${body.id}, which is out of its scope`);
    const { body } = await ask(model.url, ADMIN_KEY, 'GET', `/subscriptions/${id}`);
    const { state } = (body as { config?: { state: string } }).config ?? {};
    if (state !== 'active' || model.hasPurged || subscription.isDeleted) return;
    const transactions = new Set(bodies.map(transactionOf));
    const letters = await ask(
      model.url,
      ADMIN_KEY,
      'GET',
      `/subscriptions/${id}/deliveries?state=dead&limit=100`,
    );
    if (letters.headers.has('link')) return;
    const dead = new Set((letters.body as { id: string }[]).map((one) => one.id));
    for (const [index, registry] of model.registries.entries()) {
      const identity = REGISTRIES[index] ?? REGISTRIES[0];
      const before = new Set(
        registry
          .recorded()
          .slice(0, since[index])
          .map((one) => one.transactionHash),
      );
      for (const event of registry.present()) {
        const isDue = subscription.startFrom === 'beginning' || !before.has(event.transactionHash);
        if (!isDue || !sees(scope, identity, event) || !rule.selects(event)) continue;
        if (!transactions.has(event.transactionHash) && dead.size === 0)
          this.#wrong(`${owner} never got ${event.transactionHash} at ${id} (${subscription.startFrom})`);
      }
    }
  }

  async #expectEnded(key: ModelKey): Promise<void> {
    const forged = `tdk_${'x'.repeat(43)}`;
    for (const path of ['/events/stream', '/subscriptions', '/keys', `/tokens/${'0'.repeat(64)}`]) {
      const [ended, unknown] = [
        await this.#as(key, 'GET', path),
        await ask(this.model.url, forged, 'GET', path),
      ];
      for (const { status } of [ended, unknown])
        if (status !== 401 && status !== 429)
          this.#wrong(`a key that has ended is answered ${status} at ${path}`);
    }
    this.model.history.count('ended keys asked');
  }

  async #probeSubscriptions(key: ModelKey): Promise<void> {
    const { model, random } = this;
    const others = model.subscriptions.filter(({ owner, isDeleted }) => owner !== key.owner && !isDeleted);
    if (others.length === 0) return;
    const { id } = random.pick(others);
    const before = await ask(model.url, ADMIN_KEY, 'GET', `/subscriptions/${id}`);
    const whole = { sink: 'http://127.0.0.1:1/', protocol: 'HTTP' };
    for (const [method, path, body] of [
      ['GET', '/subscriptions/<id>'],
      ['HEAD', '/subscriptions/<id>'],
      ['PUT', '/subscriptions/<id>', {}],
      ['PUT', '/subscriptions/<id>', whole],
      ['PUT', '/subscriptions/<id>', { config: { state: 'paused' } }],
      ['DELETE', '/subscriptions/<id>'],
      ['DELETE', '/subscriptions/<id>?force=true'],
      ['POST', '/subscriptions/<id>/test'],
      ['POST', '/subscriptions/<id>/redeliver', { fromBlock: 0 }],
      ['GET', '/subscriptions/<id>/deliveries'],
      ['GET', '/events/stream?subscription=<id>'],
      ['GET', '/deliveries?subscription=<id>'],
    ] as const)
      await this.#expectSame(key, method, path, [id, randomUUID()], body);
    const after = await ask(model.url, ADMIN_KEY, 'GET', `/subscriptions/${id}`);
    if (faceOf(before) !== faceOf(after)) this.#wrong(`${key.owner} changed ${id}`);
  }

  async #probeEvents(key: ModelKey): Promise<void> {
    const { model, random } = this;
    const rows = await model.replicas[0]?.database.db.selectFrom('events').select('body').execute();
    const all = (rows ?? []).map(({ body }) => JSON.parse(body) as Body);
    const foreign = all.filter((body) => !model.seesTransaction(key.scope, transactionOf(body)));
    if (foreign.length > 0) {
      const { id } = random.pick(foreign);
      const missing = randomUUID();
      await this.#expectSame(key, 'GET', '/events/<id>', [id, missing]);
      await this.#expectSame(key, 'GET', '/deliveries?event=<id>', [id, missing]);
      for (const own of this.#ownOf(key))
        if (key.may.includes('subscribe'))
          await this.#expectSame(key, 'POST', `/subscriptions/${own.id}/redeliver`, [id, missing], {
            event: '<id>',
          });
    }
    const [seen] = await this.#stream(
      key,
      `?retractions=${random.chance(0.5)}&limit=${1 + random.below(20)}`,
    );
    if (seen === undefined) return;
    const { status } = await this.#as(key, 'GET', `/events/${seen.id}`);
    if (status !== 200)
      this.#wrong(`${key.owner} fetched ${seen.type} ${seen.id}, which it cannot show: ${status}`);
  }

  async #probeTokens(key: ModelKey): Promise<void> {
    const { model, random } = this;
    const missing = random.hex(32).slice(2);
    const others: string[] = [];
    for (const [index, registry] of model.registries.entries()) {
      const identity = REGISTRIES[index] ?? REGISTRIES[0];
      const tokenIds = new Set(registry.recorded().map(({ tokenId }) => tokenId));
      const place = `?registry=${identity.registryAddress}&chainId=${identity.chainId}`;
      for (const tokenId of tokenIds) {
        if (tokenId === undefined) continue;
        const events = registry.recorded().filter((event) => event.tokenId === tokenId);
        const hex = hexOf(tokenId);
        const isSeen = (event: RegistryEvent): boolean => sees(key.scope, identity, event);
        const isPresent = registry.present().some((event) => event.tokenId === tokenId && isSeen(event));
        if (isPresent) {
          const { status } = await this.#as(key, 'GET', `/tokens/${hex}/evidence${place}`);
          if (status !== 200 && !model.hasPurged)
            this.#wrong(`${key.owner} is not shown token ${hex}: ${status}`);
        } else if (!model.hasPurged || !events.some(isSeen)) {
          // A token that it sees is read from the chain, and there is none.
          if (await this.#expectSame(key, 'GET', `/tokens/<id>/evidence${place}`, [hex, missing]))
            await this.#expectSame(key, 'GET', `/tokens/<id>${place}`, [hex, missing]);
          others.push(hex);
        }
      }
      const [own = missing] = others;
      for (const path of ['/events?token=<id>', '/deliveries?token=<id>'])
        if (random.chance(0.2) && !model.subscriptions.some(({ owner }) => owner === key.owner))
          await this.#expectSame(key, 'GET', path, [own, missing]);
      if (key.scope.registries && !key.scope.registries.includes(sourceOf(identity))) {
        const address = identity.registryAddress;
        const path = `/events/stream?source=urn:service:${identity.chainId}:<id>`;
        await this.#expectSame(key, 'GET', path, [address, random.hex(20)]);
        const old = this.#cursors.length > 0 ? random.pick(this.#cursors) : '';
        await this.#expectSame(key, 'GET', `${path}&after=${old}`, [address, random.hex(20)]);
      }
    }
  }

  /** Expects only what is its own in each list, and in each page of it. */
  async #probeLists(key: ModelKey): Promise<void> {
    const { model, random } = this;
    const own = new Set(this.#ownOf(key, true).map(({ id }) => id));
    const rows = await model.replicas[0]?.database.db.selectFrom('events').select('body').execute();
    const byId = new Map(
      (rows ?? []).map(({ body }) => [(JSON.parse(body) as Body).id, JSON.parse(body) as Body]),
    );
    type Listed = { id: string; subscription?: string; deliveries?: { subscription: string }[] };
    for (const list of ['/events', '/deliveries', '/subscriptions']) {
      if (list === '/subscriptions' && !key.may.includes('subscribe')) continue;
      const found: Listed[] = [];
      let path: string | undefined = `${list}?limit=${1 + random.below(8)}`;
      for (let page = 0; path !== undefined && page < 20; page++) {
        const answer: Answer = await this.#as(key, 'GET', path);
        if (answer.status !== 200) this.#wrong(`${path} is answered ${answer.status} ${answer.message}`);
        else found.push(...(answer.body as Listed[]));
        path = nextOf(answer);
        if (path !== undefined) this.#notePosition(key, path);
      }
      for (const one of found) {
        const named = [
          one.subscription ?? [],
          one.deliveries?.map(({ subscription }) => subscription) ?? [],
        ].flat();
        const subscriptions = list === '/subscriptions' ? [one.id] : named;
        for (const id of subscriptions) if (!own.has(id)) this.#wrong(`${key.owner} sees ${id} in ${list}`);
        const body = byId.get(one.id);
        if (body && !model.seesTransaction(key.scope, transactionOf(body)))
          this.#wrong(`${key.owner} sees ${one.id} in ${list}`);
      }
    }
  }

  /** Uses positions and cursors of others. */
  async #probePositions(key: ModelKey): Promise<void> {
    const { model, random } = this;
    const others = this.#positions.filter(({ owner }) => owner !== key.owner);
    if (others.length > 0) {
      const { path } = random.pick(others);
      const [base = '', after = ''] = path.split(/(?<=[?&]after=)/);
      const [given = '', ...rest] = after.split('&');
      const forged = Buffer.from(random.hex(given.length)).toString('base64url').slice(0, given.length);
      if (!base.startsWith('/subscriptions') || key.may.includes('subscribe'))
        await this.#expectSame(key, 'GET', [`${base}<id>`, ...rest].join('&'), [given, forged]);
    }
    if (this.#cursors.length === 0) return;
    const answer = await this.#as(key, 'GET', `/events/stream?after=${random.pick(this.#cursors)}`);
    if (answer.status === 200) this.#expectOwn(key, answer);
    else if (answer.status !== 410) this.#wrong(`a cursor is answered ${answer.status}`);
    model.history.count('positions of others');
  }

  /** Changes a subscription of its own, while others may end the key. */
  async #change(key: ModelKey): Promise<void> {
    const { model, random } = this;
    const all = this.#ownOf(key);
    if (all.length === 0 || !key.may.includes('subscribe')) return;
    const subscription = random.pick(all);
    const path = `/subscriptions/${subscription.id}`;
    const kind = random.below(3);
    if (kind === 0) {
      const { status, body, message } = await this.#as(key, 'POST', `${path}/redeliver`, { fromBlock: 0 });
      if (status === 202) this.#expectCounts(subscription, body);
      else if (key.endsAt > model.time.now() && !subscription.isDeleted)
        this.#wrong(`a redelivery is refused: ${message}`);
    } else if (kind === 1) {
      // Requests under way may find it or not.
      subscription.isDeleted = true;
      // It may be a new one, which was not filled yet.
      const { status, headers, message } = await this.#as(key, 'DELETE', path);
      const most = this.#mostOf(subscription);
      const told = Number(headers.get('x-undelivered') ?? (/^\d+/.exec(message)?.[0] || 0));
      subscription.isDeleted = status === 200;
      if (told > most)
        this.#wrong(`${key.owner} is told of ${told} undelivered events, and sees at most ${most}`);
    } else {
      const { status, body } = await this.#as(key, 'GET', path);
      if (status !== 200) return;
      const { config, ...rest } = body as { config: object };
      await this.#as(key, 'PUT', path, {
        ...rest,
        config: { ...config, state: random.pick(['active', 'paused']) },
      });
    }
  }

  #expectCounts(subscription: ModelSubscription, body: unknown): void {
    const { registries } = body as {
      registries: { registry: string; queued: number; alreadyWaiting: number }[];
    };
    for (const { registry, queued, alreadyWaiting } of registries) {
      const most = this.#mostOf(subscription, registry);
      if (queued + alreadyWaiting > most)
        this.#wrong(`${queued} and ${alreadyWaiting} events of ${registry} are told of, of at most ${most}`);
      if (most === 0) this.#wrong(`a registry out of scope is named: ${registry}`);
    }
  }

  /** Never more events than these are for a subscription, in one registry or in all. */
  #mostOf({ scope, hasRetractions }: ModelSubscription, name?: string): number {
    const seen = this.model.registries.flatMap((registry, index) => {
      const identity = REGISTRIES[index] ?? REGISTRIES[0];
      const isNamed = name === undefined || `urn:service:${name}` === sourceOf(identity);
      return isNamed ? registry.recorded().filter((event) => sees(scope, identity, event)) : [];
    });
    return seen.length * (hasRetractions ? 3 : 1);
  }

  /** All of the stream that a key may fetch. */
  async #stream(key: ModelKey, query: string): Promise<Body[]> {
    const found: Body[] = [];
    for (let after = '', pages = 0; ; pages++) {
      const answer = await this.#as(key, 'GET', `/events/stream${query}${after}`);
      if (answer.status !== 200) {
        this.#wrong(`the stream is answered ${answer.status} ${answer.message}`);
        return found;
      }
      const { events, cursor } = answer.body as StreamPage;
      this.#expectOwn(key, answer);
      found.push(...events.map(({ body }) => JSON.parse(body) as Body));
      if (events.length === 0 || pages > 200) return found;
      after = `&after=${cursor}`;
    }
  }

  /** Expects nothing of others in a page of the stream, and a cursor of the usual form. */
  #expectOwn(key: ModelKey, answer: Answer): void {
    if (answer.status !== 200) return;
    const { events, cursor } = answer.body as StreamPage;
    for (const { body } of events)
      if (!this.model.seesTransaction(key.scope, transactionOf(JSON.parse(body) as Body)))
        this.#wrong(`${key.owner} fetched ${body}`);
    for (const text of [cursor, ...events.map((one) => one.cursor)]) {
      this.#cursorLength ??= text.length;
      if (text.length !== this.#cursorLength) this.#wrong(`a cursor has ${text.length} characters`);
    }
    this.#cursors.push(cursor);
    this.model.history.count('events fetched by holders', events.length);
  }

  #notePosition({ owner }: ModelKey, path: string): void {
    const position = new URLSearchParams(path.split('?')[1]).get('after') ?? '';
    this.#positionLength ??= position.length;
    if (position.length !== this.#positionLength) this.#wrong(`a position has ${position.length} characters`);
    this.#positions.push({ owner, path });
  }

  /** Expects that the answers to what others have, and to what nobody has, are the same. */
  async #expectSame(
    key: ModelKey,
    method: string,
    path: string,
    [foreign, missing]: readonly [string, string],
    body?: object,
  ): Promise<boolean> {
    const faces: string[] = [];
    for (const id of [foreign, missing]) {
      const sent = body && (JSON.parse(JSON.stringify(body).replaceAll('<id>', id)) as object);
      faces.push(faceOf(await this.#as(key, method, path.replaceAll('<id>', id), sent), id));
    }
    this.model.history.count('answers compared');
    const isSame = faces[0] === faces[1];
    if (!isSame)
      this.#wrong(`${key.owner}: ${method} ${path} of ${foreign} and of ${missing} is\n${faces.join('\n')}`);
    return isSame;
  }

  #ownOf({ owner }: ModelKey, all = false): ModelSubscription[] {
    return this.model.subscriptions.filter((one) => one.owner === owner && (all || !one.isDeleted));
  }

  async #as({ key }: ModelKey, method: string, path: string, body?: unknown): Promise<Answer> {
    return ask(this.model.url, key, method, path, body);
  }

  #wrong(what: string): void {
    this.model.history.violation(what);
  }
}

/** The transaction of an event, or of one that was retracted. */
function transactionOf({ data }: Body): string {
  return data.transactionHash ?? data.retracted?.transactionHash ?? '';
}
