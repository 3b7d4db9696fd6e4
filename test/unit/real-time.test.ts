import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PROJECT_ROOT } from '../../service/base/project-root';

it('CONTRIBUTING.md says how many parts of the tests need real time', () => {
  const [, told] = /There are (\d+) of\s+them/.exec(textOf('CONTRIBUTING.md')) ?? [];
  const files = readdirSync(join(PROJECT_ROOT, 'test'), { recursive: true, encoding: 'utf8' });
  const reasons = files
    .filter((file) => file.endsWith('.ts') && !file.endsWith('real-time.test.ts'))
    .flatMap((file) => textOf(join('test', file)).match(/ -- real time: \w/g) ?? []);
  expect(Number(told)).to.equal(reasons.length);
});

function textOf(file: string): string {
  return readFileSync(join(PROJECT_ROOT, file), 'utf8');
}
