import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { buildSync, type BuildOptions } from 'esbuild';
import { PROJECT_ROOT } from '../../../service/base/project-root';
import { owned } from '../resources';

const { OPTIONS } = createRequire(__filename)('../../../cli/bundle.cjs') as { OPTIONS: BuildOptions };

/** Whether the build is the one that is packed: `npm run coverage` builds without bundling. */
export const isBundled = !existsSync(join(PROJECT_ROOT, 'dist/service/base'));

/**
 * Bundles a script as the programs are built, so that its process loads as fast. Its imports are relative to
 * the project's root.
 */
export function bundledScript(contents: string): { path: string; remove: () => void } & AsyncDisposable {
  // Inside the project, where the packages are found that are not bundled.
  const folder = join(PROJECT_ROOT, 'node_modules/.cache/test-scripts');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${randomUUID()}.js`);
  buildSync({
    ...OPTIONS,
    stdin: { contents, resolveDir: PROJECT_ROOT, loader: 'ts' },
    outfile: path,
  });
  return owned(path, { path, remove: () => rmSync(path) }, 'remove');
}
