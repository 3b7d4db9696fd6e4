import { readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { expect } from 'chai';
import hre from 'hardhat';
import { TASK_TEST_GET_TEST_FILES } from 'hardhat/builtin-tasks/task-names';
import { scripts } from '../../package.json';
import { PROJECT_ROOT } from '../../service/base/project-root';

describe('npm test', () => {
  it('runs every test file once', async () => {
    expect(scripts.tests).to.equal('npm run --silent test:mocha && npm run --silent test:hardhat');
    expect(scripts['test:mocha']).to.equal('mocha --parallel "test/{unit,integration}/*.test.ts"');
    expect(scripts['test:hardhat']).to.equal('hardhat test --parallel');
    const files = readdirSync(join(PROJECT_ROOT, 'test'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => `test/${name.split(sep).join('/')}`);
    const ofMocha = files.filter((file) => /^test\/(unit|integration)\/[^/]*$/.test(file));
    const ofHardhat = ((await hre.run(TASK_TEST_GET_TEST_FILES, { testFiles: [] })) as string[]).map((file) =>
      relative(PROJECT_ROOT, file).split(sep).join('/'),
    );
    expect([...ofMocha, ...ofHardhat]).to.have.members(files);
  });
});
