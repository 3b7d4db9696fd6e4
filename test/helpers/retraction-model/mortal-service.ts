import type { KeyObject } from 'node:crypto';
import { ColumnNode, sql, type KyselyPlugin, type UpdateQueryNode, ValueNode } from 'kysely';
import pino from 'pino';
import { createLifecycle } from '../../../service/base/lifecycle';
import { signingKeyOf } from '../../../service/base/signing-keys';
import { systemTime } from '../../../service/base/time';
import { findNetwork, type Network } from '../../../service/chain/networks';
import { connectNode } from '../../../service/chain/chain';
import type { Database } from '../../../service/database/database';
import { createJointTransactions } from '../../../service/database/sqlite-driver';
import { createDeliverers } from '../../../service/delivery/deliverers';
import { createDeliverySlots } from '../../../service/delivery/delivery-slots';
import { createFeedDelivery } from '../../../service/delivery/feed-delivery';
import { DEFAULT_SUBSCRIPTION } from '../../../service/outbox/channels';
import { RegistryFollower } from '../../../service/watcher/follow-registry';
import { eventually } from '../eventually';
import { openState, type State } from '../database/engines';
import { addSubscription } from '../database/subscriber';
import type { SeededRandom } from '../seeded-random';
import type { UnreliableReceiver } from './unreliable-receiver';

/** The chain, the database and the receivers of the service. */
export interface ServiceParts {
  state: State;
  rpcUrl: string;
  registryAddress: string;
  startBlock: number;
  finalityDepth: number;
  privateKey: KeyObject;
  /** By subscription: `default`, or the name of one with retractions. */
  receivers: ReadonlyMap<string, UnreliableReceiver>;
}

const PROCESSES = 3;
/** Deliveries of a subscription at once. */
export const MOST_AT_ONCE = 2;
const NETWORK = findNetwork('31337') as Network;
/** Shorter than the slowest answers of the receivers. */
const TIMEOUT_MS = 250;
/** A process that was not seen for so long is gone to the others. */
const UNSEEN_MS = 10_000;
const RETRY = { initialDelayMs: 5, maxDelayMs: 40, giveUpAfterMs: 1_000_000_000 };

/**
 * Event delivery whose processes can be killed at any statement. On PostgreSQL it has three. A kill also
 * ends the leases of the process, and sets back when it was seen last.
 */
export class MortalService {
  readonly #dying: Promise<unknown>[] = [];
  readonly #running: Running[] = [];
  #lives = 0;

  constructor(private readonly parts: ServiceParts) {}

  get isRunning(): boolean {
    return this.#running.length > 0;
  }

  /** The open database. */
  get database(): Database {
    const [running] = this.#running;
    if (running === undefined) throw new Error('the service does not run');
    return running.file;
  }

