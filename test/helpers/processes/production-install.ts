import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PROJECT_ROOT } from '../../../service/base/project-root';

/** The files that the Dockerfile copies beside the packages. */
const COPIED = ['package.json', 'cli', 'contexts', 'dist'];

/**
 * Fills a folder like `npm ci --omit=dev` and the Dockerfile: it copies the build from the checkout, and the
 * packages that package-lock.json does not mark as development packages.
 */
export function installProduction(folder: string): void {
  for (const name of COPIED) cpSync(join(PROJECT_ROOT, name), join(folder, name), { recursive: true });
  const lock = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true; devOptional?: true; link?: true }>;
  };
  for (const [path, { dev, devOptional, link }] of Object.entries(lock.packages)) {
    if (!path.startsWith('node_modules/') || dev || devOptional) continue;
    if (link) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      symlinkSync('../cli', join(folder, path));
    } else copyFiles(join(PROJECT_ROOT, path), join(folder, path));
  }
}

/** The files of one package, without the packages inside it. */
function copyFiles(from: string, to: string): void {
  // Optional packages for other systems are not installed.
  if (!statSync(from, { throwIfNoEntry: false })) return;
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (entry.name === 'node_modules') continue;
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copyFiles(source, target);
    else copyFileSync(source, target);
  }
}
