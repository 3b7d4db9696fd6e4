import { join } from 'node:path';
import { expect } from 'chai';
import { operate } from '../../devnet/operations';
import { messageOf } from '../../service/base/errors';
import { systemTime, type Time } from '../../service/base/time';
import {
  EVENTS_OF_A_MINT,
  mintDirectly,
  transferHolder,
  type MintedToken,
} from '../helpers/chain/direct-mint';
import { expectedEvents } from '../helpers/chain/expected-events';
import { localSetupOfSuite } from '../helpers/chain/local-setup';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { ABSENCES, both, prunedBelow, XDC_ADDRESSES, type Absence } from '../helpers/chain/node-limits';
import { NODE_PROFILES, type NodeProfile } from '../helpers/chain/node-profiles';
import { startRpcProxy, THROUGH, type Answerer } from '../helpers/chain/rpc-proxy';
import { asking } from '../helpers/chain/unusual-logs';
import { eventually } from '../helpers/eventually';
import {
  whileFollowingThroughProxy,
  type FollowedRegistry,
  type Following,
} from '../helpers/processes/followed-registry';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { launchServiceProcess } from '../helpers/processes/service-process';
import { ADMIN_API_KEY, callApi } from '../helpers/processes/subscribed-service';
import { expectPromisesKept } from '../helpers/receiver/delivery-promises';
import { startRecordingReceiver } from '../helpers/receiver/recording-receiver';
import { seededRandom } from '../helpers/seeded-random';
import { VirtualTime } from '../helpers/virtual-time';

const STRETCH = 500;
/** The requests of a catch-up: a minute of a node that answers fifty a second, one after the other. */
const MOST_REQUESTS = 3_000;
/** Shorter than the pause after a failure. */
const LOOK_EVERY_MS = 250;
/** The longest time until everything is read. */
const SOON_MS = 60_000;
/** The same behind a node that allows 15 calls a second: as long as 9,000 calls take. */
const AT_A_RATE_MS = 600_000;
const COMBINATIONS = 12;
/** Blocks that were not read, and are pruned but for the last ten. A node that is behind lacks fewer. */
const UNREAD = 170;
const SEED = 55;
/** Events of a token that are claimed together. */
const CLAIMED_TOGETHER = 32;

const SILENT = 'as Erigon and reth did, with no logs';
const NAMES = Object.keys(NODE_PROFILES);
const mayTake = (...names: string[]): number =>
  names.some((name) => name.includes('calls a second')) ? AT_A_RATE_MS : SOON_MS;
const profile = (name: string): NodeProfile => NODE_PROFILES[name] ?? (() => THROUGH);

/** A service behind a node, in virtual time. */
interface Observed extends FollowedRegistry {
  time: VirtualTime;
  /** Waits until everything is delivered once and in order. Fails if that takes longer than it may. */
  all(this: void): Promise<void>;
}

