import { PassThrough, type Readable } from 'node:stream';
import type { Clock } from '../base/clock';
import type { TokenFacts } from './session-token';
import type { Overview } from './views';

/** Server-sent events of the overview, for every page that is open. */
export interface Streams {
  /**
   * Opens a stream for a session. Undefined: there are too many.
   *
   * @param unsent the bytes that wait for its client, besides those in the stream.
   */
  open(session: TokenFacts, unsent: () => number): Readable | undefined;
  /** Ends the streams of a session. */
  endOf(session: TokenFacts): void;
  /** Ends all streams, and opens none any more. */
  stop(this: void): void;
}

/** Sources of the events. */
export interface StreamsOptions {
  overview(this: void): Promise<Overview>;
  clock: Clock;
  /** Called if the overview cannot be made. */
  failed(this: void, error: unknown): void;
}

const TICK_MS = 1_000;
const HEARTBEAT_MS = 15_000;
const MOST_STREAMS = 50;
/** The oldest ends if a session opens more, so that one session does not take all. */
const MOST_OF_SESSION = 5;
/** A client that reads so slowly is ended: it opens another stream when it is back. */
const MOST_UNSENT_BYTES = 1024 * 1024;
const END = 'event: end\ndata: {}\n\n';
/** A named event: the page notices that the stream is dead when none arrives. */
const ALIVE = 'event: alive\ndata: {}\n\n';

interface Stream {
  session: TokenFacts;
  body: PassThrough;
  unsent: () => number;
  /** The last overview that was sent, without its time. */
  sent: string;
  writtenAt: number;
}

/** Sends the overview to all streams at most once a second, and nothing while there are none. */
export function createStreams({ overview, clock, failed }: StreamsOptions): Streams {
  const streams = new Set<Stream>();
  let ticking: NodeJS.Timeout | undefined;
  let isUnderWay = false;
  let isStopped = false;

  function forget(stream: Stream): void {
    streams.delete(stream);
    if (streams.size > 0) return;
    clearInterval(ticking);
    ticking = undefined;
  }

  function end(stream: Stream): void {
    forget(stream);
    stream.body.end(END);
  }

  function write(stream: Stream, text: string): void {
    const { body, unsent } = stream;
    body.write(text);
    stream.writtenAt = clock.now();
    if (body.readableLength + body.writableLength + unsent() <= MOST_UNSENT_BYTES) return;
    forget(stream);
    body.destroy();
  }

  async function tick(): Promise<void> {
    const now = clock.now();
    for (const stream of streams) {
      if (stream.session.expiresAt <= now) end(stream);
      else if (now - stream.writtenAt >= HEARTBEAT_MS) write(stream, ALIVE);
    }
    if (isUnderWay || streams.size === 0) return;
    isUnderWay = true;
    try {
      const current = await overview();
      const { at, ...rest } = current;
      const [text, event] = [JSON.stringify(rest), JSON.stringify({ at, ...rest })];
      for (const stream of streams) {
        if (stream.sent !== text) write(stream, `event: overview\ndata: ${event}\n\n`);
        stream.sent = text;
      }
    } catch (error) {
      failed(error);
    } finally {
      isUnderWay = false;
    }
  }

  return {
    open(session, unsent) {
      if (isStopped) return undefined;
      const [oldest, ...others] = [...streams].filter((one) => one.session.id === session.id);
      if (oldest !== undefined && others.length + 1 >= MOST_OF_SESSION) {
        forget(oldest);
        oldest.body.end();
      }
      if (streams.size >= MOST_STREAMS) return undefined;
      const body = new PassThrough();
      const stream = { session, body, unsent, sent: '', writtenAt: clock.now() };
      body.once('close', () => forget(stream));
      streams.add(stream);
      ticking ??= setInterval(() => void tick(), TICK_MS);
      void tick();
      return body;
    },
    endOf({ id }) {
      for (const stream of streams) if (stream.session.id === id) end(stream);
    },
    stop() {
      isStopped = true;
      for (const stream of streams) end(stream);
    },
  };
}
