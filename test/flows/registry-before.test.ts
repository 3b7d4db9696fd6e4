import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { loadConfig } from '../../service/config/config';
import { openSqlite } from '../../service/database/open-sqlite';
import { createDatabaseJournal } from '../../service/journal/journal';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { hardhatInProcess } from '../helpers/processes/hardhat-in-process';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { preparedDocument } from '../helpers/database/prepared-documents';
import { tdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startRecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { join } from 'node:path';
import { leftBehind } from '../../deploy/registry-before';
import { openFeed } from '../../service/outbox/feeds';
import { temporaryFolder } from '../helpers/temporary-folder';

const ISSUER = 'did:web:localhost%3A3000';

describe('a registry that TOKEN_REGISTRY_ADDRESS no longer names', () => {
  let local: LocalSetup;
  let former: string;
  let service: RunningService | undefined;

  before(async () => {
    local = await createLocalSetup();
    former = local.registryAddress.toLowerCase();
    service = await startService(local.settings);
    await mintDirectly(local, await local.account(1));
    await eventually('its events are stored', async () => {
      return (await metricOf(service?.url ?? '', 'etr_deliveries_waiting')) === EVENTS_OF_A_MINT;
    });
    await stop();
    const database = await openSqlite(local.settings.DATA_DIR ?? '', { time: systemTime });
    const scope = { chainId: 31337, registryAddress: former, issuer: ISSUER };
    await createDatabaseJournal(database, scope, systemTime).add(preparedDocument());
    await database.close();
  });

  afterEach(() => stop());

  async function stop(): Promise<void> {
    await service?.stop();
    service = undefined;
  }

  const deploy = (changed: Record<string, string> = {}): Promise<string> =>
    hardhatInProcess(['deploy', '--network', 'localhost', '--new'], { ...local.settings, ...changed });
  const warnings = (): object[] =>
    service?.log.filter(({ msg = '' }) => /are not delivered, because|to be issued/.test(msg)) ?? [];

  it('is named by a warning of deploy --new, with its unfinished work and how to continue it', async () => {
    const output = await deploy();
    expect(output).to.contain(`warning: no setting follows the previous registry 31337:${former} any more.`);
    expect(output).to.contain(`its events are not delivered; ${EVENTS_OF_A_MINT} wait now`);
    const add = `npx tdoc registries add --registry ${local.registryAddress} --network localhost`;
    expect(output).to.contain(`ENV_FILE=${local.settings.ENV_FILE} ${add}`);
    expect(output).to.match(
      /documents of did:web:localhost%3A3000 that are being issued in the previous registry 0x\w{40}: 1\./,
    );
    expect(loadConfig(local.settings).tokenRegistryAddress).not.to.equal(local.registryAddress);
  });

  it('is reported with its unfinished work at start, in GET /health and in GET /metrics', async () => {
    service = await startService(local.settings);
    const registry = `31337:${former}`;
    const [deliveries, issuances] = await eventually('it is logged', () =>
      warnings().length === 2 ? warnings() : undefined,
    );
    expect(deliveries).to.include({ level: 'warn', registry, undelivered: EVENTS_OF_A_MINT });
    expect(issuances).to.deep.include({ level: 'warn', registry, issuer: ISSUER, unfinished: 1 });
    const { nextBlock } = deliveries as { nextBlock?: unknown };
    expect(nextBlock).to.be.a('number').and.be.above(1);
    const { httpStatus, conditions = [] } = await healthOf(service.url);
    expect(httpStatus).to.equal(200);
    expect(conditions.map(({ what, detail }) => ({ what, detail }))).to.have.deep.members([
      { what: 'feed_unfollowed', detail: { registry, undelivered: EVENTS_OF_A_MINT, nextBlock } },
      { what: 'documents_unfollowed', detail: { registry, issuer: ISSUER, unfinished: 1 } },
    ]);
    expect(await metricOf(service.url, 'etr_unfollowed_deliveries')).to.equal(EVENTS_OF_A_MINT);
    expect(await metricOf(service.url, 'etr_unfollowed_mints')).to.equal(1);
  });

  const list = (address?: string): void => {
    const registries = [{ network: 'localhost', address }];
    writeFileSync(local.settings.SERVICE_CONFIG ?? '', JSON.stringify({ registries }));
  };

  it('has its events delivered once it is listed, and documents issued once it is named again', async () => {
    const receiver = await startRecordingReceiver(local.publicKeyFile);
    list(local.registryAddress);
    service = await startService({ ...local.settings, WEBHOOK_URL: receiver.url });
    await eventually('its events are delivered', () => receiver.deliveries.length === EVENTS_OF_A_MINT);
    await eventually('the other is logged', () => warnings().length === 1);
    await stop();
    list(loadConfig(local.settings).tokenRegistryAddress);
    service = await startService({ ...local.settings, TOKEN_REGISTRY_ADDRESS: local.registryAddress });
    const { url } = service;
    await eventually('nothing is unfinished', async () => {
      const { waiting, inFlight, mined } = (await healthOf(url)).issuing?.mints ?? {};
      return waiting === 0 && inFlight === 0 && mined === 0;
    });
    expect((await healthOf(url)).conditions).to.deep.equal([]);
    expect(await metricOf(url, 'etr_unfollowed_deliveries')).to.equal(undefined);
    expect(warnings()).to.deep.equal([]);
  });

  it('is not mentioned by deploy when it is listed and has no unfinished documents', async () => {
    list(local.registryAddress);
    const output = await deploy({ TOKEN_REGISTRY_ADDRESS: local.registryAddress });
    expect(output).to.contain(`(it was ${local.registryAddress})`).and.not.to.contain('previous registry');
  });
});

const BEFORE = `0x${'5b'.repeat(20)}`;

describe('the previous registry in the warning of deploy', () => {
  it('is reported for each chain where it has a feed, and is neither listed nor given up', async () => {
    await using folder = temporaryFolder();
    const database = await openSqlite(folder.path, { time: systemTime });
    for (const chainId of [31337, 80002, 4711])
      await openFeed(database.db, `${chainId}:${BEFORE}:0123456789abcdef`, 1, 1);
    await database.close();
    const configFile = join(folder.path, 'service.config.json');
    const registries = [{ network: 'amoy', address: BEFORE }];
    writeFileSync(configFile, JSON.stringify({ registries }));
    const ENV_FILE = join(folder.path, 'none.env');
    const settings = { ENV_FILE, NET: '31337', DATA_DIR: folder.path, SERVICE_CONFIG: configFile };
    const text = (await leftBehind(join(folder.path, '.env'), settings, BEFORE)).join('\n');
    expect(
      [...text.matchAll(/previous registry (\d+):/g)].map(([, chainId]) => chainId).sort(),
    ).to.deep.equal(['31337', '4711']);
    const networks = [...text.matchAll(/add --registry .* --network (.*)/g)].map(([, network]) => network);
    expect(networks.sort()).to.deep.equal(['4711', 'localhost']);
    const named = ['--registry', BEFORE, '--network', 'localhost'];
    const ofNet = { NET: '31337', PROVIDER_API_KEY: 'not-used' };
    await tdocInProcess(['registries', 'remove', ...named], { ...settings, ...ofNet });
    const without = (await leftBehind(join(folder.path, '.env'), settings, BEFORE)).join('\n');
    expect(without).to.contain('4711').and.not.to.contain('localhost');
  });
});