describe('a catch-up of 1,500 blocks and what follows, behind a node that', () => {
  const local = localSetupOfSuite();
  let [fromBlock, firstMined] = [0, 0];
  let token: MintedToken;
  let [holder, other] = ['', ''];
  let snapshot: unknown;

  before(async () => {
    [holder, other] = [await local.account(1), await local.account(2)];
    fromBlock = (await local.client.getBlockNumber()) + 1;
    token = await mintDirectly(local, holder);
    const burned = await mintDirectly(local, holder);
    await mineBlocks(local, STRETCH);
    await operate(local, 'nominate', { tokenId: token.tokenId, to: 3 });
    await operate(local, 'returnToIssuer', { tokenId: burned.tokenId });
    await mineBlocks(local, STRETCH);
    await operate(local, 'burn', { tokenId: burned.tokenId });
    await transfer();
    firstMined = await local.client.getBlockNumber();
    await mintDirectly(local, other);
    await mineBlocks(local, STRETCH);
    snapshot = await local.client.send('evm_snapshot', []);
  });

  afterEach(async () => {
    expect(await local.client.send('evm_revert', [snapshot])).to.equal(true);
    snapshot = await local.client.send('evm_snapshot', []);
    [holder, other] = [await local.account(2), await local.account(1)];
  });

  /** A log of a title escrow alone. */
  async function transfer(): Promise<void> {
    await transferHolder(local, token, { from: holder, to: other });
    [holder, other] = [other, holder];
  }

  /** Follows the registry from its first token on, and looks at what GET /health says. */
  async function observe(
    answererOf: (time: VirtualTime) => Answerer,
    act: (observed: Observed, answer: (answerer: Answerer) => void) => Promise<void>,
    { withinMs = SOON_MS, ...following }: Following & { withinMs?: number },
  ): Promise<void> {
    const time = VirtualTime.ofRequests();
    const said = new Set<string>();
    const begun = time.elapsed();
    const options = { fromBlock, ...following, time, answerer: answererOf(time) };
    await whileFollowingThroughProxy(local, options, async (proxy, followed) => {
      // Reading begins before the service has started.
      let leftMs = withinMs - (time.elapsed() - begun);
      let sent = 0;
      const all = async (): Promise<void> => {
        let nextLook = 0;
        const isRead = async (): Promise<boolean> => {
          const requests = proxy.sizes.length - sent;
          if (requests > MOST_REQUESTS) throw new Error(`${requests} requests were sent`);
          if (time.elapsed() < nextLook) return false;
          nextLook = time.elapsed() + LOOK_EVERY_MS;
          const head = await local.client.getBlockNumber();
          const { feeds } = await healthOf(followed.service.url);
          for (const { code, reason } of feeds) if (code !== undefined) said.add(`${code}: ${reason}`);
          return feeds.length > 0 && feeds.every(({ nextBlock }) => nextBlock > head);
        };
        await time.until('everything is read', isRead, leftMs).catch((cause: unknown) => {
          throw new Error(`${messageOf(cause)}; /health said ${[...said].join(' | ')}`, { cause });
        });
        leftMs = withinMs;
        await followed.allDeliveredOnce();
        sent = proxy.sizes.length;
      };
      await act(Object.assign(Object.create(followed) as FollowedRegistry, { time, all }), (answerer) =>
        proxy.answer(answerer),
      );
    });
    expect([...said].filter((one) => /UNKNOWN_ERROR|see the log/.test(one))).to.deep.equal([]);
  }

  /** Goes through a catch-up, more traffic, a reorganisation, and a stop and a start. */
  async function live({ all, accepted, logged, restart }: Observed): Promise<void> {
    await all();
    await mintDirectly(local, holder);
    await transfer();
    await all();
    const fork = (await local.client.send('evm_snapshot', [])) as string;
    const kept = accepted.length;
    await operate(local, 'nominate', { tokenId: token.tokenId, to: 4 });
    await mintDirectly(local, holder);
    await all();
    expect(await local.client.send('evm_revert', [fork])).to.equal(true);
    // The orphaned events were accepted.
    accepted.splice(kept);
    for (let count = 0; count < 2; count++) await mintDirectly(local, other);
    await transfer();
    await all();
    expect(logged('chain reorganised')).to.have.length(1);
    await restart(async () => {
      await transfer();
      await mineBlocks(local, 30);
    });
    await all();
  }

  /** Names of two profiles each. */
  const pairs = Array.from({ length: COMBINATIONS }, (_, index): [string, string] => {
    const random = seededRandom(SEED + index);
    const one = random.pick(NAMES);
    return [one, random.pick(NAMES.filter((name) => name !== one))];
  });

  const partsOf = (seed: number, time: Time) => ({
    random: seededRandom(seed),
    time,
    ask: asking(local.node.url),
  });

  for (const [seed, name] of NAMES.entries())
    it(`${name}: bring every event once, in order`, () =>
      observe((time) => profile(name)(partsOf(seed, time)), live, { withinMs: mayTake(name) }));

  for (const [seed, [one, another]] of pairs.entries())
    it(`${one}, and ${another}: bring every event once, in order (seed ${seed})`, () =>
      observe(
        (time) => both(profile(one)(partsOf(seed, time)), profile(another)(partsOf(seed, time))),
        live,
        { withinMs: mayTake(one, another) },
      ));

  it('gives addresses as "xdc…" on XDC: bring every event once, in order', () => {
    const isOfXdc: Answerer = (method) => (method === 'eth_chainId' ? { result: '0x33' } : 'none');
    const settings = { NET: '51', CONFIRMATIONS: '0' };
    return observe(() => both(isOfXdc, XDC_ADDRESSES), live, { settings });
  });

  for (const [how, absence] of Object.entries(ABSENCES)) {
    it(`has pruned what was before START_BLOCK, and says so ${how}: bring every event once, in order`, () =>
      observe(() => pruned(fromBlock, absence), live, {}));

    it(`has pruned blocks that were not read, and says so ${how}: end in LOGS_PRUNED`, () =>
      observe(
        () => THROUGH,
        async (observed, answer) => {
          await observed.all();
          const { length } = observed.accepted;
          let oldest = 0;
          await observed.restart(async () => {
            await transfer();
            await mineBlocks(local, UNREAD);
            oldest = (await local.client.getBlockNumber()) - 10;
            answer(pruned(oldest, absence));
          });
          await expectPruned(observed, oldest, how);
          expect(observed.accepted).to.have.length(length + EVENTS_OF_A_MINT);
        },
        { settings: { ADMIN_API_KEY } },
      ));
  }

  for (const how of ['as reth does, which keeps the headers', SILENT])
    it(`has the headers of its oldest blocks alone, ${how}: end in LOGS_PRUNED at the first start`, () =>
      observe(
        () => pruned(firstMined, absenceOf(how)),
        (observed) => expectPruned(observed, firstMined, how),
        { settings: { ADMIN_API_KEY } },
      ));

  it(`gives logs only with an address, and ${SILENT} of the mints: bring every event once, in order`, () => {
    const needsAddress = profile('gives logs only with an address, as PublicNode does');
    return observe(
      (time) => both(needsAddress(partsOf(SEED, time)), pruned(firstMined, absenceOf(SILENT))),
      ({ all }) => all(),
      { fromBlock: firstMined },
    );
  });

  const absenceOf = (how: string): Absence => ABSENCES[how] as Absence;

  const pruned = (oldest: number, absence: Absence): Answerer =>
    prunedBelow(oldest, absence, asking(local.node.url));

  /** Expects the feed to stop, with the oldest block in its reason, and another one to be read. */
  async function expectPruned(
    { time, service, accepted }: Observed,
    oldest: number,
    how: string,
  ): Promise<void> {
    const feedOf = async (address: string) =>
      (await healthOf(service.url)).feeds.find((feed) => feed.registry === address.toLowerCase());
    let state = '';
    const stopped = await time
      .until(
        'the feed stops',
        async () => {
          const feed = await feedOf(local.registryAddress);
          state = JSON.stringify([feed?.state, feed?.code, feed?.reason]);
          return feed?.state === 'stopped' ? feed : undefined;
        },
        SOON_MS,
      )
      .catch((cause: unknown) => {
        throw new Error(`${messageOf(cause)}; /health says ${state}`, { cause });
      });
    expect(stopped.code).to.equal('LOGS_PRUNED');
    // Without an error, only blocks with logs show that the node lacks them.
    const said = /no logs before block (\d+), and block (\d+) is to be read/.exec(stopped.reason ?? '') ?? [];
    const [told = 0, unread = 0] = said.slice(1).map(Number);
    expect(told).to.be.within(how === SILENT ? unread + 1 : oldest, oldest);
    expect((await healthOf(service.url)).httpStatus).to.equal(503);
    const registry = (await local.makeRegistry()).toLowerCase();
    const startBlock = await local.client.getBlockNumber();
    const followed = { network: 'localhost', address: registry, startBlock };
    await time.settled(time.aside(callApi(service.url, 'POST', '/registries', followed)));
    await mintDirectly(local, holder, { registryAddress: registry });
    const ofOther = () => accepted.filter(({ data }) => data.registryAddress === registry).length;
    await time.until('the events of the other registry', () => ofOther() === EVENTS_OF_A_MINT, SOON_MS);
    expect((await feedOf(registry))?.state).to.equal('following');
  }

  for (const name of [
    'gives logs only with an address, as PublicNode does',
    'allows short ranges, and says so in its own words',
  ])
    it(`${name}, and kills with SIGKILL: bring every event, in order`, async () => {
      await using node = await startRpcProxy(local.node.url);
      node.answer(profile(name)(partsOf(SEED, systemTime)));
      await using receiver = await startRecordingReceiver(local.publicKeyFile);
      const settings = {
        ...local.settings,
        DATA_DIR: join(local.folder, `killed behind ${NAMES.indexOf(name)}`),
        WALLET_PRIVATE_KEY: '',
        START_BLOCK: String(fromBlock),
        RPC_URL: node.url,
        WEBHOOK_URL: receiver.url,
      };
      const { length } = await expectedEvents(local.client, local.registryAddress, fromBlock);
      const received = (): number => new Set(receiver.deliveries.map(({ event }) => event.id)).size;
      for (const enough of [1, length / 2, length]) {
        await using service = launchServiceProcess(settings);
        await eventually('events arrive', () => received() >= enough);
        await service.end('SIGKILL');
      }
      const expected = await expectedEvents(local.client, local.registryAddress, fromBlock);
      expectPromisesKept(receiver.deliveries, expected, { mostBack: CLAIMED_TOGETHER - 1 });
    });
});
