import { createPublicKey, type KeyObject } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
// eslint-disable-next-line no-restricted-syntax -- real time: answers come after random pauses.
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { createReceiver } from '../../../receiver/receiver';
import { EventStore, type StoredEvent } from '../../../receiver/store';
import type { ServiceEvent } from '../../../client/events';
import { onlyKey } from '../../../receiver/verify';
import { owned } from '../resources';
import type { History } from '../scenario';
import type { SeededRandom } from '../seeded-random';
import { MOST_AT_ONCE } from './mortal-service';

/** Turns of the event loop in which this process, which has both ends, sees the end of an aborted request. */
const TURNS_OF_AN_ABORT = 8;
const LONGEST_DELAY_MS = 150;
/** Longer than the time limit of deliveries. */
const TOO_LATE_MS = 300;

/**
 * The reference receiver for a subscription with retractions, behind a network that loses answers. It is
 * slow, fails before or after it has stored an event, and can be killed.
 */
export class UnreliableReceiver {
  isFailing = true;
  readonly #server: Server;
  /** Undefined between a kill and the next start. */
  #store: EventStore | undefined;
  /** The paths of the processes that live. Requests to others come from processes that were killed. */
  readonly #paths = new Set<string>();
  readonly #arrivals: { path: string | undefined; id: string }[] = [];
  #underWay = 0;

  private constructor(
    private readonly file: string,
    private readonly publicKey: KeyObject,
    private readonly random: SeededRandom,
    private readonly history: History,
  ) {
    this.#server = createServer((request, response) => this.#handle(request, response));
  }

  static async start(
    file: string,
    privateKey: KeyObject,
    random: SeededRandom,
    history: History,
  ): Promise<UnreliableReceiver> {
    const receiver = new UnreliableReceiver(file, createPublicKey(privateKey), random, history);
    await receiver.#open();
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    return owned(`unreliable receiver of ${file}`, receiver, 'stop');
  }

  /** The URL for a process of the service. */
  urlOf(life: number): string {
    this.#paths.add(`/${life}`);
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${life}`;
  }

  /** Cuts off a process that was killed, and the requests of the others that are under way. */
  cutOff(life: number): void {
    this.#paths.delete(`/${life}`);
    this.#server.closeAllConnections();
  }

  /** Kills the receiver, perhaps while it writes a line, and starts it again on the same file. */
  async kill(): Promise<void> {
    const store = this.#store;
    this.#store = undefined;
    this.#server.closeAllConnections();
    await store?.close();
    if (this.random.chance(0.5)) appendFileSync(this.file, '{"specversion":"1.0","id":"');
    await sleep(this.random.below(LONGEST_DELAY_MS));
    await this.#open();
  }

  /** Everything that was stored, in order. */
  stored(): ServiceEvent[] {
    const lines = readFileSync(this.file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as ServiceEvent);
  }

  /** How often the processes that were not killed sent an event. */
  arrivalsOf(id: string): number {
    return this.#arrivals.filter((one) => one.id === id && this.#paths.has(one.path ?? '')).length;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.#store?.close();
  }

  async #open(): Promise<void> {
    this.#store = await EventStore.open(this.file, { retractions: true, onEvent: () => undefined });
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const store = this.#store;
    if (!this.#paths.has(request.url ?? '') || store === undefined) return void request.socket.destroy();
    void this.#count(response);
    const app = createReceiver({
      findKey: onlyKey(this.publicKey),
      store: { add: (event) => this.#add(store, event, request) },
    });
    app.silent = true;
    void app.callback()(request, response);
  }

  /** Notes more requests at once than the limit allows. */
  async #count(response: ServerResponse): Promise<void> {
    this.#underWay++;
    response.on('close', () => this.#underWay--);
    // The end of a request that was aborted may be seen after the next request.
    for (let turn = 0; turn < TURNS_OF_AN_ABORT && this.#underWay > MOST_AT_ONCE; turn++) await nextTurn();
    if (this.#underWay > MOST_AT_ONCE)
      this.history.violation(`${this.file} has ${this.#underWay} deliveries at once`);
  }

  async #add(
    store: EventStore,
    event: StoredEvent,
    request: IncomingMessage,
  ): Promise<'stored' | 'duplicate'> {
    const { random } = this;
    this.#arrivals.push({ path: request.url, id: event.id });
    if (!this.isFailing || random.chance(0.5)) return store.add(event);
    if (random.chance(0.3)) throw new Error('the disk is full');
    if (random.chance(0.4)) await sleep(random.chance(0.1) ? TOO_LATE_MS : random.below(LONGEST_DELAY_MS));
    // It may have been killed meanwhile, or the service.
    if (this.#store !== store) throw new Error('the receiver is dead');
    const added = await store.add(event);
    if (random.chance(0.4)) throw new Error('it is stored, and the answer is an error all the same');
    if (random.chance(0.4)) request.socket.destroy();
    if (random.chance(0.3)) await sleep(random.chance(0.1) ? TOO_LATE_MS : random.below(LONGEST_DELAY_MS));
    return added;
  }
}
