import type { KeyObject } from 'node:crypto';
import type { KyselyPlugin } from 'kysely';
import pino from 'pino';
import { createLifecycle } from '../../../service/base/lifecycle';
import { signingKeyOf } from '../../../service/base/signing-keys';
import { systemTime } from '../../../service/base/time';
import { findNetwork, type Network } from '../../../service/chain/networks';
import { connectNode } from '../../../service/chain/chain';
import type { Database } from '../../../service/database/database';
import { createJointTransactions } from '../../../service/database/sqlite-driver';
import { createDeliverySlots } from '../../../service/delivery/delivery-slots';
import { createFeedDelivery } from '../../../service/delivery/feed-delivery';
import { DEFAULT_SUBSCRIPTION } from '../../../service/outbox/channels';
import { RegistryFollower } from '../../../service/watcher/follow-registry';
import { openState, type State } from '../database/engines';
import { addSubscription } from '../database/subscriber';
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

const NETWORK = findNetwork('31337') as Network;
/** Shorter than the slowest answers of the receivers. */
const TIMEOUT_MS = 250;
/** Longer than a lease. On PostgreSQL a service waits for the leases of one that was killed. */
const LEASES_END_AFTER_MS = 60_000;
const RETRY = { initialDelayMs: 5, maxDelayMs: 40, giveUpAfterMs: 1_000_000_000 };

/** Event delivery that can be killed at any statement. Its clock runs ahead after each kill. */
export class MortalService {
  readonly #dying: Promise<unknown>[] = [];
  #life = 0;
  #running: Running | undefined;

  constructor(private readonly parts: ServiceParts) {}

  /** The open database. */
  get database(): Database {
    if (this.#running === undefined) throw new Error('the service is dead');
    return this.#running.file;
  }

  async start(): Promise<void> {
    const { state, receivers, rpcUrl, registryAddress, startBlock, finalityDepth } = this.parts;
    const life = ++this.#life;
    const file = await openState(state);
    if (life === 1)
      for (const name of receivers.keys())
        if (name !== DEFAULT_SUBSCRIPTION)
          await addSubscription(file, { config: { retractions: true } }, name);
    const mortal = mortalDatabase(file);
    const urls = new Map([...receivers].map(([name, receiver]) => [name, receiver.nextUrl(life)]));
    const now = (): number => systemTime.now() + (life - 1) * LEASES_END_AFTER_MS;
    const time = { ...systemTime, now };
    const logger = pino({ level: 'silent' });
    const delivery = createFeedDelivery({
      database: mortal.database,
      time,
      logger,
      slots: createDeliverySlots({ most: 1_000, time, logger }),
      targetOf: ({ subscription }) => ({
        url: urls.get(subscription) ?? '',
        headers: {},
        timeoutMs: TIMEOUT_MS,
        maxConcurrentDeliveries: 4,
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
    });
    const stopFollowing = async (): Promise<void> => {
      await follower.stop();
      client.close();
    };
    const stopDelivery = () => delivery.stop();
    const { die } = mortal;
    this.#running = { file, die, stopFollowing, stopDelivery, state: () => follower.status.state };
  }

  /** The reason why the feed is not followed any more. Undefined while it is followed. */
  get stoppedBecause(): string | undefined {
    return this.#running?.state() === 'stopped' ? 'the feed has stopped' : undefined;
  }

  /** Ends everything at once. Nothing that is under way is recorded. */
  async kill(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    running.die();
    for (const receiver of this.parts.receivers.values()) receiver.nextUrl(this.#life + 1);
    this.#dying.push(running.stopDelivery());
    // Otherwise the next life would wait two seconds for the right to read the chain.
    await running.stopFollowing();
    // A read waits for the open transaction, which is rolled back now.
    await running.file.db.selectFrom('feeds').select('id').execute();
    await running.file.close();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#running?.stopFollowing(), this.#running?.stopDelivery()]);
    await this.#running?.file.close();
    this.#running = undefined;
    await Promise.all(this.#dying);
  }
}

interface Running {
  file: Database;
  die: () => void;
  stopFollowing: () => Promise<void>;
  stopDelivery: () => Promise<void>;
  state: () => string;
}

/** A database whose statements fail from `die` on, also those of open transactions. */
function mortalDatabase(file: Database): { database: Database; die: () => void } {
  let isDead = false;
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      if (isDead) throw new Error('the process is dead');
      return node;
    },
    transformResult: ({ result }) => Promise.resolve(result),
  };
  const db = file.db.withPlugin(plugin);
  return {
    database: {
      ...file,
      db,
      transact:
        file.engine === 'sqlite' ? createJointTransactions(db) : (work) => db.transaction().execute(work),
    },
    die: () => void (isDead = true),
  };
}
