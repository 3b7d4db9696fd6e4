import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
// eslint-disable-next-line no-restricted-syntax -- real time: kills come at random moments.
import { setTimeout as sleep } from 'node:timers/promises';
import { systemTime } from '../../../service/base/time';
import { historyOf, isOfChain, isPausedAfter, standing, tokenStateOf } from '../../../client/events';
import type { ChainEvent, Retraction, ServiceEvent } from '../../../client/events';
import { connectNode } from '../../../service/chain/chain';
import type { Database } from '../../../service/database/database';
import { DEFAULT_SUBSCRIPTION, joinedChannels } from '../../../service/outbox/channels';
import { idOfBytes } from '../../../service/outbox/stored-events';
import { readTokenState } from '../../../service/registry/read-token-state';
import { createRegistryFinder } from '../../../service/registry/registry-contracts';
import { expectedEvents, type ExpectedEvent } from '../chain/expected-events';
import { both } from '../chain/node-limits';
import { drawNode } from '../chain/node-profiles';
import { answerAs, drawProgram } from '../chain/other-nodes';
import { giveChainBack, takeChain } from '../chain/prepared-chain';
import { startRpcProxy, type Answerer } from '../chain/rpc-proxy';
import { asking, unusualLogs } from '../chain/unusual-logs';
import { newState, type Engine, type State } from '../database/engines';
import { eventually } from '../eventually';
import { schemaProblem } from '../receiver/schema-problems';
import { stopLater } from '../resources';
import { History, type Place } from '../scenario';
import { seededRandom } from '../seeded-random';
import { temporaryFolder } from '../temporary-folder';
import { BranchingChain } from './branching-chain';
import { MortalService } from './mortal-service';
import { UnreliableReceiver } from './unreliable-receiver';

// A model test of retractions. The seed chooses the operations on some tokens, the reorganisations of their
// chain, the kills of service and receivers, the faults of the receivers' answers, how the node counts logs,
// and whether it gives those of removed blocks. Then the faults end.
// The states that follow from what a receiver stored must be those of the contracts, and the events that hold
// must be those of the chain. Threads and sockets are real: a seed repeats the choices, not the timing.

const FINALITY_DEPTH = 8;
const SUBSCRIBERS = ['0192f3c8-5a00-7000-8000-000000000001', '0192f3c8-5a00-7000-8000-000000000002'] as const;
const FEWEST_STEPS = 10;
const MOST_STEPS = 30;
const LONGEST_PAUSE_MS = 60;
/** Long enough for a busy machine: it ends runs that hang, and measures nothing. */
const SETTLED_WITHIN_MS = 180_000;
/** Token 0 has the subject of the registry's events. */
const TOKENS = [0n, 7n, 2n ** 255n + 5n];

/**
 * Takes a node with a registry. Undefined if the engine is not installed.
 *
 * @param hasProfiles whether the node answers like a random public one.
 */
export async function createRetractionPlace(engine: Engine, hasProfiles = false): Promise<Place | undefined> {
  await using installed = await newState(engine);
  if (installed === undefined) return undefined;
  const chain = await takeChain();
  stopLater('the chain of the model', () => giveChainBack(chain));
  const { client } = chain;
  await client.send('evm_setAutomine', [false]);
  let snapshot = (await client.send('evm_snapshot', [])) as string;
  return {
    async run(seed) {
      const history = new History(seed);
      await using state = (await newState(engine)) as State;
      await history.of(runOnce(history, { ...chain, rpcUrl: chain.node.url }, state, hasProfiles));
      if ((await client.send('evm_revert', [snapshot])) !== true) throw new Error('could not go back');
      snapshot = (await client.send('evm_snapshot', [])) as string;
      return history;
    },
  };
}

type Chain = Pick<Awaited<ReturnType<typeof takeChain>>, 'client' | 'registryAddress'> & { rpcUrl: string };

