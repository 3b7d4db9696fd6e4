import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { leftBehind } from '../../deploy/registry/registry-before';
import { openSqlite } from '../../service/database/open-sqlite';
import { openFeed } from '../../service/outbox/feed-cursor';
import { tenantOf } from '../../service/config/tenant';
import { temporaryFolder } from '../helpers/temporary-folder';

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
