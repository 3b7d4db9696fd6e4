import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { systemClock } from '../../service/base/clock';
import { loadConfig } from '../../service/config/config';
import { openSqlite } from '../../service/database/open-sqlite';
import { createDatabaseJournal } from '../../service/journal/database-journal';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/direct-mint';
import { eventually } from '../helpers/eventually';
import { hardhat } from '../helpers/command-output';
import { healthOf, metricOf } from '../helpers/observe';
import { preparedDocument } from '../helpers/prepared-documents';
import { startRecordingReceiver } from '../helpers/recording-receiver';
import { startService, type RunningService } from '../helpers/running-service';
import { createWorld, type World } from '../helpers/world';
import { join } from 'node:path';
import { leftBehind } from '../../deploy/registry/registry-before';
import { openFeed } from '../../service/outbox/feed-cursor';
import { tenantOf } from '../../service/config/tenant';
import { temporaryFolder } from '../helpers/temporary-folder';

const ISSUER = 'did:web:localhost%3A3000';

describe('a registry that TOKEN_REGISTRY_ADDRESS named before', () => {
  let world: World;
  let former: string;
  let service: RunningService | undefined;

  before(async () => {
    world = await createWorld();
    former = world.registryAddress.toLowerCase();
    service = await startService(world.settings);
    await mintDirectly(world, await world.account(1));
    await eventually('its events are stored', async () => {
      return (await metricOf(service?.url ?? '', 'etr_deliveries_waiting')) === EVENTS_OF_A_MINT;
    });
    await stop();
    const database = await openSqlite(world.settings.DATA_DIR ?? '');
    const scope = { chainId: 31337, registryAddress: former, issuer: ISSUER };
    await createDatabaseJournal(database, scope, systemClock).add(preparedDocument());
    await database.close();
  });

  afterEach(() => stop());
  after(() => world?.stop());

  async function stop(): Promise<void> {
    await service?.stop();
    service = undefined;
  }

  const deploy = (changed: Record<string, string> = {}): Promise<string> =>
    hardhat(['deploy', '--network', 'localhost', '--new'], { ...world.settings, ...changed });
  const warnings = (): object[] =>
    service?.log.filter(({ msg = '' }) => /nobody (deliv|fin)/.test(msg)) ?? [];

  it('is what deploy --new warns of: what waits in it, and how it goes on', async () => {
    const output = await deploy();
    expect(output).to.contain(`warning: no setting follows the registry before any more, 31337:${former}.`);
    expect(output).to.contain(`its events are not delivered; ${EVENTS_OF_A_MINT} wait now`);
    expect(output).to.contain(
      `${world.settings.SERVICE_CONFIG}: {"registries": [{"network": "localhost", "address": "${world.registryAddress}"}]}`,
    );
    expect(output).to.match(
      /documents of did:web:localhost%3A3000 that are being issued in the registry before, 0x\w{40}: 1\./,
    );
    expect(loadConfig(world.settings).tokenRegistryAddress).not.to.equal(world.registryAddress);
  });

  it('is told at start, by GET /health and GET /metrics, with what waits in it', async () => {
    service = await startService(world.settings);
    const registry = `31337:${former}`;
    const [deliveries, issuances] = warnings();
    expect(deliveries).to.include({ level: 'warn', registry, undelivered: EVENTS_OF_A_MINT });
    expect(issuances).to.deep.include({ level: 'warn', registry, issuer: ISSUER, unfinished: 1 });
    const { nextBlock } = deliveries as { nextBlock?: unknown };
    expect(nextBlock).to.be.a('number').and.be.above(1);
    expect(await healthOf(service.url)).to.deep.include({
      httpStatus: 200,
      unfollowed: {
        deliveries: [{ registry, undelivered: EVENTS_OF_A_MINT, nextBlock }],
        issuances: [{ registry, issuer: ISSUER, unfinished: 1 }],
      },
    });
    expect(await metricOf(service.url, 'etr_unfollowed_deliveries')).to.equal(EVENTS_OF_A_MINT);
    expect(await metricOf(service.url, 'etr_unfollowed_mints')).to.equal(1);
  });

  it('goes on as the warnings say: listed, its events are delivered; named again, its documents are issued', async () => {
    const receiver = await startRecordingReceiver(world.publicKeyFile);
    const list = (address?: string): void => {
      const registries = [{ network: 'localhost', address }];
      writeFileSync(world.settings.SERVICE_CONFIG ?? '', JSON.stringify({ registries }));
    };
    list(world.registryAddress);
    try {
      service = await startService({ ...world.settings, WEBHOOK_URL: receiver.url });
      await eventually('its events are delivered', () => receiver.deliveries.length === EVENTS_OF_A_MINT);
      expect(warnings()).to.have.length(1);
      await stop();
      list(loadConfig(world.settings).tokenRegistryAddress);
      service = await startService({ ...world.settings, TOKEN_REGISTRY_ADDRESS: world.registryAddress });
      const { url } = service;
      await eventually('nothing is unfinished', async () => {
        const { waiting, inFlight, mined } = (await healthOf(url)).issuing?.mints ?? {};
        return waiting === 0 && inFlight === 0 && mined === 0;
      });
      expect(await healthOf(url)).not.to.have.property('unfollowed');
      expect(await metricOf(url, 'etr_unfollowed_deliveries')).to.equal(undefined);
      expect(warnings()).to.deep.equal([]);
    } finally {
      await stop();
      await receiver.close();
      list(world.registryAddress);
    }
  });

  it('is not mentioned by deploy when it is listed and nothing of it is unfinished', async () => {
    const output = await deploy({ TOKEN_REGISTRY_ADDRESS: world.registryAddress });
    expect(output).to.contain(`(it was ${world.registryAddress})`).and.not.to.contain('the registry before');
  });
});

const BEFORE = `0x${'5b'.repeat(20)}`;

describe('the registry before, of which deploy warns', () => {
  let folder: ReturnType<typeof temporaryFolder>;

  beforeEach(() => (folder = temporaryFolder()));
  afterEach(() => folder.remove());

  it('is that of each chain which is not listed with its network', async () => {
    const database = await openSqlite(folder.path);
    for (const chainId of [31337, 80002, 4711])
      await openFeed(database.db, `${chainId}:${BEFORE}:0123456789abcdef`, 1, 1);
    await database.close();
    const configFile = join(folder.path, 'service.config.json');
    const registries = [{ network: 'amoy', address: BEFORE }];
    writeFileSync(configFile, JSON.stringify({ registries }));
    const context = { tenant: tenantOf(join(folder.path, '.env')), mask: (text: string) => text };
    const settings = { DATA_DIR: folder.path, SERVICE_CONFIG: configFile };
    const text = (await leftBehind(context, settings, BEFORE)).join('\n');
    expect([...text.matchAll(/any more, (\d+):/g)].map(([, chainId]) => chainId).sort()).to.deep.equal([
      '31337',
      '4711',
    ]);
    expect([...text.matchAll(/"network": "(.*?)"/g)].map(([, network]) => network).sort()).to.deep.equal([
      '4711',
      'localhost',
    ]);
  });
});
