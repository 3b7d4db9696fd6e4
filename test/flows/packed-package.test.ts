import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { PUBLISHED_FILES } from '../../service/base/published-files';
import { inheritedEnvironment } from '../../service/config/config';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { eventually } from '../helpers/eventually';
import { readDocument } from '../helpers/pages/markdown';
import { isBundled } from '../helpers/processes/bundled-script';
import { ask } from '../helpers/processes/command-answer';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';

/** The name of this package. */
const PACKAGE = 'transferable-document-service';

(isBundled ? describe : describe.skip)('the packed package', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let cwd: string;

  before(() => {
    // Here, because a suite that is skipped removes nothing.
    folder = temporaryFolder();
    cwd = folder.path;
    cpSync(join(PROJECT_ROOT, 'examples/integration-test'), cwd, { recursive: true });
    installPackage(cwd, 'hardhat', 'mocha');
  });

  it('runs examples/integration-test', async () => {
    const mocha = join(cwd, 'node_modules/mocha/bin/mocha.js');
    const { code, stdout, stderr } = await ask(mocha, ['--timeout', '60000'], {}, { cwd });
    expect(code, stdout + stderr).to.equal(0);
    expect(stdout).to.contain('5 passing');
  });

  it('is the tarball that the example names, and has the documentation', () => {
    const { devDependencies } = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8')) as {
      devDependencies: Record<string, string>;
    };
    expect(existsSync(join(cwd, devDependencies[PACKAGE]?.replace('file:', '') ?? ''))).to.equal(true);
    expect(existsSync(join(cwd, 'node_modules', PACKAGE, 'docs/testing.md'))).to.equal(true);
  });

  it('has the command tdoc', async () => {
    const root = join(cwd, 'node_modules', PACKAGE);
    const { bin, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      bin: { tdoc: string };
      version: string;
    };
    const { code, stdout } = await ask(join(root, bin.tdoc), ['--version'], {}, { cwd });
    expect({ code, stdout }).to.deep.equal({ code: 0, stdout: `${version}\n` });
  });

  it('can be required from CommonJS', async () => {
    const { exports } = JSON.parse(
      readFileSync(join(cwd, 'node_modules', PACKAGE, 'package.json'), 'utf8'),
    ) as { exports: Record<string, string | object> };
    const names = Object.entries(exports).flatMap(([name, file]) =>
      typeof file === 'string' ? [] : `${PACKAGE}${name.slice(1)}`,
    );
    names.push(...Object.keys(PUBLISHED_FILES).map((file) => `${PACKAGE}/contexts/${file}`));
    const program = `for (const name of ${JSON.stringify(names)})
  console.log(Object.keys(require(name)).length > 0);`;
    writeFileSync(join(cwd, 'require.cjs'), program);
    const { stdout, stderr } = await ask(join(cwd, 'require.cjs'), [], {}, { cwd });
    expect(stdout, stderr).to.equal('true\n'.repeat(names.length));
  });

  describe('does what docs/package.md shows', () => {
    const { code } = readDocument('docs/package.md');
    let local: LocalSetup;
    let service: RunningService;
    let port: number;
    let receiverUrl: string;

    before(async () => {
      port = await freePort(0);
      receiverUrl = `http://127.0.0.1:${port}/`;
      const PORT = String(await freePort(0));
      local = await createLocalSetup({ domain: `localhost:${PORT}` });
      service = await startService({ ...local.settings, PORT, WEBHOOK_URL: receiverUrl });
    });

    /** Writes a program of the page into the project. */
    function write(name: string, program: string): string {
      const file = join(cwd, name);
      const here = program
        .replaceAll('http://127.0.0.1:3000', service.url)
        .replace('listen(4000)', `listen(${port})`);
      writeFileSync(file, here);
      return file;
    }

    it('in ES modules', async () => {
      const receiver = spawn(process.execPath, [write('receiver.mjs', code('Deliveries', 'js'))], {
        cwd,
        env: inheritedEnvironment(),
      });
      stopLater('the receiver of docs/package.md', () => receiver.kill());
      let received = '';
      for (const output of [receiver.stdout, receiver.stderr])
        output.setEncoding('utf8').on('data', (text: string) => (received += text));
      const issuer = write(
        'issuer.mjs',
        `${code('The client', 'js')}
const credential = data;
${code('Credentials', 'js')}
console.log(outcome, documentIntegrity.outcome, issuerIdentity.outcome, documentStatus.outcome);
console.log(shown.credentialSubject.blNumber, shown.credentialSubject.scac);
${code('Subjects', 'js')}
import { startDevnet } from 'transferable-document-service/devnet';
console.log(typeof startDevnet);`,
      );
      const { stdout, stderr } = await ask(issuer, [], { RPC_URL: local.node.url }, { cwd });
      const [first = '', ...lines] = stdout.trimEnd().split('\n');
      expect(first, stderr).to.match(/^[0-9a-f]{64} 0x[0-9a-f]{64}$/);
      expect(lines).to.deep.equal([
        'valid valid valid valid',
        'SGCNM21566325 undefined',
        '/blNumber VALUE_TYPE_WRONG Must be a string',
        'function',
      ]);
      const tokenId = BigInt(`0x${first.slice(0, 64)}`).toString();
      await eventually('five deliveries', () => received.split(`${tokenId}\n`).length === 6);
      expect(received).to.contain(`com.service.etr.minted ${tokenId}\n`);
      const changed = await fetch(receiverUrl, { method: 'POST', body: '{}' });
      expect(changed.status).to.equal(401);
    });
  });
});

/**
 * Installs the packed tarball of the build into the `node_modules` of a folder, without the network: its
 * production dependencies, and the named packages, are links to those of this project.
 */
function installPackage(folder: string, ...others: string[]): void {
  // The type declarations take seconds.
  const args = [join(PROJECT_ROOT, 'cli/package.cjs'), '--without-types', folder];
  execFileSync(process.execPath, args);
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
  const target = join(folder, 'node_modules', PACKAGE);
  mkdirSync(target, { recursive: true });
  execFileSync('tar', ['-xzf', join(folder, tarball), '-C', target, '--strip-components=1']);
  const { dependencies } = JSON.parse(readFileSync(join(target, 'package.json'), 'utf8')) as {
    dependencies: object;
  };
  for (const name of [...Object.keys(dependencies), ...others]) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(PROJECT_ROOT, 'node_modules', name), link, 'junction');
  }
}
