import { execFile, spawn } from 'node:child_process';
import { chownSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { freePort } from '../../../devnet/place';
import { inheritedEnvironment } from '../../../service/config/config';
import { eventually } from '../eventually';
import { owned } from '../resources';
import { temporaryPath } from '../temporary-folder';

/** A new, empty database for one test. */
export interface PostgresDatabase extends AsyncDisposable {
  /** The value for DATABASE_URL. */
  url: string;
  /** Removes the database and ends its open connections. Tests do not wait for it. */
  drop(): void;
}

/** The server of this process. */
interface Cluster {
  urlOf: (database: string) => string;
}

type ChildOptions = { cwd: string; env: Record<string, string>; uid?: number; gid?: number };

/** The account that runs a server: PostgreSQL does not run as root. Undefined: that of the tests. */
type Account = { uid: number; gid: number } | undefined;

const run = promisify(execFile);
const DEBIAN_BINARIES = '/usr/lib/postgresql';
/** That of its user postgres. */
export const POSTGRES_PASSWORD = 'only-of-this-test-run';

/**
 * Serves until its standard input ends, and then removes the folder. The input ends with the process of the
 * tests, even if that is killed.
 */
const SERVE = '"$@" & server=$!; cat >/dev/null; kill -INT "$server"; wait "$server"; rm -rf "$PWD"';

let cluster: Promise<Cluster> | undefined;
let databases = 0;

/**
 * A new database in a real PostgreSQL server. The first call starts the server, which syncs to disk as in
 * production and ends with this process. If PostgreSQL is not installed, this is printed and the result is
 * undefined.
 */
export async function postgresDatabase(): Promise<PostgresDatabase | undefined> {
  const binaries = findBinaries();
  if (binaries === undefined) {
    console.log('PostgreSQL is not installed: what needs it is skipped.');
    return undefined;
  }
  cluster ??= startCluster(binaries);
  const { urlOf } = await cluster;
  const name = `test_${++databases}`;
  await execute(urlOf('postgres'), `create database ${name}`);
  const drop = (): void => void execute(urlOf('postgres'), `drop database ${name} with (force)`);
  return owned(`database ${name}`, { url: urlOf(name), drop }, 'drop');
}

/**
 * The folder with the programs of the server: one of PATH, or else the newest of Debian's packages.
 */
function findBinaries(): string | undefined {
  const versions = existsSync(DEBIAN_BINARIES) ? readdirSync(DEBIAN_BINARIES) : [];
  const newestFirst = versions.sort((a, b) => Number(b) - Number(a));
  const folders = [
    ...(inheritedEnvironment().PATH ?? '').split(delimiter),
    ...newestFirst.map((version) => join(DEBIAN_BINARIES, version, 'bin')),
  ];
  return folders.find((folder) => ['initdb', 'postgres'].every((name) => existsSync(join(folder, name))));
}

async function startCluster(binaries: string): Promise<Cluster> {
  const options = await newFolderOfServer();
  await initialise(binaries, options);

  const port = await freePort(0);
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=on'];
  const command = [join(binaries, 'postgres'), '-D', 'data', ...settings.flatMap((one) => ['-c', one])];
  const server = serve(command, options);
  const started: Cluster = {
    urlOf: (database: string) => `postgres://postgres:${POSTGRES_PASSWORD}@127.0.0.1:${port}/${database}`,
  };
  await eventually('PostgreSQL answers', () => {
    if (/FATAL:.*could not/.test(server.output())) throw new Error(server.output());
    return execute(started.urlOf('postgres'), 'select 1').then(
      () => true,
      () => undefined,
    );
  });
  return started;
}

/** A new folder that the account of servers owns. Whatever `serve` starts in it removes it at the end. */
export async function newFolderOfServer(): Promise<ChildOptions> {
  const path = temporaryPath();
  const account = await unprivilegedAccount();
  if (account) chownSync(path, account.uid, account.gid);
  return { cwd: path, env: inheritedEnvironment(), ...account };
}

/** Creates the files of an empty server in the folder `data`, with one user, postgres, and a password. */
async function initialise(binaries: string, options: ChildOptions): Promise<void> {
  const passwordFile = join(options.cwd, 'password');
  writeFileSync(passwordFile, POSTGRES_PASSWORD, { mode: 0o644 });
  const layout = ['--pgdata', 'data', '--encoding', 'UTF8', '--locale', 'C', '--no-sync'];
  const access = ['--username', 'postgres', '--auth', 'scram-sha-256', '--pwfile', passwordFile];
  await run(join(binaries, 'initdb'), [...layout, ...access], options);
}

/** Starts a server in its folder. `stop` ends it. */
export function serve(
  command: readonly string[],
  options: ChildOptions,
): { output(this: void): string; stop(this: void): void } {
  const server = spawn('sh', ['-c', SERVE, 'sh', ...command], {
    ...options,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [server.stdout, server.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-10_000)));
  }
  // The process of the tests must end although the server still runs.
  server.unref();
  for (const stream of [server.stdin, server.stdout, server.stderr]) (stream as Socket).unref();
  return { output: () => output, stop: () => server.stdin.destroy() };
}

/** An account other than root. */
async function unprivilegedAccount(): Promise<Account> {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all(['-u', '-g'].map((option) => run('id', [option, name])));
      return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
    } catch {
      // This machine has no such user.
    }
  }
  throw new Error('PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody.');
}

async function execute(connectionString: string, statement: string): Promise<void> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