async function runOnce(
  run: History,
  { client, registryAddress, rpcUrl }: Chain,
  state: State,
  hasProfiles: boolean,
): Promise<void> {
  const { seed } = run;
  // Each part has its own random numbers: what one draws does not depend on the timing of another.
  let drawn = 0;
  const nextRandom = () => seededRandom(seed * 16 + drawn++);
  const random = nextRandom();
  await using folder = temporaryFolder();
  const note = (what: string, times = 1): void => {
    run.count(what, times);
    run.note(times === 1 ? what : `${what}: ${times}`);
  };
  const startBlock = (await client.getBlockNumber()) + 1;
  await using node = await startRpcProxy(rpcUrl);
  const programs = nextRandom();
  const answerOf = unusualLogs(rpcUrl, nextRandom());
  const ofProfiles = seededRandom(seed * 16 + 15);
  /** Another program, or another node of the same chain. */
  const changeNode = (): void => {
    const program = drawProgram(programs);
    run.note(`node: ${JSON.stringify(program)}`);
    run.count(`nodes whose logs of hashes are silent: ${program.silentHashes}`);
    const answerer: Answerer = (method, params, forward) =>
      answerAs(program, { method, params }, () => answerOf(method, params, forward));
    const parts = { random: ofProfiles, time: systemTime, ask: asking(rpcUrl) };
    const profile = hasProfiles ? drawNode(parts) : undefined;
    if (profile) run.note(`profile: ${profile.name}`);
    node.answer(profile ? both(profile.answerer, answerer) : answerer);
  };
  changeNode();
  const { privateKey } = generateKeyPairSync('ed25519');
  const lives = await BranchingChain.begin({
    client,
    registry: registryAddress,
    random: nextRandom(),
    depth: FINALITY_DEPTH,
    tokenIds: TOKENS,
  });
  const receivers = new Map<string, UnreliableReceiver>();
  for (const name of [...SUBSCRIBERS, DEFAULT_SUBSCRIPTION]) {
    const file = join(folder.path, `${name}.jsonl`);
    receivers.set(name, await UnreliableReceiver.start(file, privateKey, nextRandom(), run));
  }
  const service = new MortalService({
    state,
    rpcUrl: node.url,
    registryAddress,
    startBlock,
    finalityDepth: FINALITY_DEPTH,
    privateKey,
    receivers,
  });
  try {
    await service.start();
    const steps = FEWEST_STEPS + random.below(MOST_STEPS - FEWEST_STEPS);
    for (let step = 0; step < steps; step++) {
      const kind = random.fraction();
      if (kind < 0.55) {
        await lives.mine();
        note('blocks');
      } else if (kind < 0.85) {
        const removed = await lives.reorganise();
        if (removed > 0) note(`reorganisations of ${removed} blocks`);
      } else if (kind < 0.93) {
        await service.kill(random);
        note('kills of a process of the service');
        // A process learns once whether its node knows the logs of a hash, so only new ones get another node.
        if (!service.isRunning || random.chance(0.4)) {
          while (service.isRunning) await service.kill(random);
          changeNode();
        }
        if (random.chance(0.5)) await lives.reorganise();
        await service.start();
      } else if (kind < 0.96) {
        await service.loseConnections();
        note('restarts of the database');
      } else {
        await receivers.get(random.pick(SUBSCRIBERS))?.kill();
        note('kills of a receiver');
      }
      if (random.chance(0.6)) await sleep(random.below(LONGEST_PAUSE_MS));
    }
    for (const receiver of receivers.values()) receiver.isFailing = false;
    await lives.mineBeyond();
    await untilSettled(service, client);
    (await unrecorded(service.database, receivers)).forEach((one) => run.violation(one));
    await service.stop();

    const expected = await expectedEvents(client, registryAddress, startBlock);
    const usual = receivers.get(DEFAULT_SUBSCRIPTION)?.stored() ?? [];
    deliveredOtherwiseThanOnce(usual, expected).forEach((one) => run.violation(one));
    for (const name of SUBSCRIBERS) {
      const stored = receivers.get(name)?.stored() ?? [];
      note('events', stored.length);
      note('retractions', stored.filter(isRetraction).length);
      const chain = { client, registryAddress, rpcUrl };
      (await differences(name, stored, expected, chain)).forEach((one) => run.violation(one));
    }
  } finally {
    await service.stop();
    for (const receiver of receivers.values()) await receiver.stop();
  }
}

/** Waits until the chain is read to its end, on the present branch, and nothing waits. */
async function untilSettled(service: MortalService, client: Chain['client']): Promise<void> {
  let left = 'everything';
  const isSettled = async (): Promise<boolean> => {
    left = await leftToDo(service, client);
    return left === '';
  };
  await eventually('all is delivered', isSettled, { everyMs: 10, withinMs: SETTLED_WITHIN_MS }).catch(
    (cause: unknown) => {
      throw new Error(`not delivered: ${left}`, { cause });
    },
  );
}

/** The reason why the run is not settled yet; empty once it is. */
async function leftToDo(service: MortalService, client: Chain['client']): Promise<string> {
  if (service.stoppedBecause !== undefined) return service.stoppedBecause;
  const { db } = service.database;
  const head = await client.getBlock('latest');
  const feed = await db.selectFrom('feeds').selectAll().executeTakeFirst();
  const read = await db.selectFrom('blocks').selectAll().orderBy('number', 'desc').executeTakeFirst();
  if (read?.hash !== head?.hash || feed?.next_block !== (head?.number ?? 0) + 1)
    return `the chain is at block ${head?.number} ${head?.hash}, the feed at ${JSON.stringify([feed, read])}`;
  const waiting = await db
    .selectFrom('queues')
    .selectAll()
    .where('next_attempt_at', 'is not', null)
    .execute();
  return waiting.length === 0 ? '' : `at ${systemTime.now()} these wait: ${JSON.stringify(waiting)}`;
}

/**
 * The events that were sent again although a success was recorded, or more often than the processes that were
 * not killed recorded. All others that were sent again had failed, or a killed process had them under way.
 */
