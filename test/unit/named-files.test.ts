import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PROJECT_ROOT } from '../../service/base/project-root';

const FOLDERS = ['cli', 'client', 'deploy', 'devnet', 'receiver', 'service', 'test'];

/** The sources that a text names: `service/chain/fees.ts`, `fees.ts`. */
function namedIn(text: string): string[] {
  return [...text.matchAll(/`([\w./-]+\.(?:tsx?|cjs))`/g)].map(([, name = '']) => name);
}

describe('the files that CONTRIBUTING.md and docs/architecture.md name', () => {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(folder, name),
    ),
  );

  for (const page of ['CONTRIBUTING.md', 'docs/architecture.md'])
    it(`exist: ${page}`, () => {
      const named = namedIn(readFileSync(join(PROJECT_ROOT, page), 'utf8'));
      const missing = named.filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)));
      expect(named).to.not.have.length(0);
      expect(missing).to.deep.equal([]);
    });
});
