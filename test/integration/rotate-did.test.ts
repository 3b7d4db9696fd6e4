import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { rotateDidKey } from '../../cli/keys/rotate-did';
import type { DidDocument } from '../../cli/keys/did-key';
import { withFileLock } from '../../cli/files/write-file';
import { parseDidKeyPair, type DidKeyPair } from '../../service/base/did-key-pair';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { inheritedEnvironment, readSettings } from '../../service/config/config';
import { eventually } from '../helpers/eventually';
import { askTdocInProcess, tdocInProcess } from '../helpers/processes/tdoc-in-process';
import { temporaryFolder } from '../helpers/temporary-folder';

describe('npx tdoc did --rotate and --revoke', () => {
  const folder = temporaryFolder();
  const envFile = join(folder.path, 'tenant.env');
  const didFile = join(folder.path, 'did.json');
  const settings = { ENV_FILE: envFile, DID_DOCUMENT_PATH: didFile, DOMAIN: 'localhost:3000' };
  const issuer = 'did:web:localhost%3A3000';
  const [key1, key2, key3] = [1, 2, 3].map((number) => `${issuer}#keys-${number}`) as [
    string,
    string,
    string,
  ];
  const did = (...args: string[]): Promise<string> => tdocInProcess(['did', ...args], settings);
  const ask = (...args: string[]) => askTdocInProcess(['did', ...args], settings);

  beforeEach(async () => {
    for (const file of [envFile, didFile]) rmSync(file, { force: true });
    await did();
  });

  const text = (): string => readFileSync(didFile, 'utf8');
  const document = (): DidDocument => JSON.parse(text()) as DidDocument;
  const publishedIds = (): string[] => document().verificationMethod.map(({ id }) => id);
  const files = (): (string | undefined)[] =>
    [envFile, didFile].map((file) => (existsSync(file) ? readFileSync(file, 'utf8') : undefined));
  function keyPair(): DidKeyPair {
    const parsed = parseDidKeyPair(readSettings({ ENV_FILE: envFile }).settings.DID_KEY_PAIRS ?? '');
    if ('problem' in parsed) throw new Error(parsed.problem);
    return parsed.keyPair;
  }
  /** The differences that `did --check` finds without the domain, which nobody serves here. */
  async function differences(): Promise<string[]> {
    const { parts } = JSON.parse((await ask('--check', '--json')).stdout) as {
      parts: { differences: string[] }[];
    };
    return parts.slice(0, 2).flatMap((part) => part.differences);
  }

  it('makes the next key for every purpose, and keeps the earlier ones for what they signed', async () => {
    const before = keyPair();
    const [first] = document().verificationMethod;
    const output = await did('--rotate');
    expect(output)
      .to.match(/key +did:web:localhost%3A3000#keys-2\n/)
      .and.match(/Restart the service/);
    await did('--rotate');
    const { id, controller, publicKeyMultibase, secretKeyMultibase } = keyPair();
    expect({ id, controller }).to.deep.equal({ id: key3, controller: issuer });
    expect(secretKeyMultibase).not.to.equal(before.secretKeyMultibase);
    expect(document()).to.deep.equal({
      ...document(),
      verificationMethod: [
        first,
        document().verificationMethod[1],
        { id, type: 'Multikey', controller, publicKeyMultibase },
      ],
      authentication: [key3],
      assertionMethod: [key1, key2, key3],
      capabilityInvocation: [key3],
      capabilityDelegation: [key3],
    });
    expect(text()).not.to.match(/z42|secret/);
    expect(await differences()).to.deep.equal([]);
    expect(await did()).to.contain('nothing was written');
    expect(await did()).to.contain('--rotate makes a new key');
  });

  it('answers with one JSON object, without a secret', async () => {
    const rotated = await did('--rotate', '--json');
    expect(rotated).not.to.contain(keyPair().secretKeyMultibase);
    const places = { setting: 'DID_KEY_PAIRS', envFile, publicFile: didFile, warning: null };
    expect(JSON.parse(rotated)).to.deep.equal({ did: issuer, key: key2, earlier: [key1], ...places });
    const revoked = { did: issuer, revoked: key1, keys: [key2], publicFile: didFile };
    expect(JSON.parse(await did('--revoke', 'keys-1', '--yes', '--json'))).to.deep.equal(revoked);
  });

  it('keeps whatever else is in did.json', async () => {
    const service = [{ id: `${issuer}#files`, type: 'LinkedDomains', serviceEndpoint: 'https://localhost' }];
    const jwk = { type: 'JsonWebKey', controller: issuer, publicKeyJwk: { kty: 'EC' } };
    const other = { id: `${issuer}#encryption`, ...jwk };
    const kept = { service, keyAgreement: [other.id] };
    const own = document();
    const verificationMethod = [...own.verificationMethod, other];
    const authentication = [...own.authentication, other.id];
    writeFileSync(didFile, JSON.stringify({ ...own, ...kept, verificationMethod, authentication }));
    await did('--rotate');
    expect(document()).to.deep.include({ ...kept, authentication: [other.id, key2] });
    expect(publishedIds()).to.deep.equal([key1, other.id, key2]);
    await did('--revoke', other.id, '--yes');
    expect(document()).to.deep.include({ service, keyAgreement: [], authentication: [key2] });
  });

  it('takes secret keys out of did.json, and says where they were', async () => {
    const { secretKeyMultibase } = keyPair();
    const own = document();
    const [method] = own.verificationMethod;
    const verificationMethod = [{ ...method, secretKeyMultibase }];
    writeFileSync(didFile, JSON.stringify({ ...own, note: secretKeyMultibase, verificationMethod }));
    expect((await differences()).join()).to.match(/PUBLISHES A SECRET KEY: .*--rotate`, then revoke/);
    expect(await did('--rotate'))
      .to.contain('at /verificationMethod/0/secretKeyMultibase: it was taken out')
      .and.contain('at /note')
      .and.not.contain(secretKeyMultibase);
    expect(await differences()).to.deep.equal([]);
  });

  it('makes the next key also if DID_KEY_PAIRS is lost or damaged', async () => {
    for (const [lost, next] of [
      ['', key2],
      ["DID_KEY_PAIRS='{'\n", key3],
    ] as const) {
      writeFileSync(envFile, lost);
      expect((await ask()).stderr)
        .to.match(/KEY_EXISTS/)
        .and.match(/make a new key with --rotate/);
      expect(await did('--rotate')).to.contain('had no usable key before');
      expect(keyPair().id).to.equal(next);
      expect(await differences()).to.deep.equal([]);
    }
  });

  for (const [state, changed, problem] of [
    ['is missing', () => undefined, /does not exist/],
    ['is damaged', () => '{"id"', /is not JSON/],
    ['is no object', () => '[]', /is not the DID document of did:web:localhost%3A3000/],
    ['is of another DID', () => text().replaceAll('3000', '4000'), /: \/id is missing or wrong/],
    ['has no key', () => JSON.stringify({ ...document(), verificationMethod: 1 }), /\/verificationMethod is/],
    ['has another key of the id', () => text().replace(/zDn\w+/, 'zDnaOther'), /does not publish the key of/],
    [
      'lets it sign no document',
      () => JSON.stringify({ ...document(), assertionMethod: [] }),
      /does not publish/,
    ],
  ] as const)
    it(`changes nothing if did.json ${state}`, async () => {
      const content = changed();
      if (content === undefined) rmSync(didFile);
      else writeFileSync(didFile, content);
      const before = files();
      for (const args of [['--rotate'], ['--revoke', 'keys-1', '--yes']]) {
        const { code, stderr } = await ask(...args);
        expect(code).to.equal(2);
        expect(stderr)
          .to.match(problem)
          .and.match(/DID_DOCUMENT_UNUSABLE/)
          .and.match(/Restore the file from a copy/);
      }
      expect(files()).to.deep.equal(before);
    });

  it('proposes to begin anew only if neither the key nor did.json can be used', async () => {
    rmSync(didFile);
    expect((await ask('--rotate')).stderr).not.to.contain('--force');
    writeFileSync(envFile, "DID_KEY_PAIRS='{'\n");
    expect((await ask('--rotate')).stderr).to.match(/did --force` begins anew.*DID_DOCUMENT_UNUSABLE/);
  });

  it('changes nothing if a setting is wrong or a file read-only; warns if the environment wins', async () => {
    const before = files();
    const rotate = (more: Record<string, string>) =>
      askTdocInProcess(['did', '--rotate'], { ...settings, ...more });
    expect((await rotate({ DOMAIN: '' })).stderr).to.contain('NOT_CONFIGURED');
    const elsewhere = await rotate({ DOMAIN: 'other.example' });
    expect(elsewhere.stderr).to.match(/Set DOMAIN back.*CONFIGURATION_INVALID/);
    const cut = JSON.stringify(keyPair()).replace(/#.*/, '');
    expect((await rotate({ DID_KEY_PAIRS: cut })).stderr).to.contain('in single quotes');
    for (const file of [envFile, didFile]) {
      chmodSync(file, 0o400);
      expect((await rotate({})).stderr).to.contain(`chmod u+w ${file}`);
      chmodSync(file, 0o600);
    }
    expect(files()).to.deep.equal(before);
    const { stdout } = await rotate({ DID_KEY_PAIRS: JSON.stringify(keyPair()) });
    expect(stdout).to.match(/warning: the environment variable DID_KEY_PAIRS is set and wins/);
  });

  it('gives two runs at once two keys, the later of which signs', async () => {
    await Promise.all([rotateDidKey(settings), rotateDidKey(settings)]);
    expect(publishedIds()).to.deep.equal([key1, key2, key3]);
    expect(keyPair().id).to.equal(key3);
    expect(await differences()).to.deep.equal([]);
  });

  it('leaves the earlier key in use, and published, when it is killed between its two writes', async () => {
    const before = keyPair();
    // The command waits for this lock when it has written did.json.
    await withFileLock(envFile, async () => {
      const child = spawn(process.execPath, [join(PROJECT_ROOT, 'dist/cli/main.js'), 'did', '--rotate'], {
        env: { ...inheritedEnvironment(), ...settings },
        stdio: 'ignore',
      });
      await eventually('did.json is written', () => publishedIds().includes(key2));
      child.kill('SIGKILL');
      await once(child, 'exit');
    });
    expect(keyPair()).to.deep.equal(before);
    expect(document().assertionMethod).to.include(before.id);
    expect((await differences()).join()).to.match(/publishes .*#keys-2, which is later .*--rotate`/);
    // The lock of the killed run is old enough to be taken.
    utimesSync(`${didFile}.lock`, 0, 0);
    await did('--rotate');
    expect(keyPair().id).to.equal(key3);
    expect(publishedIds()).to.deep.equal([key1, key2, key3]);
    expect(await differences()).to.deep.equal([]);
  });

  it('revokes an earlier key by its fragment or its id, and says what follows', async () => {
    for (const named of ['keys-1', '#keys-2', key3]) {
      await did('--rotate');
      const follows = /verify for nobody who resolves the DID.*Their tokens stay: issue such documents again/;
      expect(await did('--revoke', named, '--yes')).to.match(follows);
      expect(text()).not.to.contain(`#${named.replace(/.*#/, '')}"`);
    }
    expect(publishedIds()).to.deep.equal([`${issuer}#keys-4`]);
    expect(await differences()).to.deep.equal([]);
  });

  it('revokes nothing without a confirmation', async () => {
    await did('--rotate');
    const before = files();
    const { code, stderr } = await ask('--revoke', 'keys-1');
    expect(code).to.equal(1);
    expect(stderr).to.match(/Nothing was written: .*--yes\. \[CONFIRMATION_MISSING\]/);
    expect(files()).to.deep.equal(before);
  });

  it('does not revoke the key in use, one that may be in use, or one that is not there', async () => {
    const refused = async (named: string): Promise<string> => {
      const before = files();
      const { code, stderr, stdout } = await ask('--revoke', named, '--yes');
      expect(code).to.equal(stderr.includes('ARGUMENT_INVALID') ? 2 : 1);
      expect(files()).to.deep.equal(before);
      expect(stdout).to.equal('');
      return stderr;
    };
    const inUse = /signs with .*#keys-1\. Run `npx tdoc did --rotate` first.*KEY_IN_USE/;
    expect(await refused('keys-1')).to.match(inUse);
    expect(await refused('keys-7')).to.match(/has no key .*#keys-7"?\. It has .*#keys-1\..*ARGUMENT_INVALID/);
    const old = readFileSync(envFile);
    await did('--rotate');
    writeFileSync(envFile, old);
    expect(await refused('keys-2')).to.match(/#keys-2 is later than .*#keys-1/);
    writeFileSync(envFile, '');
    expect(await refused('keys-1')).to.match(/does not say which key is in use/);
  });

  it('never gives the fragment of an earlier key to another, not even with --force', async () => {
    await did('--rotate');
    await did('--revoke', 'keys-1', '--yes');
    await did('--force');
    expect(publishedIds()).to.deep.equal([key3]);
    expect(keyPair().id).to.equal(key3);
    writeFileSync(didFile, '{');
    await did('--force');
    expect(keyPair().id).to.equal(`${issuer}#keys-4`);
    await tdocInProcess(['did', '--force'], { ...settings, DOMAIN: 'other.example' });
    expect(keyPair().id).to.equal('did:web:other.example#keys-1');
  });

  it('says that a rebuilt did.json lacks the earlier keys', async () => {
    await did('--rotate');
    rmSync(didFile);
    expect(await did()).to.match(/was missing and was rebuilt.*\nIt has no earlier key/);
    expect(publishedIds()).to.deep.equal([key2]);
  });
});
