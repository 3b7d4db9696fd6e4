import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { requirePointers, requireUrls } from '../../cli/credentials/verify-and-derive';
import type { CommandAnswer } from '../helpers/processes/command-answer';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { temporaryFolder } from '../helpers/temporary-folder';

describe('tdoc', () => {
  const folder = temporaryFolder();
  const file = (name: string): string => join(folder.path, name);
  const ask = (args: string[], settings: Record<string, string> = {}): Promise<CommandAnswer> =>
    askTdocInProcess(args, { ENV_FILE: file('none.env'), ...settings });

  it('lists its commands and its exit codes with --help, and its version with --version', async () => {
    expect((await ask(['--version'])).stdout).to.match(/^\d+\.\d+\.\d+\n$/);
    const { code, stdout } = await ask(['--help']);
    expect(code).to.equal(0);
    for (const name of ['setup', 'service', 'receiver', 'token', 'redeliver', 'purge-events'])
      expect(stdout).to.match(new RegExp(`^  ${name} `, 'm'));
    expect(stdout).to.contain('Exit codes: 0');
  });

  it('shows arguments and an example of every command with --help', async () => {
    const { stdout } = await ask(['--help']);
    const names = [...stdout.matchAll(/^ {2}([a-z][a-z-]+)(?= )/gm)].map(([, name]) => name ?? '');
    const others = ['help', 'service', 'receiver', 'devnet', 'role', 'registries'];
    const own = names.filter((name) => !others.includes(name));
    expect(own).to.have.length.greaterThan(12);
    const roles = ['grant', 'revoke', 'list'].map((name) => `role ${name}`);
    const registries = ['list', 'add', 'remove'].map((name) => `registries ${name}`);
    for (const words of [...own, ...roles, ...registries]) {
      const help = await ask([...words.split(' '), '--help']);
      expect(help.code, words).to.equal(0);
      expect(help.stdout).to.contain(`$ npx tdoc ${words}`);
    }
  });

  for (const [what, args, problem] of [
    ['a command that it does not have', ['tokn'], /unknown command 'tokn'[^]*Did you mean token\?/],
    ['an option that the command does not have', ['token', '1', '--al'], /unknown option '--al'/],
    ['a missing argument', ['token'], /missing required argument 'token'/],
    ['one argument too many', ['token', '1', '2'], /too many arguments/],
    ['a missing option', ['role', 'grant', '--role', 'minter'], /required option '--account <address>'/],
    ['a registry to add without an address', ['registries', 'add'], /required option '--registry <address>'/],
    ['a block that is not a number', ['redeliver', '--from-block', '-1'], /--from-block.*whole number/],
  ] as const) {
    it(`exits with 2 and explains ${what}`, async () => {
      const { code, stdout, stderr } = await ask([...args]);
      expect({ code, stdout }, stderr).to.deep.equal({ code: 2, stdout: '' });
      expect(stderr).to.match(problem);
      expect(stderr).not.to.match(/\n +at /);
    });
  }

  it('takes only JSON pointers after --reveal, and only URLs after --trust-context', () => {
    expect(requirePointers(['', '/a b,c'])).to.deep.equal(['', '/a b,c']);
    expect(() => requirePointers(['/a', 'scac'])).to.throw('"scac" is not a JSON pointer');
    expect(() => requireUrls(['https://a.example/', 'b'])).to.throw('"b" is not a URL');
  });

  it('tells programs a bounded part of an argument that it refuses', async () => {
    const long = 'é'.repeat(100_000);
    const { stdout } = await ask(['verify-credential', 'a', '--json', '--trust-context', long]);
    expect(stdout)
      .to.match(/"--trust-context: .*is not a URL\."/)
      .and.have.length.below(3_000);
  });

  for (const [what, code] of [
    ['missing', 'DATABASE_MISSING'],
    ['damaged', 'DATABASE_DAMAGED'],
  ] as const)
    it(`names a ${what} database in every command that opens one`, async () => {
      const settings = { NET: '31337', DOMAIN: 'carrier.example', DATA_DIR: file(what) };
      const TOKEN_REGISTRY_ADDRESS = `0x${'5b'.repeat(20)}`;
      if (what === 'damaged') {
        mkdirSync(settings.DATA_DIR);
        writeFileSync(join(settings.DATA_DIR, 'state.sqlite'), 'no database at all\n'.repeat(1_000));
      }
      for (const words of [
        'deliveries',
        'redeliver --dead',
        'subscriptions list',
        'subscriptions deliveries default',
        'registries list',
        'purge-documents --older-than 1',
        'purge-events --older-than 1',
      ]) {
        const answer = await ask(words.split(' '), { ...settings, TOKEN_REGISTRY_ADDRESS });
        expect(answer, words).to.include({ code: 2, stdout: '' });
        expect(answer.stderr, words).to.contain(`[${code}]`).and.contain(settings.DATA_DIR);
      }
    });

  describe('setup', () => {
    const envFile = file('carrier.env');
    const settings = { ENV_FILE: envFile };

    it('asks for DOMAIN first, and makes nothing without it', async () => {
      writeFileSync(envFile, 'NET=31337\n');
      const { code, stderr } = await ask(['setup'], settings);
      expect(code).to.equal(2);
      expect(stderr).to.match(/DOMAIN is not set.*NOT_CONFIGURED/);
      expect(existsSync(file('carrier.webhook-public-key.pem'))).to.equal(false);
    });

    it('makes both keys, and names missing settings with their commands and this env file', async () => {
      writeFileSync(envFile, 'NET=31337\nDOMAIN=carrier.example\n');
      const { code, stdout, stderr } = await ask(['setup'], settings);
      expect(code, stderr).to.equal(0);
      const registry = 'TOKEN_REGISTRY_ADDRESS: `npx hardhat deploy`';
      for (const said of [
        'did:web:carrier.example',
        'carrier.webhook-public-key.pem',
        registry,
        'WEBHOOK_URL',
      ])
        expect(stdout).to.contain(said);
      expect(stderr).to.match(/ENV_FILE=\S+carrier\.env npx tdoc …/);
      expect(readFileSync(envFile, 'utf8'))
        .to.match(/^DID_KEY_PAIRS=/m)
        .and.match(/^SIGNING_PRIVATE_KEY=/m);
    });

    it('answers with one JSON object after --json, and explains on standard error', async () => {
      const { stdout, stderr } = await ask(['setup', '--json'], settings);
      const { didKey, signingKey, missing } = JSON.parse(stdout) as {
        didKey: object;
        signingKey: object;
        missing: { setting: string }[];
      };
      expect(didKey).to.include({ key: 'kept', isPublicFileWritten: false });
      expect(signingKey).to.include({ key: 'kept', isPublicFileWritten: false });
      expect(missing.map(({ setting }) => setting)).to.deep.equal([
        'WALLET_PRIVATE_KEY',
        'TOKEN_REGISTRY_ADDRESS',
        'WEBHOOK_URL',
      ]);
      expect(stderr).to.contain('did:web:carrier.example');
    });

    it('changes nothing the second time, and names the next step when nothing is missing', async () => {
      const more = `TOKEN_REGISTRY_ADDRESS=0x${'5b'.repeat(20)}\nWEBHOOK_URL=https://s.example/\n`;
      appendFileSync(envFile, `${more}WALLET_PRIVATE_KEY=0x${'11'.repeat(32)}\n`);
      const before = readFileSync(envFile, 'utf8');
      const { code, stdout } = await ask(['setup'], settings);
      expect(code).to.equal(0);
      expect(stdout).to.contain('Nothing is missing. Next: `npx tdoc service`.');
      expect(readFileSync(envFile, 'utf8')).to.equal(before);
    });

    it('names the key of the network’s node, and takes the webhook of service.config.json', async () => {
      const SERVICE_CONFIG = file('webhook.config.json');
      writeFileSync(SERVICE_CONFIG, JSON.stringify({ webhook: { url: 'https://s.example/' } }));
      const missing = async (more: Record<string, string>): Promise<string[]> => {
        const changed = { ...settings, SERVICE_CONFIG, WEBHOOK_URL: '', NET: 'amoy', ...more };
        const { stdout } = await ask(['setup', '--json'], changed);
        const told = JSON.parse(stdout) as { missing: { setting: string }[] };
        return told.missing.map(({ setting }) => setting);
      };
      expect(await missing({})).to.deep.equal(['PROVIDER_API_KEY']);
      expect(await missing({ RPC_URL: 'https://node.example/' })).to.deep.equal([]);
      expect(await missing({ PROVIDER_API_KEY: 'the-key-of-the-provider' })).to.deep.equal([]);
    });
  });
});
