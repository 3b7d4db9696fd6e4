import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { toQuantity } from 'ethers';
import Sqlite from 'libsql';
import { freePort } from '../../devnet/place';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { createLocalSetup, DEPLOYER, type LocalSetup } from '../helpers/chain/local-setup';
import { withoutMining } from '../helpers/chain/mine-blocks';
import { startRpcProxy, THROUGH, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { eventually } from '../helpers/eventually';
import { API_KEY, AUTHORIZATION } from '../helpers/processes/documents-call';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { MONITORING, startPrometheus, type Prometheus } from '../helpers/processes/prometheus';
import { ADMIN_API_KEY, callApi } from '../helpers/processes/subscribed-service';
import { startService, type RunningService } from '../helpers/processes/running-service';
import {
  accept,
  startRecordingReceiver,
  type RecordingReceiver,
} from '../helpers/receiver/recording-receiver';
import { VirtualTime } from '../helpers/virtual-time';

const MINUTE = 60_000;
const MEGABYTE = 1024 ** 2;
const CREATE = '/create/BILL_OF_LADING';
/**
 * The first retry comes after an hour, and is the last. An event is old after 15 minutes, and dead much
 * later: each look at a condition lets some time pass.
 */
const RETRY = { initialDelayMs: 120 * MINUTE, maxDelayMs: 120 * MINUTE, giveUpAfterMs: 60 * MINUTE };

// The service has virtual time, for its conditions take minutes. Prometheus has its own, and asks often: the
// alerts are those of the repository, without the time for which they must last.
describe('the alerts, in Prometheus', () => {
  let time: VirtualTime;
  let local: LocalSetup;
  let nodes: RpcProxy[];
  let signer: RpcProxy;
  let subscriber: RecordingReceiver;
  let settings: Record<string, string>;
  let service: RunningService;
  let prometheus: Prometheus;
  let owner: string;

  before(async function () {
    const port = String(await freePort(0));
    const most = process.memoryUsage.rss() + 500 * MEGABYTE;
    const started = await startPrometheus(`http://127.0.0.1:${port}`, (alerts) =>
      alerts
        .replace(/for: \w+/g, 'for: 0s')
        .replaceAll('[10m]', '[15s]')
        .replace('2 * 1024 ^ 3', String(most)),
    );
    if (started === undefined) return this.skip();
    prometheus = started;
    // Hardhat signs no transactions.
    local = await createLocalSetup({ program: 'anvil' });
    nodes = await Promise.all([0, 1, 2].map(() => startRpcProxy(local.node.url)));
    signer = await startRpcProxy(local.node.url);
    subscriber = await startRecordingReceiver(local.publicKeyFile);
    owner = await local.account(1);
    const configFile = join(local.folder, 'alerts.config.json');
    writeFileSync(configFile, JSON.stringify({ webhook: { retry: RETRY } }));
    settings = {
      ...local.settings,
      API_KEY,
      ADMIN_API_KEY,
      PORT: port,
      SERVICE_CONFIG: configFile,
      WEBHOOK_URL: subscriber.url,
      RPC_URL: nodes.map(({ url }) => url).join(' '),
      WALLET_PRIVATE_KEY: '',
      WALLET_SIGNER_URL: signer.url,
      WALLET_ADDRESS: DEPLOYER,
      SUBSCRIPTION_FAILING_AFTER_MINUTES: '5',
    };
    time = VirtualTime.ofRequests();
    await start();
  });

  async function start(): Promise<void> {
    service = await startService(settings, { time });
  }
  /** Lets time pass between two runs of the service. */
  async function after(ms: number): Promise<void> {
    await service.stop();
    await time.pass(ms);
    await start();
  }
  async function create(members: object = {}): Promise<number> {
    const headers = { ...AUTHORIZATION, 'Content-Type': 'application/json', Prefer: 'respond-async' };
    const body = JSON.stringify({ ...minimal, owner, holder: owner, ...members });
    return time.settled(
      fetch(`${service.url}${CREATE}`, { method: 'POST', headers, body }).then(({ status }) => status),
    );
  }
  /** Lets time pass until the service shows a condition, or does not show it any more. */
  async function holds(kind: string, isHolding = true): Promise<void> {
    await time.until(`${kind}: ${isHolding}`, async () => {
      const { conditions } = await time.settled(time.aside(healthOf(service.url)));
      return conditions !== undefined && conditions.some(({ what }) => what === kind) === isHolding;
    });
  }
  /** Waits until Prometheus has the alerts, or none of them. The service's time stands still. */
  async function fires(...names: string[]): Promise<void> {
    await eventually(`${names.join(', ')} fire`, async () => {
      const firing = await prometheus.firing();
      return names.every((name) => firing.includes(name));
    });
  }
  async function recovers(...names: string[]): Promise<void> {
    await eventually(`${names.join(', ')} recover`, async () => {
      const firing = await prometheus.firing();
      return !names.some((name) => firing.includes(name));
    });
  }

  it('tell of memory, and of an event loop that is late', async () => {
    const fill = `require('node:worker_threads').parentPort.once('message', () => process.exit());
      globalThis.kept = Buffer.alloc(${800 * MEGABYTE}, 1);`;
    const filled = new Worker(fill, { eval: true });
    await fires('EtrMemory');
    await filled.terminate();
    await recovers('EtrMemory');
    const block = (): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 520);
    await eventually('EtrEventLoopLag fires', async () => {
      block();
      return (await prometheus.firing()).includes('EtrEventLoopLag');
    });
    await recovers('EtrEventLoopLag');
  });

  it('tell of a mint that is deferred, a node that differs and one that is away', async () => {
    const [differing, away] = nodes as [RpcProxy, RpcProxy];
    await withoutMining(local, async () => {
      expect(await create()).to.equal(202);
      await after(10 * MINUTE);
      await holds('mint_deferred');
      await fires('EtrMintDeferred');
    });
    await holds('mint_deferred', false);
    await recovers('EtrMintDeferred');
    differing.answer((method) => (method === 'eth_getLogs' ? { result: [] } : 'none'));
    await mintDirectly(local, owner);
    await holds('node_differing');
    await fires('EtrNodeDiffering');
    differing.answer(THROUGH);
    await after(0);
    await holds('node_differing', false);
    await recovers('EtrNodeDiffering');
    await away.refuse();
    await holds('node_away');
    await fires('EtrNodeAway');
    await away.accept();
    await holds('node_away', false);
    await recovers('EtrNodeAway');
  });

  it('tell of a feed that is behind, and of one that stopped', async () => {
    for (const node of nodes) await node.refuse();
    await time.pass(MINUTE);
    await holds('feed_behind');
    await fires('EtrFeedBehind');
    await service.stop();
    for (const node of nodes) {
      node.answer((method) => (method === 'eth_call' ? { result: '0x' } : 'none'));
      await node.accept();
    }
    await start();
    await holds('feed_stopped');
    await fires('EtrFeedStopped');
    await recovers('EtrFeedBehind');
    await service.stop();
    for (const node of nodes) node.answer(THROUGH);
    await start();
    await holds('feed_stopped', false);
    await recovers('EtrFeedStopped');
  });

  it('tell of failing deliveries, dead letters, an empty wallet and its signer', async () => {
    const { client } = local;
    const balance = toQuantity(await client.getBalance(DEPLOYER));
    subscriber.answerWith((_delivery, response) => void response.writeHead(503).end());
    await mintDirectly(local, owner);
    // An attempt that the stop of the service ends counts as none.
    await time.until('an attempt failed', async () => {
      const metrics = await (await fetch(`${service.url}/metrics`)).text();
      return /attempt_duration_seconds_count\{[^}]*outcome="failed"[^}]*\} [1-9]/.test(metrics);
    });
    await client.send('anvil_setBalance', [DEPLOYER, '0x0']);
    await signer.refuse();
    await after(17 * MINUTE);
    for (const kind of ['subscription_failing', 'wallet_low', 'signer_away']) await holds(kind);
    await fires('EtrDeliveryOld', 'EtrSubscriptionFailing', 'EtrWalletLow', 'EtrSignerAway');
    await client.send('anvil_setBalance', [DEPLOYER, balance]);
    await signer.accept();
    for (const kind of ['wallet_low', 'signer_away']) await holds(kind, false);
    await recovers('EtrWalletLow', 'EtrSignerAway');
    await after(75 * MINUTE);
    await holds('dead_letters');
    await fires('EtrDeadLetters');
    subscriber.answerWith(accept);
    await callApi(service.url, 'POST', '/subscriptions/default/redeliver', { dead: true });
    await holds('dead_letters', false);
    // The other events of the token wait for their own retries.
    await after(135 * MINUTE);
    await holds('subscription_failing', false);
    await recovers('EtrDeadLetters', 'EtrSubscriptionFailing', 'EtrDeliveryOld');
  });

  it('tell of documents that are refused by a fault, and of a database that is missing or away', async () => {
    const faulty = { credentialSubject: { ...minimal.credentialSubject, blNumber: 'PO_:1' } };
    await eventually('EtrCreateErrors fires', async () => {
      expect(await create(faulty)).to.equal(500);
      return (await prometheus.firing()).includes('EtrCreateErrors');
    });
    await recovers('EtrCreateErrors');
    const folder = settings.DATA_DIR ?? '';
    const elsewhere = join(local.folder, 'elsewhere');
    renameSync(folder, elsewhere);
    await holds('database_missing');
    await fires('EtrNothingStored');
    renameSync(elsewhere, folder);
    await holds('database_missing', false);
    await recovers('EtrNothingStored');
    const database = new Sqlite(join(folder, 'state.sqlite'));
    database.exec('alter table conditions rename to hidden');
    await fires('EtrDatabaseAway');
    database.exec('alter table hidden rename to conditions');
    database.close();
    await recovers('EtrDatabaseAway');
  });

  it('tell that the service is away', async () => {
    await service.stop();
    await fires('EtrServiceAway');
    await start();
    await recovers('EtrServiceAway');
  });

  it('were all provoked, and the dashboard shows what Prometheus scraped meanwhile', async () => {
    const alerts = await prometheus.query(
      'count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[1h]))',
    );
    const names = readFileSync(join(MONITORING, 'alerts.yml'), 'utf8').match(/(?<=alert: )\w+/g);
    expect(alerts.map(({ metric }) => metric.alertname)).to.have.members([...(names ?? [])]);
    const dashboard = JSON.parse(readFileSync(join(MONITORING, 'dashboard.json'), 'utf8')) as Dashboard;
    const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => [title, expr] as const),
    );
    const without: string[] = [];
    for (const [title, expr] of queries) {
      const query = expr.replaceAll('$__rate_interval', '5s').replaceAll('$job', '.*');
      if ((await prometheus.query(query)).length === 0) without.push(title);
    }
    expect(without).to.deep.equal(['Failed mints']);
  });
});

/** The parts of a dashboard that have queries. */
interface Dashboard {
  panels: { title: string; targets?: { expr: string }[] }[];
}
