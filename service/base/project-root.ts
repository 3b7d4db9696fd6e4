import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The project's top folder, found from this file whether it runs from the sources or from `dist/`. */
export const PROJECT_ROOT = findProjectRoot(__dirname);

function findProjectRoot(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder;
  const parent = dirname(folder);
  if (parent === folder) throw new Error('package.json not found in any folder above the service');
  return findProjectRoot(parent);
}

/** The name and the version of the package. */
export function readPackage(): { name: string; version: string } {
  const text = readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8');
  return JSON.parse(text) as { name: string; version: string };
}
