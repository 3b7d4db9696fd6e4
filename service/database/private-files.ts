import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';

const PRIVATE_MODE = 0o600;
/** Suffixes of the files that SQLite keeps beside a database. It creates them with the database's mode. */
const BESIDE = ['-wal', '-shm', '-journal'];

/**
 * Makes a database's files readable by their owner only. A missing database is created empty, because SQLite
 * would create it with the mode that the umask leaves.
 */
export function makePrivate(path: string): void {
  // An existing file is not opened: closing it would release the locks that this process holds on it.
  if (!existsSync(path)) closeSync(openSync(path, 'a', PRIVATE_MODE));
  for (const file of [path, ...BESIDE.map((ending) => path + ending)])
    if (existsSync(file)) chmodSync(file, PRIVATE_MODE);
}
