import { chmodSync, cpSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { EventStore } from '../../receiver/store';
import { systemTime } from '../../service/base/time';
import { loadConfig } from '../../service/config/config';
import { openSqlite } from '../../service/database/open-sqlite';
import { openFeed } from '../../service/outbox/feeds';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe('files that only their owner may read', () => {
  let folder: ReturnType<typeof temporaryFolder>;

  before(function () {
    if (process.platform === 'win32') this.skip();
    const umask = process.umask(0);
    stopLater('umask', () => process.umask(umask));
  });
  beforeEach(() => {
    folder = temporaryFolder();
  });

  /** The modes of all files of a database that is open and was written to. */
  async function modesWhileOpen(path: string): Promise<Record<string, string>> {
    const database = await openSqlite(path, { time: systemTime });
    stopLater(path, () => database.close());
    await openFeed(database.db, '31337:0x5b:00', 1, 1);
    return Object.fromEntries(readdirSync(path).map((name) => [name, modeOf(join(path, name))]));
  }

  const PRIVATE = {
    'service.lock': '600',
    'service.lock-journal': '600',
    'state.sqlite': '600',
    'state.sqlite-shm': '600',
    'state.sqlite-wal': '600',
  };

  it('include every database file, even in a folder that others can look into', async () => {
    chmodSync(folder.path, 0o755);
    expect(await modesWhileOpen(folder.path)).to.deep.equal(PRIVATE);
  });

  it('include the database files that a killed service left readable to others', async () => {
    const [running, copy] = [join(folder.path, 'running'), join(folder.path, 'copy')];
    const database = await openSqlite(running, { time: systemTime });
    await openFeed(database.db, '31337:0x5b:00', 1, 1);
    cpSync(running, copy, { recursive: true });
    await database.close();
    for (const name of Object.keys(PRIVATE)) chmodSync(join(copy, name), 0o644);
    expect(await modesWhileOpen(copy)).to.deep.equal(PRIVATE);
  });

  it("include the receiver's events file and folder, even if others could read the file before", async () => {
    const file = join(folder.path, 'events.jsonl');
    writeFileSync(file, '');
    chmodSync(file, 0o644);
    const another = join(folder.path, 'new/events.jsonl');
    for (const path of [file, another])
      await (await EventStore.open(path, { onEvent: () => undefined })).close();
    expect([file, another, dirname(another)].map(modeOf)).to.deep.equal(['600', '600', '700']);
  });

  describe('the warnings at start about files that others may read', () => {
    const warningsOf = (settings: Record<string, string> = {}): readonly string[] => {
      const ENV_FILE = join(folder.path, 'service.env');
      return loadConfig({ ENV_FILE, DATA_DIR: join(folder.path, 'data'), NET: '31337', ...settings })
        .warnings;
    };
    const makeBoth = (modeOfFile: number, modeOfFolder: number): void => {
      writeFileSync(join(folder.path, 'service.env'), '');
      chmodSync(join(folder.path, 'service.env'), modeOfFile);
      mkdirSync(join(folder.path, 'data'), { mode: modeOfFolder });
    };

    it('name the env file, the data folder and the configuration file, each with its remedy', () => {
      makeBoth(0o640, 0o755);
      const path = join(folder.path, 'service.config.json');
      writeFileSync(path, '{}');
      chmodSync(path, 0o644);
      const [env, data] = [join(folder.path, 'service.env'), join(folder.path, 'data')];
      expect(warningsOf({ SERVICE_CONFIG: path })).to.have.members([
        `ENV_FILE: others can read ${env} (mode 640), which holds secrets: run \`chmod 600 ${env}\``,
        `SERVICE_CONFIG: others can read ${path} (mode 644), which may hold secrets: ` +
          `run \`chmod 600 ${path}\``,
        `DATA_DIR: others can look into ${data} (mode 755): run \`chmod 700 ${data}\``,
      ]);
    });

    it('are absent for private files, for files that do not exist yet, and with PostgreSQL', () => {
      expect(warningsOf({ ENV_FILE: '/dev/null' })).to.deep.equal([]);
      makeBoth(0o600, 0o700);
      expect(warningsOf()).to.deep.equal([]);
      chmodSync(join(folder.path, 'data'), 0o755);
      expect(warningsOf({ DATABASE_URL: 'postgres://db.example/state' })).to.deep.equal([]);
    });
  });
});
