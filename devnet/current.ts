import { existsSync, readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { SECRET_MODE, writeFileAtomically } from '../cli/files/write-file';
import type { DevnetFacts } from './devnet';
import { isRunning } from './run-folder';

/** The file in which `npm run devnet` says what is running, for `tdoc operate` in the same folder. */
const FILE = '.devnet/current.json';

/** Writes the file. The result removes it, unless another devnet has written its own since. */
export function announce(facts: DevnetFacts): () => void {
  const file = resolve(FILE);
  writeFileAtomically(file, `${JSON.stringify({ pid: process.pid, ...facts }, null, 2)}\n`, SECRET_MODE);
  return () => {
    if (read(file)?.pid === process.pid) rmSync(file, { force: true });
  };
}

/** The devnet that runs in this folder. Undefined if there is none. */
export function currentDevnet(): DevnetFacts | undefined {
  const current = read(resolve(FILE));
  return current && isRunning(current.pid) ? current : undefined;
}

function read(file: string): (DevnetFacts & { pid: number }) | undefined {
  if (!existsSync(file)) return undefined;
  return JSON.parse(readFileSync(file, 'utf8')) as DevnetFacts & { pid: number };
}
