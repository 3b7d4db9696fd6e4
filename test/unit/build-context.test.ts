import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PROJECT_ROOT } from '../../service/base/project-root';

const textOf = (name: string): string => readFileSync(join(PROJECT_ROOT, name), 'utf8');
const patternsOf = (name: string): string[] =>
  textOf(name)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));

/**
 * The rules of .dockerignore, as far as this one uses them: a pattern also matches everything in a folder,
 * `*` stays within a name, `**` + `/` spans folders, and the last pattern that matches decides.
 */
const rules = patternsOf('.dockerignore').map((line) => {
  const source = line
    .replace(/^!/, '')
    .replace(/[.]/g, '\\.')
    .replace(/\*\*\/|\*/g, (stars) => (stars === '*' ? '[^/]*' : '(.*/)?'));
  return { isIncluded: line.startsWith('!'), pattern: new RegExp(`^${source}(/.*)?$`) };
});
const isSent = (path: string): boolean =>
  rules.findLast(({ pattern }) => pattern.test(path))?.isIncluded ?? true;

/** Private files: one for each pattern that git ignores. */
const PRIVATE = patternsOf('.gitignore')
  .filter((line) => !line.startsWith('!'))
  .map((line) => `${line.replaceAll('*', 'tenant')}${line.endsWith('/') ? 'x' : ''}`);

describe('the build context of the Dockerfile', () => {
  it('has nothing that git ignores, and no settings, keys or data inside its folders', () => {
    expect(PRIVATE).to.include.members(['.env', '.env.tenant', 'tenants/x', 'tenant.data/x', 'did.json']);
    const secret = PRIVATE.filter((path) => /env|json|pem|data|^\./.test(path));
    const nested = ['service', 'deploy'].flatMap((folder) => secret.map((path) => `${folder}/${path}`));
    const others = ['service.config.json', 'webhook-public-key.pem', '.git/config'];
    expect([...PRIVATE, ...nested, ...others].filter(isSent)).to.deep.equal([]);
  });

  it('has every source that the build reads and every file that the Dockerfile copies', () => {
    const [, sources = ''] = /SOURCES = \[([^\]]+)\]/.exec(textOf('cli/build-if-changed.cjs')) ?? [];
    const read = [...sources.matchAll(/'(.+)'/g)].map(([, name = '']) => name);
    const copies = textOf('Dockerfile').matchAll(/^COPY (?!--from|\. )(.+) \S+$/gm);
    const copied = [...copies].flatMap(([, names = '']) => names.split(' '));
    expect(read).to.include('service');
    expect(copied).to.include('contexts/').and.include('.npmrc');
    const needed = [...read, ...copied].map((name) => (/\.|\/$/.test(name) ? name : `${name}/main.ts`));
    expect(needed.filter((path) => !isSent(path))).to.deep.equal([]);
  });
});

describe('the Dockerfile', () => {
  it('has the Node.js of .nvmrc in both stages', () => {
    const images = [...textOf('Dockerfile').matchAll(/^FROM node:(\d+)-slim/gm)].map(([, major]) => major);
    const major = textOf('.nvmrc').trim();
    expect(images).to.deep.equal([major, major]);
  });
});
