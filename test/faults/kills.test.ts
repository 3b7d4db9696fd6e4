import { writeFileSync } from 'node:fs';
// eslint-disable-next-line no-restricted-syntax -- real time: kills and answers come at random moments.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { type Block, toBeHex } from 'ethers';
import { sql } from 'kysely';
import { systemTime } from '../../service/base/time';
import type { Database } from '../../service/database/database';
import { expectedEvents } from '../helpers/chain/expected-events';
import { expectPromisesKept } from '../helpers/receiver/delivery-promises';
import { escrowOf, mintCall, mintDirectly, transferCall, transferHolder } from '../helpers/chain/direct-mint';
import { sendTransaction, type Call } from '../helpers/chain/transactions';
import { ENGINES, newState, openState, type Engine } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import {
  accept,
  startRecordingReceiver,
  type Answer,
  type Delivery,
  type RecordingReceiver,
} from '../helpers/receiver/recording-receiver';
import { startRpcProxy, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';
import { startService } from '../helpers/processes/running-service';
import { launchServiceProcess, type LaunchedService } from '../helpers/processes/service-process';
import { stopLater } from '../helpers/resources';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

const KILLS: Record<Engine, number> = { SQLite: 4, PostgreSQL: 3 };
/**
 * The moments of the kills: first a delivery that is not answered, then the start, reading, and an answered
 * delivery. The timing within them is real, and differs in each run.
 */
const SEED = 31;
/** About as long as a service takes to start. */
const START_MS = 800;
/** Two queries, each asked twice. */
const CALLS_OF_A_READING = 4;
const LONGEST_ANSWER_MS = 20;
/**
 * Longer than a busy machine takes to answer: an attempt that timed out may arrive after later events.
 */
const TIMEOUT_MS = 60_000;
/** Events of a token that are claimed, and settled, together. */
const CLAIMED_TOGETHER = 32;
/**
 * On PostgreSQL, a delivery that a killed process had claimed is due again when the lease ends: after two
 * timeouts and ten seconds.
 */
const LEASE_MS = 2 * TIMEOUT_MS + 10_000;

const PROCESSES = 3;
const KILLS_OF_PROCESSES = 2;
const TOKENS = 6;

type Randoms = [SeededRandom, SeededRandom, SeededRandom];

describe('a service that is killed repeatedly', () => {
  const local = localSetupOfSuite();

  before(async () => {
    const webhook = { timeoutMs: TIMEOUT_MS, retry: { initialDelayMs: 50, maxDelayMs: 200 } };
    writeFileSync(local.settings.SERVICE_CONFIG ?? '', JSON.stringify({ webhook }));
  });

  for (const engine of ENGINES) {
    it(`delivers every event, in order, with its state in ${engine} (seed ${SEED})`, async function () {
      await using state = await newState(engine);
      if (state === undefined) return this.skip();
      const fromBlock = (await local.client.getBlockNumber()) + 1;
      const settings = { ...local.settings, ...state.settings, START_BLOCK: String(fromBlock) };
      const deliveries = await deliveredInSpiteOfKills(KILLS[engine], settings, fromBlock);
      const expected = await expectedEvents(local.client, local.registryAddress, fromBlock);
      expectPromisesKept(deliveries, expected, { mostBack: CLAIMED_TOGETHER - 1 });
      // Otherwise no process was killed between the arrival of a delivery and its settlement.
      expect(deliveries.some(({ attempt }) => attempt > 1)).to.equal(true);
    });
  }

  async function deliveredInSpiteOfKills(
    kills: number,
    settings: Record<string, string>,
    fromBlock: number,
  ): Promise<readonly Delivery[]> {
    // Three generators: how often one of them draws does not change what the others draw.
    const [moments, pauses, operations] = [0, 1, 2].map((n) => seededRandom(SEED + n)) as Randoms;
    const answer: Answer = async (delivery, response) => {
      await sleep(pauses.below(LONGEST_ANSWER_MS));
      await accept(delivery, response);
    };
    const receiver = await startRecordingReceiver(local.publicKeyFile, answer);
    const node = await startRpcProxy(local.node.url, () => 'none');
    // Without a wallet no signing threads start: issuing has kills of its own (issuing-kills.test.ts).
    const withBoth = { ...settings, WALLET_PRIVATE_KEY: '', RPC_URL: node.url, WEBHOOK_URL: receiver.url };
    const burst = startBurst(operations);
    for (let kill = 1; kill <= kills; kill++) {
      const service = launchServiceProcess(withBoth);
      await momentToKill(moments, service, node, receiver);
      expect(await service.end('SIGKILL'), service.output()).to.equal(null);
      receiver.answerWith(answer);
    }
    await burst.stop();
    await deliverTheRest(withBoth, receiver, fromBlock);
    return receiver.deliveries;
  }

  async function deliverTheRest(
    settings: Record<string, string>,
    receiver: RecordingReceiver,
    fromBlock: number,
  ): Promise<void> {
    const { length } = await expectedEvents(local.client, local.registryAddress, fromBlock);
    // In this process, where the leases of the killed ones have ended.
    const time = { ...systemTime, now: () => systemTime.now() + LEASE_MS };
    const service = await startService(settings, { time });
    const received = (): number => new Set(receiver.deliveries.map(({ event }) => event.id)).size;
    // The comparison that follows names missing events.
    await eventually('all', () => received() >= length).catch(() => undefined);
    await service.stop();
  }

  /** Mints and transfers until it is stopped, so that events occur while services are killed and started. */
  function startBurst(random: SeededRandom): { stop: () => Promise<void> } {
    let isOver = false;
    async function run(): Promise<void> {
      const [owner, other] = [await local.account(1), await local.account(2)];
      while (!isOver) {
        const token = await mintDirectly(local, owner);
        for (let transfer = random.below(4); transfer > 0; transfer -= 2) {
          await transferHolder(local, token, { from: owner, to: other });
          await transferHolder(local, token, { from: other, to: owner });
        }
        await sleep(random.below(300));
      }
    }
    const finished = run();
    const stop = stopLater('the burst', () => {
      isOver = true;
      return finished;
    });
    return { stop };
  }
});

describe('three services that share a database', () => {
  const local = localSetupOfSuite();

  it('send again only what a killed one sent, also if connections end and blocks change', async function () {
    await using state = await newState('PostgreSQL');
    if (state === undefined) return this.skip();
    const webhook = { timeoutMs: TIMEOUT_MS, maxConcurrentDeliveries: 6 };
    writeFileSync(local.settings.SERVICE_CONFIG ?? '', JSON.stringify({ webhook }));
    const random = seededRandom(SEED);
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    const settings = { ...local.settings, ...state.settings, START_BLOCK: String(fromBlock) };
    const receiver = await startRecordingReceiver(local.publicKeyFile);
    await using database = await openState(state);
    await noteHolders(database);
    /** By the header that tells its deliveries from those of others. */
    const running = new Map<string, LaunchedService>();
    const killed = new Set<string | undefined>();
    async function start(): Promise<void> {
      const name = `${killed.size}-${running.size}`;
      const header = `Basic ${btoa(`${name}:password`)}`;
      const sink = {
        WALLET_PRIVATE_KEY: '',
        WEBHOOK_URL: receiver.url.replace('//', `//${name}:password@`),
        DATABASE_URL: `${settings.DATABASE_URL}?application_name=${encodeURIComponent(header)}`,
      };
      const service = launchServiceProcess({ ...settings, ...sink });
      running.set(header, service);
      await service.listening();
    }

    while (running.size < PROCESSES) await start();
    for (let kill = 1; kill <= KILLS_OF_PROCESSES; kill++) {
      const snapshot = (await local.client.send('evm_snapshot', [])) as string;
      const calls = await callsOf(kill);
      const asked = unanswered(receiver, 1 + random.below(20));
      await mine(calls, `0x${kill}`);
      const sender = await asked;
      expect(await running.get(sender)?.end('SIGKILL')).to.equal(null);
      running.delete(sender);
      killed.add(sender);
      receiver.answerWith(accept);
      if (kill === 2) await endConnections(database);
      expect(await local.client.send('evm_revert', [snapshot])).to.equal(true);
      await mine(calls, `0x1${kill}`);
      await start();
      // Until then, the rewind waits for what the killed one was sending.
      await endLeasesOf(database, sender);
    }
    const expected = await expectedEvents(local.client, local.registryAddress, fromBlock);
    const received = (): number => new Set(receiver.deliveries.map(({ event }) => event.id)).size;
    // The comparison that follows names missing events.
    await eventually('all', () => received() >= expected.length).catch(() => undefined);
    for (const service of running.values()) await service.end('SIGTERM');

    expectPromisesKept(receiver.deliveries, expected, { mostBack: CLAIMED_TOGETHER - 1 });
    const repeated = receiver.deliveries.filter(({ event, headers }, index) => {
      const isLast = !receiver.deliveries.some((one, later) => later > index && one.event.id === event.id);
      return !isLast && !killed.has(headers.authorization);
    });
    expect(repeated.map(({ event }) => event.id)).to.deep.equal([]);
    expect(receiver.deliveries.some(({ attempt }) => attempt > 1)).to.equal(true);
  });

  /** Mints tokens and transfers each. */
  async function callsOf(round: number): Promise<Call[]> {
    const [owner, other] = [await local.account(1), await local.account(2)];
    const ids = Array.from({ length: TOKENS }, (_, index) => BigInt(round * TOKENS + index));
    const tokens = await Promise.all(
      ids.map(async (tokenId) => ({ tokenId, escrow: await escrowOf(local, tokenId) })),
    );
    return [
      ...tokens.map(({ tokenId }) => mintCall(local, owner, { tokenId })),
      ...tokens.map((token) => transferCall(token, { from: owner, to: other })),
    ];
  }

  /** Mines each call in a block. Those of another branch have the same events and other hashes. */
  async function mine(calls: readonly Call[], branch: string): Promise<void> {
    let { timestamp } = (await local.client.getBlock('latest')) as Block;
    for (const call of calls) {
      await local.client.send('evm_setNextBlockTimestamp', [++timestamp]);
      await local.client.send('hardhat_setPrevRandao', [toBeHex(branch, 32)]);
      await sendTransaction(local.client, call);
    }
  }
});

/** Leaves the n-th delivery from now on without an answer. Resolves to the header that tells its sender. */
function unanswered(receiver: RecordingReceiver, nth: number): Promise<string> {
  let left = nth;
  return new Promise((resolve) => {
    receiver.answerWith((delivery, response) => {
      if (--left === 0) resolve(delivery.headers.authorization ?? '');
      else return accept(delivery, response);
    });
  });
}

/** Notes in each queue which process claimed it last: the one with this name of its connections. */
async function noteHolders({ db }: Database): Promise<void> {
  await sql`alter table queues add column holder text`.execute(db);
  await sql`create function note_holder() returns trigger language plpgsql as
    $$ begin new.holder := current_setting('application_name'); return new; end $$`.execute(db);
  await sql`create trigger noted before update on queues for each row
    when (new.lease is distinct from old.lease) execute function note_holder()`.execute(db);
}

/** Ends the leases of a process that was killed, as soon as it can take none any more. */
async function endLeasesOf({ db }: Database, process: string): Promise<void> {
  await eventually('its last statement ends', async () => {
    const { rows } = await sql`select from pg_stat_activity where application_name = ${process}`.execute(db);
    return rows.length === 0;
  });
  await sql`update queues set next_attempt_at = ${systemTime.now()}
    where holder = ${process} and lease is not null`.execute(db);
}

/** Ends all connections to a PostgreSQL database, as its restart does. */
async function endConnections({ db }: Database): Promise<void> {
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`.execute(db);
}

/**
 * Waits for a random moment: during the start or soon after it, while the service reads the chain, or while
 * it delivers.
 */
async function momentToKill(
  random: SeededRandom,
  service: LaunchedService,
  node: RpcProxy,
  receiver: RecordingReceiver,
): Promise<void> {
  const moment = random.fraction();
  if (moment < 0.2) return sleep(random.below(2 * START_MS));
  if (moment < 0.6) return reading(random, node);
  await service.listening();
  return delivering(random, receiver);
}

/**
 * Waits until the service has every answer about a range of blocks: before, while or after it stores the
 * events.
 */
async function reading(random: SeededRandom, node: RpcProxy): Promise<void> {
  const readings = (): number => node.calls.filter((method) => method === 'eth_getLogs').length;
  const awaited = readings() + CALLS_OF_A_READING * (1 + random.below(3));
  const isRead = (): boolean => readings() >= awaited && node.waiting() === 0;
  await eventually('the chain is read', isRead, { everyMs: 1 });
  await sleep(random.below(30));
}

/** Waits until a delivery arrives: before the service knows its outcome, or while it stores the outcome. */
async function delivering(random: SeededRandom, receiver: RecordingReceiver): Promise<void> {
  let awaited = 1 + random.below(40);
  const isAnswered = random.chance(0.5);
  await new Promise<void>((resolve) => {
    receiver.answerWith(async (delivery, response) => {
      awaited--;
      if (awaited > 0 || (awaited === 0 && isAnswered)) await accept(delivery, response);
      if (awaited === 0) resolve();
    });
  });
}
