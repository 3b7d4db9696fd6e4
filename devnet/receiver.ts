import { createPublicKey } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { invalid } from '../cli/errors';
import { EVENT_SCHEMAS, isKnown, isOfChain, type ServiceEvent } from '../client/events';
import { startReceiver } from '../receiver/receiver';
import { onlyKey } from '../receiver/verify';
import { ServiceError } from '../service/base/errors';
import { shortType, TYPE_PREFIX } from '../service/events/cloud-event';
import { tokenIdHexOf } from '../service/registry/token-id-forms';
import { anyTokenId } from './operations';
import { filesIn, type DevnetOptions, type Place } from './place';

const WITHIN_MS = 20_000;

/** The type of an event, with or without its beginning `com.service.etr.`. */
export type EventType<Event extends ServiceEvent = ServiceEvent> =
  Event['type'] extends `com.service.etr.${infer Suffix}` ? Suffix | Event['type'] : never;

/** The event of a type, if the type is written down; otherwise any event. */
type EventOf<Type extends EventType> = EventType extends Type
  ? ServiceEvent
  : Extract<ServiceEvent, { type: Type | `com.service.etr.${Type}` }>;

/** The event that is waited for. Every member that is left out matches any event. */
export interface Wanted<Type extends EventType = EventType> {
  type?: Type;
  tokenId?: string | bigint;
  /** Hash of the operation's transaction. A mint has events of the same types as the transfers. */
  transactionHash?: string;
  /** Milliseconds; 20,000 by default. */
  withinMs?: number;
}

/** The webhooks that arrived with a valid signature. */
export interface Webhooks {
  /** All so far, in order, taken or not. */
  readonly events: readonly ServiceEvent[];
  /**
   * Takes the first event that matches and was not taken yet, and waits for it if need be. Each event is
   * taken once.
   *
   * @throws ServiceError WEBHOOK_MISSING if none arrives in time; its message lists those not taken yet.
   *   DEVNET_FAILED at once if the devnet fails or is stopped.
   */
  next<const Type extends EventType = EventType>(wanted?: Wanted<Type>): Promise<EventOf<Type>>;
}

/** Keeps webhooks until a test takes them. */
export class WebhookInbox implements Webhooks {
  readonly events: ServiceEvent[] = [];
  #left: ServiceEvent[] = [];
  #end: Error | undefined;
  readonly #arrival = new EventEmitter().setMaxListeners(0);

  add(event: ServiceEvent): void {
    this.events.push(event);
    this.#left.push(event);
    this.#arrival.emit('event');
  }

  /** Nothing arrives any more: `next` rejects with this, unless what it waits for is there. */
  end(reason: Error): void {
    this.#end ??= reason;
    this.#arrival.emit('event');
  }

  async next<const Type extends EventType = EventType>(wanted: Wanted<Type> = {}): Promise<EventOf<Type>> {
    requireValues(wanted);
    const { withinMs = WITHIN_MS } = wanted;
    const type = wanted.type && fullTypeOf(wanted.type);
    const tokenId = wanted.tokenId === undefined ? undefined : anyTokenId(wanted.tokenId);
    const transaction = wanted.transactionHash?.toLowerCase();
    const signal = AbortSignal.timeout(withinMs);
    for (;;) {
      const found = this.#left.find(
        (event) =>
          (type === undefined || event.type === type) &&
          (tokenId === undefined || ('subject' in event && event.subject === String(tokenId))) &&
          (transaction === undefined || transactionOf(event) === transaction),
      );
      if (found) {
        this.#left = this.#left.filter((event) => event !== found);
        return found as EventOf<Type>;
      }
      if (this.#end) throw this.#end;
      await once(this.#arrival, 'event', { signal }).catch(() => {
        const of = `${ofToken(tokenId)}${transaction === undefined ? '' : ` of transaction ${transaction}`}`;
        throw this.#missing(`${type === undefined ? 'webhook' : shortType(type)}${of}`, withinMs);
      });
    }
  }

  #missing(what: string, withinMs: number): ServiceError {
    const left = this.#left.map((event) => {
      const about = isOfChain(event) ? ofToken(BigInt(event.subject)) : '';
      return `${shortType(event.type)}${about}`;
    });
    const arrived = `${this.events.length} arrived; not taken yet: ${left.join(', ') || 'none'}.`;
    return new ServiceError('WEBHOOK_MISSING', `No ${what} arrived within ${withinMs} ms. ${arrived}`);
  }
}

/** The transaction of a chain event, or of the event that is retracted. */
function transactionOf({ data }: ServiceEvent): string | undefined {
  if ('retracted' in data) return data.retracted.transactionHash;
  return 'transactionHash' in data ? data.transactionHash : undefined;
}

/** The id as in a credential, cut short. */
function ofToken(tokenId: bigint | undefined): string {
  return tokenId === undefined ? '' : ` of token ${tokenIdHexOf(tokenId).slice(0, 8)}…`;
}

function fullTypeOf(type: string): string {
  const full = TYPE_PREFIX + shortType(type);
  if (Object.hasOwn(EVENT_SCHEMAS, full)) return full;
  const known = Object.keys(EVENT_SCHEMAS).map(shortType);
  throw invalid(`There is no type ${type}. Known: ${known.join(', ')}.`);
}

/** A misspelled member would be undefined, and any webhook would match. */
function requireValues(wanted: object): void {
  for (const [name, value] of Object.entries(wanted)) {
    if (value !== undefined && ['type', 'tokenId', 'transactionHash', 'withinMs'].includes(name)) continue;
    const problem = value === undefined ? `${name} is undefined` : `There is no ${name}`;
    throw invalid(`${problem}. A webhook is wanted by type, tokenId, transactionHash and withinMs.`);
  }
}

/** Orders of a test to the receiver. */
export interface ReceiverControl {
  /**
   * From now on every delivery is answered with this status, 300 to 599 (by default 503), and not stored.
   * After 410 the service sends nothing more, unless the subscription is resumed.
   */
  refuse(status?: number): void;
  /** Ends `refuse`. */
  accept(): void;
}

/** Starts the reference receiver in this process. `onEvent` gets each verified event after it is stored. */
export async function startOwnReceiver(
  { folder, ports }: Place,
  { retractions = false }: DevnetOptions,
  onEvent: (event: ServiceEvent) => void,
) {
  const files = filesIn(folder);
  let refusal: number | undefined;
  const { url, close } = await startReceiver({
    host: '127.0.0.1',
    port: ports.receiver,
    findKey: onlyKey(createPublicKey(readFileSync(files.publicKey))),
    eventsFile: files.events,
    retractions,
    onEvent: (event) => (isKnown(event) ? onEvent(event) : undefined),
    onProblem: ({ reason }) => {
      if (refusal === undefined) console.error(`receiver: ${reason}`);
    },
    refusal: () => refusal,
  });
  const control: ReceiverControl = {
    refuse(status = 503) {
      if (!Number.isSafeInteger(status) || status < 300 || status > 599)
        throw invalid(`The status is ${status}: give one from 300 to 599.`);
      refusal = status;
    },
    accept: () => void (refusal = undefined),
  };
  return { url: `${url}/webhook`, close, control };
}
