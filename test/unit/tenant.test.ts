import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../service/config/config';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { commandHint, tenantFilesOf, tenantOf } from '../../service/config/tenant';
import { temporaryFolder } from '../helpers/temporary-folder';

describe('the files of a tenant', () => {
  const folder = temporaryFolder();
  const filesOf = (envFile: string): string[] =>
    Object.values<string>({ ...tenantFilesOf(tenantOf(envFile)) });
  const atTop = (...names: string[]): string[] => names.map((name) => join(PROJECT_ROOT, name));

  it('are at the project root for .env, and for settings that are in no file', () => {
    const files = atTop('did.json', '.data', 'service.config.json', 'webhook-public-key.pem');
    expect(filesOf(join(PROJECT_ROOT, '.env'))).to.deep.equal(files);
    expect(filesOf(devNull)).to.deep.equal(files);
  });

  it('are beside any other env file, prefixed with its name and ignored by git', function () {
    const paths: string[] = [];
    const names = ['did.json', 'data', 'service.config.json', 'webhook-public-key.pem'];
    for (const [envFile, prefix] of [
      ['tenants/a.env', 'tenants/a'],
      ['.env.acme', 'acme'],
      ['elsewhere/b.env', 'elsewhere/b'],
    ] as const) {
      const files = atTop(...names.map((name) => `${prefix}.${name}`));
      expect(filesOf(join(PROJECT_ROOT, envFile))).to.deep.equal(files);
      paths.push(envFile, ...files.map((file) => (file.endsWith('.data') ? `${file}/state.sqlite` : file)));
    }
    // An unpacked archive has no .git.
    if (!existsSync(join(PROJECT_ROOT, '.git'))) return this.skip();
    const ignored = execFileSync('git', ['check-ignore', ...paths], { cwd: PROJECT_ROOT, encoding: 'utf8' });
    expect(ignored.trim().split('\n')).to.deep.equal(paths);
  });

  it('are distinct for every env file, even with special characters in its name', () => {
    const names = ['ü.env', 'ö.env', 'a b.env', 'a-b.env', 'a.b.env', '-a-b.env', '.env.b'];
    const files = names.map((name) => filesOf(join(folder.path, name)));
    expect(new Set(files.flat()).size).to.equal(files.flat().length);
    expect(files[0]).to.include(join(folder.path, 'ü.did.json'));
    for (const name of names) expect(tenantOf(join(folder.path, name)).key).to.match(/^[\w-]+-[0-9a-f]{8}$/);
  });

  it('are used by the service unless a setting names others', () => {
    const envFile = join(folder.path, 'a.env');
    writeFileSync(envFile, 'NET=31337\n');
    writeFileSync(join(folder.path, 'a.service.config.json'), '{"registries": 1}');
    expect(() => loadConfig({ ENV_FILE: envFile })).to.throw('a.service.config.json');
    writeFileSync(join(folder.path, 'a.service.config.json'), '{}');
    expect(loadConfig({ ENV_FILE: envFile })).to.include({
      dataDir: join(folder.path, 'a.data'),
      didDocumentPath: join(folder.path, 'a.did.json'),
    });
    const own = { DATA_DIR: 'state', DID_DOCUMENT_PATH: 'public/did.json' };
    expect(loadConfig({ ENV_FILE: envFile, ...own })).to.include({
      dataDir: join(PROJECT_ROOT, 'state'),
      didDocumentPath: join(PROJECT_ROOT, 'public/did.json'),
    });
  });

  it('are selected by ENV_FILE, quoted for the shell, as a hint tells', () => {
    const hint = (file: string): string | undefined => commandHint(join(PROJECT_ROOT, file));
    expect(hint('.env')).to.equal(undefined);
    expect(commandHint(devNull)).to.equal(undefined);
    expect(hint('tenants/a.env')).to.equal(
      'Run commands for this tenant with its ENV_FILE: ENV_FILE=tenants/a.env npx tdoc …',
    );
    const odd = `it's "a\\b" $HOME.env`;
    const [, word = ''] = / ENV_FILE=(.*) npx tdoc/.exec(hint(odd) ?? '') ?? [];
    expect(execFileSync('sh', ['-c', `printf %s ${word}`], { encoding: 'utf8' })).to.equal(odd);
    expect(hint('my tenants/$&.env')).to.contain(" ENV_FILE='my tenants/$&.env' npx tdoc …");
    expect(commandHint('/etc/etr/a.env')).to.contain(' ENV_FILE=/etc/etr/a.env npx tdoc …');
  });
});
