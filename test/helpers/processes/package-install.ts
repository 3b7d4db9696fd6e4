import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PROJECT_ROOT } from '../../../service/base/project-root';

/** The name of this package. */
export const PACKAGE = 'transferable-document-service';

/** The dependencies in a package.json. */
interface Manifest {
  dependencies: Record<string, string>;
}

/**
 * Installs the packed tarball of the build into the `node_modules` of a folder, without the network: its
 * production dependencies, and the named packages, are links to those of this project.
 */
export function installPackage(folder: string, ...others: string[]): void {
  // The type declarations take seconds.
  const args = [join(PROJECT_ROOT, 'cli/package.cjs'), '--without-types', folder];
  execFileSync(process.execPath, args);
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
  const target = join(folder, 'node_modules', PACKAGE);
  mkdirSync(target, { recursive: true });
  execFileSync('tar', ['-xzf', join(folder, tarball), '-C', target, '--strip-components=1']);
  const { dependencies } = JSON.parse(readFileSync(join(target, 'package.json'), 'utf8')) as Manifest;
  for (const name of [...Object.keys(dependencies), ...others]) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(PROJECT_ROOT, 'node_modules', name), link, 'junction');
  }
}
