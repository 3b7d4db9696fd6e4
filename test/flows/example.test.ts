import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { ask } from '../helpers/processes/command-answer';
import { installPackage, PACKAGE } from '../helpers/processes/package-install';
import { temporaryFolder } from '../helpers/temporary-folder';

describe('examples/integration-test', () => {
  const folder = temporaryFolder();
  const cwd = folder.path;

  before(() => {
    cpSync(join(PROJECT_ROOT, 'examples/integration-test'), cwd, { recursive: true });
    installPackage(cwd, 'hardhat', 'mocha');
  });

  after(() => folder.remove());

  it('passes with the packed tarball', async () => {
    const mocha = join(cwd, 'node_modules/mocha/bin/mocha.js');
    const { code, stdout, stderr } = await ask(mocha, ['--timeout', '60000'], {}, { cwd });
    expect(code, stdout + stderr).to.equal(0);
    expect(stdout).to.contain('5 passing');
  });

  it('has a package whose command and entry points exist', async () => {
    const root = join(cwd, 'node_modules', PACKAGE);
    const { bin, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      bin: { tdoc: string };
      version: string;
    };
    const { code, stdout } = await ask(join(root, bin.tdoc), ['--version'], {}, { cwd });
    expect({ code, stdout }).to.deep.equal({ code: 0, stdout: `${version}\n` });
    const script = join(cwd, 'entry-points.mjs');
    cpSync(join(PROJECT_ROOT, 'test/fixtures/entry-points.mjs'), script);
    const names = await ask(script, [], {}, { cwd });
    expect(names.stdout, names.stderr).to.equal(
      'createClient createVerifier deriveCredential startDevnet validateBillOfLading verifyCredential\n',
    );
  });
});
