import { join } from 'node:path';
import { expect } from 'chai';
import { TitleEscrowFactory__factory } from '../../typechain-types';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/chain/direct-mint';
import { startRpcProxy, THROUGH, type Answerer, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { openState, type Engine } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { accept } from '../helpers/receiver/recording-receiver';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { startService } from '../helpers/processes/running-service';
import type { ApiAnswer } from '../helpers/processes/create-call';
import {
  callApi,
  startSubscribedService,
  type SubscribedService,
} from '../helpers/processes/subscribed-service';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { VirtualTime } from '../helpers/virtual-time';

/** Selector of `supportsInterface` (EIP-165). */
const SUPPORTS_INTERFACE = '0x01ffc9a7';

/** Selector of `getEscrowAddress`, which factories of version 4 lack. */
const GET_ESCROW_ADDRESS =
  TitleEscrowFactory__factory.createInterface().getFunction('getEscrowAddress').selector;

/** A part of the message, by the code of the refusal. */
const NAMED: Record<string, string> = { NETWORK_NOT_CONFIGURED: 'PROVIDER_API_KEY', BODY_TOO_LARGE: '64 KB' };

/** An entry of GET /registries. */
interface Listed {
  address: string;
  undelivered: number;
  feed: { state?: string };
}

/** Starts a service, and makes a registry that its API can add. */
async function startPlace(engine: Engine, time?: VirtualTime) {
  const subscribed = await startSubscribedService(engine, {}, time);
  if (subscribed === undefined) return undefined;
  const { local, ofSettings } = subscribed;
  const added = (await local.makeRegistry()).toLowerCase();
  const path = `/registries/31337/${added}`;
  const arrived = (): Set<string> =>
    new Set(
      ofSettings.deliveries.flatMap(({ event, verified }) =>
        verified && event.data.registryAddress === added ? [event.id] : [],
      ),
    );
  return {
    subscribed,
    added,
    path,
    add(this: void, body?: object, { url } = subscribed.service): Promise<ApiAnswer> {
      const answer = callApi<Record<string, never>>(url, 'POST', '/registries', {
        network: 31337,
        address: added,
        ...body,
      });
      // A node that fails is asked again after a pause.
      return time === undefined ? answer : time.settled(time.aside(answer));
    },
    remove: (at = path) => subscribed.call<{ undelivered?: number }>('DELETE', at),
    async entry(this: void, { url } = subscribed.service) {
      const { body } = await callApi<{ registries: Listed[] }>(url, 'GET', '/registries');
      return body.registries.find(({ address }) => address === added);
    },
    mint: async () => mintDirectly(local, await local.account(1), { registryAddress: added }),
    /** Waits until so many events of the added registry have arrived. */
    delivered: (count: number) => {
      const what = `${count} events of the added registry`;
      const isSo = (): boolean => arrived().size === count;
      return time === undefined ? eventually(what, isSo) : time.until(what, isSo);
    },
  };
}

type Place = NonNullable<Awaited<ReturnType<typeof startPlace>>>;

const outcomeOf = ({ status, code }: ApiAnswer<unknown>): unknown[] => [status, code];

describe('registries that are added and removed while the service runs', () => {
  let time: VirtualTime;
  let place: Place;
  let subscribed: SubscribedService;
  let proxy: RpcProxy;
  let added: string;

  before(async () => {
    time = VirtualTime.ofRequests();
    place = (await startPlace('SQLite', time)) as Place;
    ({ subscribed, added } = place);
    proxy = await startRpcProxy(subscribed.local.node.url);
    subscribed.settings.RPC_URL = proxy.url;
    await subscribed.restart();
  });

  it('are listed, at first those of the settings, to requests with the key', async () => {
    const { service, local, call } = subscribed;
    for (const [method, path] of [
      ['GET', '/registries'],
      ['POST', '/registries'],
      ['DELETE', place.path],
    ] as const)
      expect((await fetch(`${service.url}${path}`, { method })).status).to.equal(401);
    const listed = async () => (await call<{ registries: Listed[] }>('GET', '/registries')).body.registries;
    await time.until('it is read', async () => (await listed())[0]?.feed.state === 'following');
    const [one, ...others] = await listed();
    expect(others).to.deep.equal([]);
    expect(one).to.deep.include({
      network: 'localhost',
      chainId: 31337,
      address: local.registryAddress.toLowerCase(),
      origin: 'settings',
      confirmations: 0,
      undelivered: 0,
    });
  });

  const called =
    (answer: ReturnType<Answerer>, method = 'eth_call', beginning = ''): Answerer =>
    (asked, [call]) =>
      asked === method && (beginning === '' || (call as { data: string }).data.startsWith(beginning))
        ? answer
        : 'none';
  const failing = (message: string): Answerer => called({ error: { code: -32000, message } });
  const refused: [what: string, node: Answerer, outcome: [number, string], body?: () => Promise<object>][] = [
    [
      'an account',
      THROUGH,
      [400, 'REGISTRY_MISSING'],
      async () => ({ address: subscribed.local.accounts[1] }),
    ],
    [
      'a title escrow',
      THROUGH,
      [400, 'REGISTRY_INVALID'],
      async () => {
        const { escrow } = await mintDirectly(subscribed.local, await subscribed.local.account(1));
        return { address: escrow };
      },
    ],
    ['a contract that answers nothing', called({ result: '0x' }), [400, 'REGISTRY_INVALID']],
    ['a contract that answers zero', called({ result: `0x${'0'.repeat(64)}` }), [400, 'REGISTRY_INVALID']],
    ['a contract that reverts', failing('execution reverted'), [400, 'REGISTRY_INVALID']],
    ['an invalid opcode', failing('invalid opcode: opcode 0xfe not defined'), [400, 'REGISTRY_INVALID']],
    ['an execution error', failing('VM execution error.'), [400, 'REGISTRY_INVALID']],
    ['an unknown opcode', failing('EVM error OpcodeNotFound'), [400, 'REGISTRY_INVALID']],
    [
      'a contract without interfaces',
      called({ result: `0x${'0'.repeat(64)}` }, 'eth_call', SUPPORTS_INTERFACE),
      [400, 'REGISTRY_INVALID'],
    ],
    [
      'a registry of version 4',
      called({ error: { code: 3, message: 'execution reverted' } }, 'eth_call', GET_ESCROW_ADDRESS),
      [400, 'ESCROWS_UNSUPPORTED'],
    ],
    ['a node of another chain', called({ result: '0x1' }, 'eth_chainId'), [400, 'CHAIN_ID_MISMATCH']],
    [
      'a block tag that the node does not know',
      (_method, [block]) =>
        block === 'safe' ? { error: { code: -32602, message: 'invalid argument 0' } } : 'none',
      [400, 'FINALITY_UNSUPPORTED'],
      async () => ({ confirmations: 'safe' }),
    ],
    ['a node that is away', () => 'drop request', [503, 'RPC_UNREACHABLE']],
    ['a node that answers nonsense', called({ status: 502, body: 'bad gateway' }), [503, 'RPC_UNREACHABLE']],
    ['a node that lacks the block', failing('header not found'), [503, 'RPC_UNREACHABLE']],
    [
      'a network whose key is not set',
      THROUGH,
      [400, 'NETWORK_NOT_CONFIGURED'],
      async () => ({ network: 'polygon' }),
    ],
    ['a URL of a node', THROUGH, [400, 'REGISTRY_INVALID'], async () => ({ rpcUrl: 'http://localhost' })],
    ['more than 64 KB', THROUGH, [413, 'BODY_TOO_LARGE'], async () => ({ address: 'x'.repeat(70_000) })],
  ];
  for (const [what, node, outcome, body] of refused)
    it(`are not added with ${what}: ${outcome.join(' ')}`, async () => {
      const given = await body?.();
      proxy.answer(node);
      const answer = await place.add(given).finally(() => proxy.answer(THROUGH));
      expect(outcomeOf(answer)).to.deep.equal(outcome);
      if (outcome[0] === 503) expect(answer.headers.get('Retry-After')).to.equal('10');
      expect(answer.message).to.contain(NAMED[outcome[1]] ?? '');
      expect(await place.entry()).to.equal(undefined);
    });

  it('are not added from a block that the chain does not have yet; the newest is named', async () => {
    const head = await subscribed.local.client.getBlockNumber();
    const answer = await place.add({ startBlock: head + 1 });
    expect(outcomeOf(answer)).to.deep.equal([400, 'REGISTRY_INVALID']);
    const newest = `/startBlock is ${head + 1}, but the newest block of localhost is ${head}. Give a block`;
    expect(answer.message.startsWith(newest), answer.message).to.equal(true);
  });

  it('have their events delivered from their genesis on, also after a restart', async () => {
    await place.mint();
    const address = added.toUpperCase().replace('0X', '0x');
    const answer = await place.add({ network: 'localhost', address });
    expect(answer.status).to.equal(201);
    expect(answer.headers.get('Location')).to.equal(place.path);
    expect(answer.body).to.include({ address: added, origin: 'api', confirmations: 0 });
    await place.mint();
    await place.delivered(2 * EVENTS_OF_A_MINT);
    const { feeds } = await healthOf(subscribed.service.url);
    expect(feeds.map(({ registry }) => registry)).to.include(added);
    await subscribed.restart({}, place.mint);
    await place.delivered(3 * EVENTS_OF_A_MINT);
  });

  it('are added once: 200 to the same again, and 409 if it is to be followed otherwise', async () => {
    expect((await place.add()).status).to.equal(200);
    expect((await place.add({ confirmations: 0 })).status).to.equal(200);
    const answer = await place.add({ confirmations: 3 });
    expect(outcomeOf(answer)).to.deep.equal([409, 'REGISTRY_FOLLOWED']);
    expect(answer.message).to.contain('confirmations');
  });

  it('are not removed if they are of the settings, or not followed', async () => {
    const own = await place.remove(`/registries/31337/${subscribed.local.registryAddress}`);
    expect(outcomeOf(own)).to.deep.equal([409, 'REGISTRY_IN_SETTINGS']);
    for (const path of [`/registries/1/${added}`, '/registries/31337/0x12', '/registries/x/y'])
      expect(outcomeOf(await place.remove(path))).to.deep.equal([404, 'REGISTRY_UNKNOWN']);
  });

  it('are removed with waiting events only by force, and go on where they stopped', async () => {
    const { ofSettings } = subscribed;
    const waiting = async (): Promise<number | undefined> => (await place.entry())?.undelivered;
    // The events that were delivered last may not be settled yet, and would count as those that wait.
    await time.until('all is settled', async () => (await waiting()) === 0);
    ofSettings.answerWith((_, response) => void response.writeHead(503).end());
    await place.mint();
    await time.until('its events wait', async () => (await waiting()) === EVENTS_OF_A_MINT);
    const refused = await place.remove();
    expect(outcomeOf(refused)).to.deep.equal([409, 'REGISTRY_HAS_UNDELIVERED']);
    expect(refused.message).to.contain(`${EVENTS_OF_A_MINT} undelivered events`);
    const { status, body, headers } = await place.remove(`${place.path}?force=true`);
    expect([status, body.undelivered]).to.deep.equal([200, EVENTS_OF_A_MINT]);
    expect(headers.get('Cache-Control')).to.equal('private, no-store');
    expect(await place.entry()).to.equal(undefined);
    expect((await place.remove()).code).to.equal('REGISTRY_UNKNOWN');
    const { url } = subscribed.service;
    const health = await healthOf(url);
    expect(health.feeds).to.have.length(1);
    expect(health.conditions?.map(({ what }) => what)).not.to.include('feed_unfollowed');
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).not.to.match(new RegExp(`^etr_(feed|deliveries|unfollowed).*${added}`, 'm'));

    ofSettings.answerWith(accept);
    await place.mint();
    expect((await place.add()).status).to.equal(201);
    await place.delivered(5 * EVENTS_OF_A_MINT);
    await time.until('nothing waits', async () => (await waiting()) === 0);
  });

  it('are listed, removed and added by commands, which the service follows within seconds', async () => {
    const { local, service, settings } = subscribed;
    const tdoc = (...args: string[]) => askTdocInProcess(['registries', ...args], settings);
    const { stdout } = await tdoc('list');
    expect(stdout.trim().split('\n')).to.have.length(2);
    const line = `^localhost  ${added}  added, 0 confirmations, next block \\d+, 0 und`;
    expect(stdout).to.match(new RegExp(line, 'm'));
    const named = ['--registry', added, '--json'];
    const removed = await tdoc('remove', ...named);
    const outcome = { outcome: 'removed', chainId: 31337, address: added, undelivered: 0 };
    expect([removed.code, JSON.parse(removed.stdout)]).to.deep.equal([0, outcome]);
    await time.until('it is gone', async () => (await healthOf(service.url)).feeds.length === 1);
    const again = await tdoc('remove', ...named);
    expect(again.code).to.equal(1);
    expect(JSON.parse(again.stdout)).to.include({ outcome: 'refused', code: 'REGISTRY_UNKNOWN' });
    const account = await tdoc('add', '--registry', await local.account(1));
    expect(account.code).to.equal(1);
    expect(account.stderr).to.contain('REGISTRY_MISSING');
    const back = await tdoc('add', ...named, '--confirmations', 'finalized');
    expect(back.code).to.equal(0);
    const confirmations = 'finalized';
    const whole = { outcome: 'added', address: added, origin: 'api', confirmations };
    expect(JSON.parse(back.stdout)).to.include(whole);
    expect((await tdoc('list')).stdout).to.contain(`${added}  added, once finalized, `);
    expect(await place.entry()).to.include({ confirmations });
    await time.until('it is followed', async () => (await place.entry())?.feed.state === 'following');
    await place.mint();
    await place.delivered(6 * EVENTS_OF_A_MINT);
  });

  it('are unknown to a service without ADMIN_API_KEY: 404', async () => {
    const DATA_DIR = join(subscribed.local.folder, 'no-admin');
    await using closed = await startService(
      { ...subscribed.settings, ADMIN_API_KEY: '', DATA_DIR },
      { time },
    );
    for (const path of ['/registries', place.path])
      expect((await callApi(closed.url, 'GET', path)).status).to.equal(404);
  });
});

