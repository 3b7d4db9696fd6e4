import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { readDocument } from '../helpers/pages/markdown';

const run = promisify(execFile);

describe('reports of defects', () => {
  for (const name of ['di-sd-primitives-text-rewriting', 'ecdsa-sd-2023-duplicated-objects']) {
    it(`${name}: the program prints the output that the report shows`, async () => {
      const { code } = readDocument(`docs/reports/${name}.md`);
      const program = ['--input-type=module', '-e', code('Program', 'js')];
      const { stdout } = await run(process.execPath, program, { cwd: PROJECT_ROOT, timeout: 30_000 });
      expect(stdout).to.equal(code('What happens', 'text'));
    });
  }
});
