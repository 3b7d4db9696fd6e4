import { messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import type { RegistryName } from '../base/registry-name';
import type { AnsweringFeed } from '../console/delivery-views';

/** The event delivery of one registry. */
export interface DeliveredFeed extends AnsweringFeed {
  /** Call it after subscriptions have changed. */
  refresh(): Promise<void>;
  /** Reads a block again after it has been read, because an event of its transactions is missing. */
  readAgain(this: void, block: number): void;
  stop(): Promise<void>;
}

/** A feed that is to run. */
export interface WantedFeed {
  name: RegistryName;
  /** A feed that runs with another version is replaced. */
  version: string;
  start: () => DeliveredFeed;
}

/** The feeds that this process reads and delivers. The set changes while the process runs. */
export interface FeedSet {
  readonly running: readonly DeliveredFeed[];
  /** Starts the feeds that are missing, and stops those that are not wanted. */
  change(wanted: readonly WantedFeed[]): void;
  stop(): Promise<void>;
}

/** Creates an empty set. */
export function createFeedSet(logger: Logger): FeedSet {
  const running = new Map<RegistryName, { version: string; feed: DeliveredFeed }>();
  /** A feed that stops waits for its deliveries. Until then it must not be started again. */
  const stopping = new Map<RegistryName, Promise<void>>();
  let wanted: readonly WantedFeed[] = [];

  function stopFeed(name: RegistryName, feed: DeliveredFeed): void {
    running.delete(name);
    const stopped = feed
      .stop()
      .catch((error: unknown) => logger.error({ error, registry: name }, messageOf(error)))
      .then(() => {
        stopping.delete(name);
        apply();
      });
    stopping.set(name, stopped);
  }

  function apply(): void {
    const versions = new Map(wanted.map(({ name, version }) => [name, version]));
    for (const [name, { version, feed }] of running) if (versions.get(name) !== version) stopFeed(name, feed);
    for (const { name, version, start } of wanted)
      if (!running.has(name) && !stopping.has(name)) running.set(name, { version, feed: start() });
  }

  return {
    get running() {
      return [...running.values()].map(({ feed }) => feed);
    },
    change(next) {
      wanted = next;
      apply();
    },
    async stop() {
      wanted = [];
      apply();
      await Promise.all(stopping.values());
    },
  };
}