describe('registries that two services on one PostgreSQL follow', () => {
  let place: Place | undefined;

  before(async function () {
    place = await startPlace('PostgreSQL');
    if (place === undefined) this.skip();
  });

  it('are added and removed by either within seconds, whichever reads the chain', async () => {
    const { subscribed, add, remove, entry, mint, delivered } = place as Place;
    const { service } = subscribed;
    await using other = await startService(subscribed.settings);
    expect((await add({}, other)).status).to.equal(201);
    const states = async () => [(await entry())?.feed.state, (await entry(other))?.feed.state].sort();
    await eventually('one reads it', async () => (await states()).join() === 'following,standby');
    await mint();
    await delivered(EVENTS_OF_A_MINT);
    // A delivery is recorded a moment after it arrived; until then the removal is refused.
    await eventually('it is removed', async () => (await remove()).status === 200);
    await eventually('it is gone there', async () => (await entry(other)) === undefined);
    for (const { url } of [service, other])
      await eventually('nobody reads it', async () => (await healthOf(url)).feeds.length === 1);
  });

  it('are read by the process that has the right, which the names of their feeds do not decide', async () => {
    const { subscribed, added, add, entry } = place as Place;
    const { DATA_DIR = '', DATABASE_URL = '' } = subscribed.settings;
    await using database = await openState({ settings: { DATA_DIR, DATABASE_URL } });
    const right = await database.takeRight(`31337:${added}`);
    expect((await add()).status).to.equal(201);
    const state = async () => (await entry())?.feed.state;
    await eventually('it stands by', async () => (await state()) === 'standby');
    await right?.release();
    await eventually('it is read', async () => (await state()) === 'following');
  });
});