  /** Starts the processes that do not run. */
  async start(): Promise<void> {
    const { state, receivers } = this.parts;
    do {
      const file = await openState(state);
      if (this.#lives === 0)
        for (const name of receivers.keys())
          if (name !== DEFAULT_SUBSCRIPTION)
            await addSubscription(file, { config: { retractions: true } }, name);
      this.#running.push(this.#startProcess(file, ++this.#lives));
    } while (this.database.engine === 'postgres' && this.#running.length < PROCESSES);
  }

  #startProcess(file: Database, life: number): Running {
    const { receivers, rpcUrl, registryAddress, startBlock, finalityDepth } = this.parts;
    const mortal = mortalDatabase(file);
    const urls = new Map([...receivers].map(([name, receiver]) => [name, receiver.urlOf(life)]));
    const time = systemTime;
    const logger = pino({ level: 'silent' });
    const delivery = createFeedDelivery({
      database: mortal.database,
      time,
      logger,
      slots: createDeliverySlots({ most: 1_000, time, logger }),
      deliverers: createDeliverers(mortal.database, { id: idOf(life), time, logger }),
      targetOf: ({ subscription }) => ({
        url: urls.get(subscription) ?? '',
        headers: {},
        timeoutMs: TIMEOUT_MS,
        maxConcurrentDeliveries: MOST_AT_ONCE,
        retry: RETRY,
        signingKeys: { key: signingKeyOf(this.parts.privateKey), next: undefined },
      }),
      restorePurged: async () => undefined,
      lifecycle: createLifecycle(),
      registry: 'operations',
    });
    const client = connectNode(rpcUrl, {}, time, 'bulk');
    const { chainKey, chainId } = NETWORK;
    const follower = new RegistryFollower({
      lifecycle: createLifecycle(),
      client,
      registryAddress,
      identity: { chainKey, chainId, registryAddress: registryAddress.toLowerCase() },
      startBlock,
      readFinalBlock: async (headBlock) => headBlock,
      finalityDepth,
      pauses: { shortest: 5, longest: 10 },
      database: mortal.database,
      time,
      logger,
      mask: (text) => text,
      checkChain: () => Promise.resolve(),
      delivery,
      tracesOf: async () => new Map(),
    });
    const stopFollowing = async (): Promise<void> => {
      await follower.stop();
      client.close();
    };
    const stopDelivery = () => delivery.stop();
    const { die, leases } = mortal;
    return { life, file, die, leases, stopFollowing, stopDelivery, state: () => follower.status.state };
  }

  /** The reason why the feed is not followed any more. Undefined while it is followed. */
  get stoppedBecause(): string | undefined {
    return this.#running.some(({ state }) => state() === 'stopped') ? 'the feed has stopped' : undefined;
  }

  /** Ends a process at once. Nothing that is under way is recorded. */
  async kill(random: SeededRandom): Promise<void> {
    const running = random.pick(this.#running);
    const { life, file } = running;
    this.#running.splice(this.#running.indexOf(running), 1);
    running.die();
    for (const receiver of this.parts.receivers.values()) receiver.cutOff(life);
    this.#dying.push(running.stopDelivery());
    // Otherwise the next life would wait two seconds for the right to read the chain.
    await running.stopFollowing();
    // A statement waits for the open transaction, which is rolled back now. Its connection may have been lost
    // just before.
    await eventually('its time is over', () =>
      endTimeOf(running).then(
        () => true,
        () => false,
      ),
    );
    await file.close();
  }

  /** Ends the connections of all processes to a PostgreSQL database, as a restart of it does. */
  async loseConnections(): Promise<void> {
    const { db, engine } = this.database;
    if (engine === 'sqlite') return;
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`.execute(db);
  }

  async stop(): Promise<void> {
    const running = this.#running.splice(0);
    await Promise.all(
      running.flatMap(({ stopFollowing, stopDelivery }) => [stopFollowing(), stopDelivery()]),
    );
    await Promise.all(running.map(({ file }) => file.close()));
    await Promise.all(this.#dying);
  }
}

function idOf(life: number): string {
  return `life ${life}`;
}

/** Ends the leases of a process that was killed, as if it had died so long ago. */
async function endTimeOf({ life, file: { db }, leases }: Running): Promise<void> {
  await db
    .updateTable('deliverers')
    .set((eb) => ({ seen_at: eb('seen_at', '-', UNSEEN_MS) }))
    .where('process', '=', idOf(life))
    .execute();
  if (leases.size > 0)
    await db
      .updateTable('queues')
      .set({ next_attempt_at: systemTime.now() })
      .where('lease', 'in', [...leases])
      .execute();
}

interface Running {
  life: number;
  file: Database;
  die: () => void;
  /** The leases of all its claims. */
  leases: ReadonlySet<string>;
  stopFollowing: () => Promise<void>;
  stopDelivery: () => Promise<void>;
  state: () => string;
}

/** A database whose statements fail from `die` on, also those of open transactions. It notes the leases. */
function mortalDatabase(file: Database): Pick<Running, 'die' | 'leases'> & { database: Database } {
  let isDead = false;
  const leases = new Set<string>();
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      if (isDead) throw new Error('the process is dead');
      if (node.kind === 'UpdateQueryNode') for (const lease of leasesIn(node)) leases.add(lease);
      return node;
    },
    transformResult: ({ result }) => Promise.resolve(result),
  };
  const db = file.db.withPlugin(plugin);
  return {
    leases,
    database: {
      ...file,
      db,
      transact:
        file.engine === 'sqlite' ? createJointTransactions(db) : (work) => db.transaction().execute(work),
    },
    die: () => void (isDead = true),
  };
}

/** The lease that a statement sets. */
function leasesIn({ updates = [] }: UpdateQueryNode): string[] {
  return updates.flatMap(({ column, value }) => {
    const isLease = ColumnNode.is(column) && column.column.name === 'lease' && ValueNode.is(value);
    return isLease && typeof value.value === 'string' ? value.value : [];
  });
}
