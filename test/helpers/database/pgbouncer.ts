import { chownSync, existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../../devnet/place';
import { inheritedEnvironment } from '../../../service/config/config';
import { eventually } from '../eventually';
import { owned } from '../resources';
import { newFolderOfServer, serve } from './postgres';

/** Debian's folder of servers is not in the PATH of every account. */
const FOLDERS = [...(inheritedEnvironment().PATH ?? '').split(delimiter), '/usr/sbin'];

/** A PgBouncer in front of a database. */
export interface Pooler extends AsyncDisposable {
  /** The value for DATABASE_URL. */
  url: string;
  stop(): void;
}

/**
 * Starts PgBouncer in front of a database. If it is not installed, this is printed and the result is
 * undefined.
 *
 * @param settings of pgbouncer.ini, such as `pool_mode`.
 */
export async function startPgBouncer(
  databaseUrl: string,
  settings: Readonly<Record<string, string | number>>,
): Promise<Pooler | undefined> {
  const program = FOLDERS.map((folder) => join(folder, 'pgbouncer')).find((path) => existsSync(path));
  if (program === undefined) {
    console.log('PgBouncer is not installed: what needs it is skipped.');
    return undefined;
  }
  const { hostname, port, username, password } = new URL(databaseUrl);
  const options = await newFolderOfServer();
  const url = new URL(databaseUrl);
  url.port = String(await freePort(0));
  const own = { listen_addr: '127.0.0.1', listen_port: url.port, unix_socket_dir: '' };
  const access = { auth_type: 'plain', auth_file: 'users.txt', ignore_startup_parameters: '' };
  const files = {
    'users.txt': `"${username}" "${password}"\n`,
    'pgbouncer.ini': [
      '[databases]',
      `* = host=${hostname} port=${port}`,
      '[pgbouncer]',
      ...Object.entries({ ...own, ...access, ...settings }).map(([name, value]) => `${name} = ${value}`),
      '',
    ].join('\n'),
  };
  for (const [name, content] of Object.entries(files)) {
    const path = join(options.cwd, name);
    writeFileSync(path, content, { mode: 0o600 });
    if (options.uid !== undefined && options.gid !== undefined) chownSync(path, options.uid, options.gid);
  }
  const server = serve([program, 'pgbouncer.ini'], options);
  await eventually('PgBouncer answers', async () => {
    if (/FATAL/.test(server.output())) throw new Error(server.output());
    const client = new Client({ connectionString: url.href });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return true;
    } catch {
      return undefined;
    } finally {
      await client.end();
    }
  });
  return owned(`PgBouncer at ${url.host}`, { url: url.href, stop: server.stop }, 'stop');
}
