import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Overview } from '../../service/console/views';
import { codeOf } from '../../service/base/errors';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { createLocalSetup } from '../helpers/chain/local-setup';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { smallDisk, type SmallDisk } from '../helpers/database/small-disk';
import { API, openConsolePage } from '../helpers/processes/console-page';
import { create } from '../helpers/processes/create-call';
import { whileFollowing } from '../helpers/processes/followed-registry';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { startService } from '../helpers/processes/running-service';
import { temporaryFolder } from '../helpers/temporary-folder';

const ADMIN_API_KEY = 'admin-key-of-a-full-disk';
const KIND = 'database_unwritable';

/** Fills a disk. Returns the function that makes room again. */
function fill({ path }: SmallDisk): () => void {
  const rest = join(path, 'rest');
  const file = openSync(rest, 'w');
  for (const size of [65_536, 1])
    try {
      for (;;) writeSync(file, Buffer.alloc(size));
    } catch (error) {
      expect(codeOf(error)).to.equal('ENOSPC');
    }
  closeSync(file);
  return () => rmSync(rest);
}

describe('a service whose disk is full', () => {
  it('says so before a caller does, and goes on by itself when there is room', async function () {
    const disk = smallDisk(join(temporaryFolder().path, 'disk'));
    if (disk === undefined) return this.skip();
    disk.grow();
    const local = await createLocalSetup();
    const settings = { DATA_DIR: join(disk.path, 'data'), ADMIN_API_KEY };
    await whileFollowing(local, { settings }, async ({ service: { url, log }, until }) => {
      await until('it is healthy', async () => (await healthOf(url)).status === 'ok');

      const makeRoom = fill(disk);
      await mineBlocks(local, 1);
      await until('the log blames the database, not the chain', () =>
        log.some(({ msg }) => msg?.startsWith('events cannot be stored: Nothing can be stored: the disk')),
      );
      const health = await until('health tells it', async () => {
        const report = await healthOf(url);
        return report.status === 'failing' ? report : undefined;
      });
      expect(health).to.include({ httpStatus: 200, database: 'unwritable' });
      const condition = health.conditions?.find(({ what }) => what === KIND);
      expect(condition).to.deep.include({ severity: 'error', detail: { code: 'DATABASE_FULL' } });
      expect(await metricOf(url, `etr_conditions{what="${KIND}"}`)).to.equal(1);
      const page = openConsolePage(url);
      await page.logIn(ADMIN_API_KEY);
      await until('the console shows it', async () => {
        const { body } = await page.call<Overview>('GET', `${API}/overview`);
        return body.problems.some(({ message }) => message === condition?.message);
      });

      makeRoom();
      await until('it has ended', async () => (await healthOf(url)).status === 'ok');
      expect((await healthOf(url)).conditions?.filter(({ what }) => what === KIND)).to.deep.equal([]);
    });
  });

  it('refuses to issue, by name, until there is room', async function () {
    const disk = smallDisk(join(temporaryFolder().path, 'disk'));
    if (disk === undefined) return this.skip();
    disk.grow();
    const local = await createLocalSetup();
    const owner = await local.account(1);
    await using service = await startService({ ...local.settings, DATA_DIR: join(disk.path, 'data') });
    const issue = () => create(service.url, { ...minimal, owner, holder: owner });
    expect((await issue()).status).to.equal(200);
    const makeRoom = fill(disk);
    expect((await issue()).errorCode).to.equal('DATABASE_FULL');
    makeRoom();
    expect((await issue()).status).to.equal(200);
  });
});
