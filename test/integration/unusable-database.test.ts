import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { Client } from 'pg';
import Sqlite from 'libsql';
import { systemTime } from '../../service/base/time';
import type { Database } from '../../service/database/database';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { openSqlite, openSqliteBesideService } from '../../service/database/open-sqlite';
import { POSTGRES_PASSWORD, postgresDatabase } from '../helpers/database/postgres';
import { ENGINES, newState, openState, type State } from '../helpers/database/engines';
import { errorOf } from '../helpers/error-of';
import { temporaryFolder } from '../helpers/temporary-folder';

/** An account without rights. */
const NOBODY = 65_534;
const PAGE = 4_096;

const openOfService = (folder: string): Promise<Database> => openSqlite(folder, { time: systemTime });
const openOfCommand = (folder: string): Promise<Database> => openSqliteBesideService(systemTime, folder);

describe('a database that cannot be opened', () => {
  let root: string;
  let folder: string;

  beforeEach(async () => {
    root = temporaryFolder().path;
    folder = join(root, 'data');
    await (await openOfService(folder)).close();
  });

  /** The database without its write-ahead log. */
  function wholeFile(): Buffer {
    const path = join(folder, 'state.sqlite');
    const file = new Sqlite(path);
    file.pragma('wal_checkpoint(TRUNCATE)');
    file.close();
    return readFileSync(path);
  }

  /** Both the service and a command report the same. */
  async function expectRefused(code: string, path: string, dataDir = folder): Promise<void> {
    for (const open of [openOfService, openOfCommand]) {
      const error = await errorOf(openAndClose(open, dataDir));
      expect(error, open.name).to.include({ name: 'ConfigurationError', code });
      expect(error.message, open.name).to.include(path).and.include(String(error.remedy));
    }
  }

  const DAMAGES: Readonly<Record<string, (content: Buffer) => Buffer | string>> = {
    'is not a database': () => 'no database at all\n'.repeat(1_000),
    'has another header': (content) => Buffer.concat([Buffer.alloc(PAGE, 1), content.subarray(PAGE)]),
    'is cut off': (content) => content.subarray(0, 2 * PAGE),
    'has pages of rubbish': (content) =>
      Buffer.concat([content.subarray(0, PAGE), Buffer.alloc(50 * PAGE, 7)]),
  };
  for (const [what, damage] of Object.entries(DAMAGES))
    it(`is named with its path and a remedy if it ${what}`, async () => {
      const copy = join(root, 'copy', 'state.sqlite');
      mkdirSync(dirname(copy));
      writeFileSync(copy, damage(wholeFile()));
      await expectRefused('DATABASE_DAMAGED', copy, dirname(copy));
    });

  it('is named with its folder and a remedy if a folder has its name, or it is below a file', async () => {
    const [other, below] = [join(root, 'other'), join(root, 'file', 'data')];
    mkdirSync(join(other, 'state.sqlite'), { recursive: true });
    writeFileSync(join(root, 'file'), '');
    for (const dataDir of [other, below]) await expectRefused('DATA_DIR_UNUSABLE', dataDir, dataDir);
  });

  for (const [what, path] of Object.entries({ folder: '', file: 'state.sqlite', lock: 'service.lock' }))
    it(`is named with its folder and a remedy if the ${what} belongs to somebody else`, async function () {
      if (process.geteuid?.() !== 0) return this.skip();
      for (const one of [root, folder]) chmodSync(one, one === folder && what !== 'folder' ? 0o777 : 0o755);
      for (const name of ['state.sqlite', 'service.lock']) chmodSync(join(folder, name), 0o666);
      chmodSync(join(folder, path), 0o555);
      process.seteuid?.(NOBODY);
      try {
        const error = await errorOf(openAndClose(openOfService, folder));
        expect(error).to.include({ name: 'ConfigurationError', code: 'DATA_DIR_UNUSABLE' });
        expect(error.message).to.include(folder).and.include(String(error.remedy));
      } finally {
        process.seteuid?.(0);
      }
    });
});

