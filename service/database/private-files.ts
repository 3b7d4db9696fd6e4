import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';

const PRIVATE_MODE = 0o600;
/** Endings of files that SQLite keeps beside a database. It makes them with the database's own mode. */
const BESIDE = ['-wal', '-shm', '-journal'];

/**
 * Makes a database's files readable by their owner only, whoever may look into their folder. One that is not
 * there is made empty: SQLite would make it with the mode that the process's umask leaves.
 */
export function makePrivate(path: string): void {
  // Never opened when it exists: closing it would end the locks that this process has on it.
  if (!existsSync(path)) closeSync(openSync(path, 'a', PRIVATE_MODE));
  for (const file of [path, ...BESIDE.map((ending) => path + ending)])
    if (existsSync(file)) chmodSync(file, PRIVATE_MODE);
}
