import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import ts from 'typescript';
import { PROJECT_ROOT } from '../../service/base/project-root';

const FOLDERS = ['bench', 'cli', 'client', 'console', 'deploy', 'devnet', 'evidence', 'receiver', 'service'];

/** The project's files that each of its files imports, types included. */
function readImports(): Map<string, string[]> {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => join(folder, name)),
  );
  return new Map(
    files.map((file) => {
      const { importedFiles } = ts.preProcessFile(readFileSync(join(PROJECT_ROOT, file), 'utf8'));
      const paths = importedFiles.map(({ fileName }) => join(dirname(file), fileName));
      return [file, files.filter((other) => paths.includes(other.replace(/\.tsx?$/, '')))];
    }),
  );
}

/** The imports that are left when files without any, and files that nobody imports, are taken away. */
function circlesIn(imports: ReadonlyMap<string, readonly string[]>): [string, string[]][] {
  const left = new Map(imports);
  for (let size = -1; size !== left.size;) {
    size = left.size;
    const imported = new Set([...left.values()].flat());
    for (const [file, targets] of left)
      if (!imported.has(file) || !targets.some((target) => left.has(target))) left.delete(file);
  }
  return [...left].map(([file, targets]) => [file, targets.filter((target) => left.has(target))]);
}

describe('the imports', () => {
  it('form no circle, not even of types', () => {
    const imports = readImports();
    expect(imports.get('service/outbox/enqueue-stored.ts')).to.include('service/outbox/stored-events.ts');
    expect(circlesIn(imports)).to.deep.equal([]);
  });
});