for (const engine of ENGINES)
  describe(`a database of a newer version on ${engine}`, () => {
    let state: State | undefined;

    before(async function () {
      state = await newState(engine);
      if (state === undefined) return this.skip();
      const database = await openState(state);
      await database.db
        .withTables<{ kysely_migration: { name: string; timestamp: string } }>()
        .insertInto('kysely_migration')
        .values({ name: '9999-of-tomorrow', timestamp: new Date().toISOString() })
        .execute();
      await database.close();
    });

    it('is opened neither by the service nor by a command, which name where it is', async () => {
      if (state === undefined) return;
      const { DATA_DIR: dataDir, DATABASE_URL: databaseUrl } = state.settings;
      const place = databaseUrl === undefined ? join(dataDir, 'state.sqlite') : new URL(databaseUrl).host;
      for (const open of [
        () => openState(state as State),
        () => openDatabaseBesideService(systemTime, { dataDir, databaseUrl }),
      ]) {
        const { name, code, message } = await errorOf(openAndClose(open, ''));
        expect({ name, code }).to.deep.equal({ name: 'ConfigurationError', code: 'DATABASE_NEWER' });
        expect(message)
          .to.include(place)
          .and.include('9999-of-tomorrow')
          .and.match(/restore a backup/);
      }
    });
  });

describe('a PostgreSQL that the service cannot use', () => {
  let own: string;

  /** A new database, in which these statements were run. */
  async function database(...statements: string[]): Promise<string | undefined> {
    const url = (await postgresDatabase())?.url;
    if (url === undefined) return undefined;
    own = new URL(url).pathname.slice(1);
    const client = new Client({ connectionString: url });
    await client.connect();
    for (const statement of statements) await client.query(statement.replaceAll('OWN', own));
    await client.end();
    return url;
  }

  const openings = (databaseUrl: string) => [
    () => openState({ settings: { DATA_DIR: '', DATABASE_URL: databaseUrl } }),
    () => openDatabaseBesideService(systemTime, { dataDir: '', databaseUrl }),
  ];
  const as = (url: string, user: string): string => {
    const changed = new URL(url);
    changed.username = encodeURIComponent(user);
    return changed.href;
  };

  it('is named with the grant that its role needs, before anything was made there', async function () {
    const url = await database(
      `create role "Own-er_OWN" login password '${POSTGRES_PASSWORD}'`,
      'revoke create on schema public from public',
    );
    if (url === undefined) return this.skip();
    const role = `Own-er_${own}`;
    const grant = `GRANT USAGE, CREATE ON SCHEMA public TO "${role}";`;
    for (const open of openings(as(url, role))) {
      const error = await errorOf(open());
      expect(error).to.include({
        code: 'MIGRATION_FAILED',
        remedy: `Let the owner of the database run: ${grant}`,
      });
      expect(error.message).to.contain(grant).and.not.to.contain(POSTGRES_PASSWORD);
    }
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(grant);
    await client.end();
    for (const open of openings(as(url, role))) await (await open()).close();
  });

  it('is named as read-only', async function () {
    const url = await database('alter database OWN set default_transaction_read_only = on');
    if (url === undefined) return this.skip();
    for (const open of openings(url))
      expect(await errorOf(open())).to.include({ code: 'DATABASE_READ_ONLY', name: 'ServiceError' });
  });

  it('is named with the sslmode that it needs if it has no TLS', async function () {
    const url = await database();
    if (url === undefined) return this.skip();
    for (const open of openings(`${url}?sslmode=verify-full`)) {
      const error = await errorOf(open());
      expect(error).to.have.property('code', 'DATABASE_UNREACHABLE');
      expect(error.message).to.contain('write sslmode=disable').and.contain('does not support SSL');
    }
  });
});

async function openAndClose(open: (dataDir: string) => Promise<Database>, dataDir: string): Promise<void> {
  await (await open(dataDir)).close();
}
