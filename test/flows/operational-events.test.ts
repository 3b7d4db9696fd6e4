import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { toQuantity } from 'ethers';
import { OPERATIONAL_TYPES } from '../../client/events';
import type { Overview } from '../../service/console/views';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { createLocalSetup, DEPLOYER, type LocalSetup } from '../helpers/chain/local-setup';
import { mineBlocks, withoutMining } from '../helpers/chain/mine-blocks';
import { startRpcProxy, THROUGH, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { API, openConsolePage, type ConsolePage } from '../helpers/processes/console-page';
import { API_KEY, AUTHORIZATION, fetchDocument } from '../helpers/processes/documents-call';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { ADMIN_API_KEY, callApi, type ShownSubscription } from '../helpers/processes/subscribed-service';
import {
  accept,
  startRecordingReceiver,
  type Answer,
  type RecordingReceiver,
} from '../helpers/receiver/recording-receiver';
import { VirtualTime } from '../helpers/virtual-time';

const PREFIX = 'com.service.etr.operations.';
const MINUTE = 60_000;
const answering =
  (status: number): Answer =>
  (_delivery, response) =>
    void response.writeHead(status).end();

describe('operational events', () => {
  let time: VirtualTime;
  let local: LocalSetup;
  let nodes: RpcProxy[];
  let signer: RpcProxy;
  let operator: RecordingReceiver;
  let subscriber: RecordingReceiver;
  let settings: Record<string, string>;
  let service: RunningService;
  let page: ConsolePage;
  let owner: string;
  let registry: string;
  /** The subscription to events of the chain. */
  let subscription: string;
  let expected: string[] = [];

  before(async () => {
    // Hardhat signs no transactions.
    local = await createLocalSetup({ program: 'anvil' });
    nodes = await Promise.all([0, 1, 2].map(() => startRpcProxy(local.node.url)));
    signer = await startRpcProxy(local.node.url);
    operator = await startRecordingReceiver(local.publicKeyFile);
    subscriber = await startRecordingReceiver(local.publicKeyFile);
    owner = await local.account(1);
    registry = local.registryAddress.toLowerCase();
    settings = {
      ...local.settings,
      ADMIN_API_KEY,
      API_KEY,
      RPC_URL: nodes.map(({ url }) => url).join(' '),
      WALLET_PRIVATE_KEY: '',
      WALLET_SIGNER_URL: signer.url,
      WALLET_ADDRESS: DEPLOYER,
      SUBSCRIPTION_FAILING_AFTER_MINUTES: '5',
      FINALITY_DEPTH: '3',
    };
    time = VirtualTime.ofRequests();
    await start();
    await subscribe(operator, { types: OPERATIONAL_TYPES });
    // A second attempt is the last one. It comes after 15 minutes, as up to half is taken off at random.
    const retry = { initialDelayMs: 30 * MINUTE, maxDelayMs: 30 * MINUTE, giveUpAfterMs: 16 * MINUTE };
    subscription = await subscribe(subscriber, {
      types: ['com.service.etr.minted'],
      config: { retry },
    });
  });

  async function start(): Promise<void> {
    service = await startService(settings, { time });
    page = openConsolePage(service.url);
    await page.logIn(ADMIN_API_KEY);
  }
  /** Lets time pass between two runs of the service: its polls of ten minutes would take half a minute. */
  async function after(ms: number): Promise<void> {
    await service.stop();
    await time.pass(ms);
    await start();
  }
  async function subscribe(sink: RecordingReceiver, members: object): Promise<string> {
    const request = { sink: sink.url, protocol: 'HTTP', ...members };
    const { body } = await callApi<ShownSubscription>(service.url, 'POST', '/subscriptions', request);
    return body.id;
  }
  const shown = async (): Promise<ShownSubscription> =>
    (await callApi<ShownSubscription>(service.url, 'GET', `/subscriptions/${subscription}`)).body;
  /** Has a document made, and does not wait for its mint. */
  async function createLater(): Promise<string> {
    const path = '/create/BILL_OF_LADING';
    const headers = { ...AUTHORIZATION, Prefer: 'respond-async' };
    const body = { ...minimal, owner, holder: owner };
    return (await callApi<{ tokenId: string }>(service.url, 'POST', path, body, headers)).body.tokenId;
  }
  const told = (): string[] =>
    operator.deliveries.map(({ event }) => `${event.type.slice(PREFIX.length)} ${event.subject}`);
  /** Waits until these events have come, besides the earlier ones: each once. */
  async function tells(events: string[]): Promise<void> {
    expected = [...expected, ...events];
    const all = (): boolean => told().length >= expected.length;
    await time.until(`${events.join(', ')} besides ${told().join(', ')}`, all);
    expect(told().sort()).to.deep.equal([...expected].sort());
    await consoleAgrees();
  }
  const wrongIn = (conditions: readonly object[]): string =>
    (conditions as { message: string }[])
      // A time goes on while the two are asked.
      .map(({ message }) => message.replace(/\d+ minutes?/, 'some minutes'))
      .sort()
      .join('\n');
  /** While no node answers, health and the console wait for the figures of issuing for a moment. */
  const askedFor = <T>(answer: Promise<T>): Promise<T> => time.settled(time.aside(answer));
  /** Waits until the console shows what health says: its overview may be a second old. */
  async function consoleAgrees(): Promise<void> {
    let [said, shown] = ['', ''];
    for (let rounds = 0; rounds === 0 || (said !== shown && rounds < 10); rounds++) {
      await time.pass(1_000);
      said = wrongIn((await askedFor(healthOf(service.url))).conditions ?? []);
      shown = wrongIn((await askedFor(page.call<Overview>('GET', `${API}/overview`))).body.problems);
    }
    expect(shown).to.equal(said);
  }
  const conditions = async (): Promise<string[]> =>
    ((await healthOf(service.url)).conditions ?? []).map(({ what }) => what);

  it('tell that a mint is deferred, a sink gone, a node differing, and all well again', async () => {
    const [differing, away] = nodes as [RpcProxy, RpcProxy];
    const [ofSink, ofMints] = [`subscription/${subscription}`, `mints/31337:${registry}`];
    subscriber.answerWith(answering(410));
    differing.answer((method) => (method === 'eth_getLogs' ? { result: [] } : 'none'));
    let tokenId = '';
    await withoutMining(local, async () => {
      tokenId = await createLater();
      await after(10 * MINUTE);
      await tells([`mint_deferred ${ofMints}`]);
    });
    await tells([
      `mint_resumed ${ofMints}`,
      `subscription_gone ${ofSink}`,
      `node_differing node/${differing.url}`,
    ]);
    expect((await fetchDocument(service.url, tokenId)).status).to.equal(200);
    expect(await conditions()).to.include('subscription_gone');
    expect(await metricOf(service.url, 'etr_conditions')).to.equal((await conditions()).length);
    subscriber.answerWith(accept);
    differing.answer(THROUGH);
    const { config, ...members } = await shown();
    const active = { ...members, config: { ...config, state: 'active' } };
    await callApi(service.url, 'PUT', `/subscriptions/${subscription}`, active);
    await away.refuse();
    const node = `node/${away.url}`;
    await tells([`subscription_recovered ${ofSink}`, `node_away ${node}`]);
    expect(await conditions()).not.to.include('subscription_gone');
    await away.accept();
    await tells([`node_back ${node}`]);
  });

  it('tell that a feed is behind, that it has stopped, and that it is read after a restart', async () => {
    const feed = `feed/31337:${registry}`;
    for (const node of nodes) await node.refuse();
    await time.until('it is told', () => told().includes(`feed_behind ${feed}`));
    await consoleAgrees();
    await service.stop();
    for (const node of nodes) {
      node.answer((method) => (method === 'eth_call' ? { result: '0x' } : 'none'));
      await node.accept();
    }
    await start();
    await time.until('it is told', () => told().includes(`feed_stopped ${feed}`));
    await consoleAgrees();
    await service.stop();
    for (const node of nodes) node.answer(THROUGH);
    await start();
    await time.until('it is told', () => told().includes(`feed_recovered ${feed}`));
    await consoleAgrees();
    const ofFeed = told().filter((one) => one.endsWith(feed));
    expect(ofFeed).to.deep.equal(
      ['feed_behind', 'feed_stopped', 'feed_recovered'].map((one) => `${one} ${feed}`),
    );
    // A process shows a difference for ten minutes. The new one has not seen it.
    await time.until('the node is back', () => told().includes(`node_back node/${nodes[0]?.url}`));
    await time.until('all is well', async () => (await conditions()).length === 0);
    expected = told();
  });

  it('tell that deliveries fail, the wallet is empty and its signer away, and then well', async () => {
    const { client } = local;
    const balance = toQuantity(await client.getBalance(DEPLOYER));
    subscriber.answerWith(answering(503));
    await mintDirectly(local, owner);
    await time.until('an attempt failed', () => subscriber.deliveries.some(({ attempt }) => attempt === 1));
    await time.until('it is stored', async () => {
      const path = `/subscriptions/${subscription}/deliveries?state=failed`;
      return (await callApi<object[]>(service.url, 'GET', path)).body.length > 0;
    });
    await client.send('anvil_setBalance', [DEPLOYER, '0x0']);
    await signer.refuse();
    await after(5 * MINUTE);
    const subject = `subscription/${subscription}`;
    await tells([`subscription_failing ${subject}`, 'wallet_low wallet', 'signer_away signer/wallet']);
    expect(await conditions()).to.have.members(['subscription_failing', 'wallet_low', 'signer_away']);
    expect((await shown()).failingSince).to.be.a('string');
    await after(12 * MINUTE);
    await client.send('anvil_setBalance', [DEPLOYER, balance]);
    await signer.accept();
    await tells([`dead_letter ${subject}`, 'wallet_filled wallet', 'signer_back signer/wallet']);
    expect(await conditions()).to.have.members(['subscription_failing', 'dead_letters']);
    subscriber.answerWith(accept);
    await callApi(service.url, 'POST', `/subscriptions/${subscription}/redeliver`, { dead: true });
    await tells([`subscription_recovered ${subject}`]);
    await time.until('nothing is wrong', async () => (await conditions()).length === 0);
  });

  it('tell that the wallet is low when mints need four times the gas, while others wait', async () => {
    const { client } = local;
    const balance = toQuantity(await client.getBalance(DEPLOYER));
    const wallet = async () => (await healthOf(service.url)).issuing?.wallet;
    const read = await time.until('the wallet is read', wallet);
    const cost = BigInt(read.balanceWei) / BigInt(read.mintsAffordable ?? 0);
    let tokenId = '';
    await withoutMining(local, async () => {
      await client.send('anvil_setBalance', [DEPLOYER, toQuantity(cost * 40n)]);
      tokenId = await createLater();
      await time.until('it waits', async () => (await healthOf(service.url)).issuing?.mints?.inFlight === 1);
      for (const node of nodes)
        node.answer(async (method, _params, forward) => {
          if (method !== 'eth_estimateGas') return 'none';
          const answer = (await forward()) as { result: string };
          return { result: toQuantity(4n * BigInt(answer.result)) };
        });
      await tells(['wallet_low wallet']);
      const low = await wallet();
      expect(low?.mintsAffordable).to.be.within(8, 12);
      expect(low?.isGasEstimated).to.equal(true);
      expect((low?.gasOfMint ?? 0) / read.gasOfMint).to.be.closeTo(4, 0.1);
    });
    await time.until('it is mined', async () => (await fetchDocument(service.url, tokenId)).status === 200);
    for (const node of nodes) node.answer(THROUGH);
    await client.send('anvil_setBalance', [DEPLOYER, balance]);
    await tells(['wallet_filled wallet']);
  });

  it('tell that the database is missing, and that it is back', async () => {
    const folder = settings.DATA_DIR ?? '';
    renameSync(folder, join(local.folder, 'elsewhere'));
    await tells(['database_missing database']);
    expect(await healthOf(service.url)).to.include({ httpStatus: 200, database: 'removed' });
    renameSync(join(local.folder, 'elsewhere'), folder);
    await tells(['database_restored database']);
  });

  it('tell that a reorganisation was too deep', async () => {
    const { client } = local;
    await mineBlocks(local, 4);
    const snapshot = (await client.send('evm_snapshot', [])) as string;
    await mineBlocks(local, 6);
    const head = await client.getBlockNumber();
    await time.until(
      'it is read',
      async () => (await healthOf(service.url)).feeds[0]?.nextBlock === head + 1,
    );
    await client.send('evm_revert', [snapshot]);
    await client.send('evm_increaseTime', [100]);
    await mineBlocks(local, 8);
    await tells([`reorganisation_too_deep feed/31337:${registry}`]);
    expect((await healthOf(service.url)).httpStatus).to.equal(503);
  });
  it('came once each, and signed', () => {
    const ids = operator.deliveries.map(({ event }) => event.id);
    expect(new Set(ids).size).to.equal(ids.length);
    expect(operator.deliveries.every(({ verified }) => verified)).to.equal(true);
  });
});