async function unrecorded(
  { db }: Database,
  receivers: ReadonlyMap<string, UnreliableReceiver>,
): Promise<string[]> {
  const attempts = await joinedChannels(db)
    .innerJoin('attempts', 'attempts.channel', 'channels.id')
    .innerJoin('events', 'events.id', 'attempts.event')
    .select(['subscriptions.name', 'events.event_id', 'attempts.attempted_at as at', 'attempts.error'])
    .orderBy('attempts.attempted_at')
    .execute();
  const found: string[] = [];
  for (const [name, receiver] of receivers) {
    const own = attempts.filter((attempt) => attempt.name === name);
    for (const id of new Set(receiver.stored().map((event) => event.id))) {
      const ofEvent = own.filter(({ event_id }) => idOfBytes(event_id) === id);
      const delivered = ofEvent.find(({ error }) => error === null)?.at ?? Infinity;
      const again = ofEvent.filter(({ at }) => at > delivered).length;
      if (again > 0) found.push(`${name}: ${id} was sent ${again} times after its delivery was recorded`);
      const sent = receiver.arrivalsOf(id);
      if (sent > ofEvent.length) found.push(`${name}: ${id} was sent ${sent} times, not ${ofEvent.length}`);
    }
  }
  return found;
}

/** The differences between the chain and what a receiver stored. */
async function differences(
  name: string,
  stored: readonly ServiceEvent[],
  expected: readonly ExpectedEvent[],
  { registryAddress, rpcUrl }: Chain,
): Promise<string[]> {
  const found: string[] = [];
  const expectSame = (what: string, actual: unknown, wanted: unknown): void => {
    const [is, should] = [JSON.stringify(actual), JSON.stringify(wanted)];
    if (is !== should) found.push(`${name}: ${what} is\n${is}, and on the chain\n${should}`);
  };
  for (const event of stored) {
    const problem = schemaProblem(event);
    if (problem !== undefined) found.push(`${name}: ${event.id} ${problem}`);
  }
  const retracted = stored.filter(isRetraction).map(({ data }) => data.retracts);
  expectSame('the number of events that are retracted twice', retracted.length - new Set(retracted).size, 0);

  const histories = new Map<string, (ChainEvent | Retraction)[]>();
  for (const event of stored) {
    if (!isOfChain(event)) continue;
    const history = historyOf(event) ?? '';
    histories.set(history, [...(histories.get(history) ?? []), event]);
  }
  const source = `urn:service:31337:${registryAddress.toLowerCase()}`;
  const client = connectNode(rpcUrl, {}, systemTime);
  try {
    const { contracts } = await createRegistryFinder(client, registryAddress)();
    for (const tokenId of TOKENS) {
      const history = histories.get(`${source}:${tokenId}`) ?? [];
      const onChain = await readTokenState(client, contracts, tokenId);
      expectSame(`the state of token ${tokenId}`, tokenStateOf(history), shown(onChain));
      const due = expected.filter(
        ({ data }) => data.tokenIdHex !== undefined && data.tokenId === String(tokenId),
      );
      expectSame(`what holds of token ${tokenId}`, standing(history).map(withoutId), due.map(withoutId));
      expectSame('the pause', isPausedAfter(histories.get(source) ?? []), onChain.isPaused);
    }
  } finally {
    client.close();
  }
  return found;
}

/** A log that is mined again is the same event for a subscriber without retractions, wherever it is then. */
function deliveredOtherwiseThanOnce(
  stored: readonly ServiceEvent[],
  expected: readonly ExpectedEvent[],
): string[] {
  const keyOf = ({ type, data }: ServiceEvent | ExpectedEvent): string =>
    JSON.stringify(
      'payload' in data ? [type, data.transactionHash, Object.entries(data.payload).sort()] : type,
    );
  const keys = stored.map(keyOf);
  return [
    ...expected.flatMap((event) => (keys.includes(keyOf(event)) ? [] : [`never delivered: ${keyOf(event)}`])),
    ...keys.flatMap((key, index) => (keys.indexOf(key) < index ? [`delivered again: ${key}`] : [])),
  ];
}

function isRetraction(event: ServiceEvent): event is Retraction {
  return event.type === 'com.service.etr.retracted';
}

/** The state of the contracts as the receiver writes it. */
function shown(onChain: Awaited<ReturnType<typeof readTokenState>>): ReturnType<typeof tokenStateOf> {
  if (onChain.state === 'not minted')
    return { state: 'not minted', escrow: null, beneficiary: null, holder: null, nominee: null };
  const { state, titleEscrow, beneficiary, holder, nominee } = onChain;
  const person = (address: string | undefined): string | null => address?.toLowerCase() ?? null;
  return {
    state,
    escrow: titleEscrow.toLowerCase(),
    beneficiary: person(beneficiary),
    holder: person(holder),
    nominee: person(nominee),
  };
}

/** The parts that a subscriber relies on, in one order. */
function withoutId({ type, time, data }: ExpectedEvent | ChainEvent): unknown[] {
  const { blockNumber, transactionHash, logIndex, payload } = data;
  return [type, time, blockNumber, transactionHash, logIndex, Object.entries(payload).sort()];
}
