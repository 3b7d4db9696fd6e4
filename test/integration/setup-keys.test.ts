import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { from } from '@digitalbazaar/ecdsa-multikey';
import { loadConfig, readSettings } from '../../service/config/config';
import { parseDidKeyPair, type DidKeyPair } from '../../service/base/did-key-pair';
import { parseSigningKey } from '../../service/base/signing-keys';
import { tdocInProcess } from '../helpers/processes/tdoc-in-process';
import { temporaryFolder } from '../helpers/temporary-folder';

/** Returns what a refused command printed to standard error. */
async function refusal(command: Promise<string>): Promise<string> {
  const text = await command.then(
    () => 'succeeded',
    (error: { stderr: string }) => error.stderr,
  );
  expect(text).not.to.match(/\n +at /);
  return text;
}

describe('npx tdoc did', () => {
  const folder = temporaryFolder();
  const envFile = join(folder.path, 'tenant.env');
  const document = join(folder.path, 'did.json');
  const settings = { ENV_FILE: envFile, DID_DOCUMENT_PATH: document, DOMAIN: 'localhost:3000' };
  const did = (args: string[] = [], more: Record<string, string> = {}): Promise<string> =>
    tdocInProcess(['did', ...args], { ...settings, ...more });

  beforeEach(() => {
    rmSync(document, { force: true });
    writeFileSync(envFile, '# mine\n');
  });

  function keyPair(): DidKeyPair {
    const parsed = parseDidKeyPair(readSettings({ ENV_FILE: envFile }).settings.DID_KEY_PAIRS ?? '');
    if ('problem' in parsed) throw new Error(parsed.problem);
    return parsed.keyPair;
  }

  it('writes a document of the specified shape, with the port of the domain percent-encoded', async () => {
    await did();
    const id = 'did:web:localhost%3A3000';
    const key = `${id}#keys-1`;
    const { publicKeyMultibase } = keyPair();
    expect(JSON.parse(readFileSync(document, 'utf8'))).to.deep.equal({
      '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/multikey/v1'],
      id,
      verificationMethod: [{ type: 'Multikey', id: key, controller: id, publicKeyMultibase }],
      authentication: [key],
      assertionMethod: [key],
      capabilityInvocation: [key],
      capabilityDelegation: [key],
    });
    expect(statSync(document).mode & 0o777).to.equal(0o644);
  });

  it('writes a secret key that the service accepts and that can sign, and prints no part of it', async () => {
    const output = await did();
    const { secretKeyMultibase } = keyPair();
    expect(output).to.contain(document).and.contain('DID_KEY_PAIRS');
    expect(output).not.to.contain(secretKeyMultibase);
    expect(loadConfig({ ...settings, NET: '31337' }).issuerKey).to.deep.equal(keyPair());
    const signature = await (await from(keyPair())).signer().sign({ data: Buffer.from('x') });
    expect(signature).to.have.length(64);
    expect(readFileSync(envFile, 'utf8')).to.match(/^# mine\nDID_KEY_PAIRS='/);
    expect(statSync(envFile).mode & 0o777).to.equal(0o600);
  });

  it('replaces nothing, not even with --force, if did.json is read-only', async () => {
    await did();
    chmodSync(document, 0o444);
    const before = [readFileSync(envFile, 'utf8'), readFileSync(document, 'utf8')];
    expect(await refusal(did(['--force']))).to.contain(`chmod u+w ${document}`);
    expect([readFileSync(envFile, 'utf8'), readFileSync(document, 'utf8')]).to.deep.equal(before);
  });

  it('keeps the key, also with --force, if did.json or the env file can be written nowhere', async () => {
    await did();
    const before = readFileSync(envFile, 'utf8');
    const elsewhere = { DID_DOCUMENT_PATH: join(envFile, 'did.json') };
    expect(await refusal(did(['--force'], elsewhere))).to.contain('FILE_UNWRITABLE');
    expect(readFileSync(envFile, 'utf8')).to.equal(before);
    const nowhere = { ENV_FILE: join(envFile, 'x.env'), DID_DOCUMENT_PATH: join(folder.path, 'new.json') };
    expect(await refusal(did([], nowhere))).to.contain('FILE_UNWRITABLE');
  });

  it('overwrites neither the key of another domain nor a document that publishes another key', async () => {
    await did();
    const before = readFileSync(envFile, 'utf8');
    expect(await refusal(did([], { DOMAIN: 'trade.example.com' }))).to.contain('KEY_EXISTS');
    const text = readFileSync(document, 'utf8').replace(keyPair().publicKeyMultibase, 'zDnaOther');
    writeFileSync(document, text);
    expect(await refusal(did())).to.contain('KEY_EXISTS');
    expect([readFileSync(envFile, 'utf8'), readFileSync(document, 'utf8')]).to.deep.equal([before, text]);
  });

  it('asks for quotes around a key that was pasted without them, and never makes another', async () => {
    await did();
    const quoted = readFileSync(envFile, 'utf8');
    const pasted = quoted.replaceAll("'", '');
    for (const text of [pasted, pasted.replaceAll('"', '\\"')]) {
      writeFileSync(envFile, text);
      const ofService = (): unknown => loadConfig({ ...settings, NET: '31337' });
      expect(ofService).to.throw(/DID_KEY_PAIRS is cut at its first #.*Put the value in single quotes/);
      for (const args of [['did'], ['did', '--force'], ['setup']])
        expect(await refusal(tdocInProcess(args, settings)))
          .to.match(/DID_KEY_PAIRS is cut at its first #.*Put the value in single quotes/)
          .and.not.match(/new (pair|key)/);
      expect(readFileSync(envFile, 'utf8')).to.equal(text);
    }
    writeFileSync(envFile, quoted);
    expect(await did()).to.contain('nothing was written');
  });

  it('asks for DOMAIN when it is missing', async () => {
    const text = await refusal(did([], { DOMAIN: '' }));
    expect(text).to.contain('NOT_CONFIGURED').and.to.contain(`Set DOMAIN in ${envFile}`);
    expect(existsSync(document)).to.equal(false);
  });
});

describe('npx tdoc signing-key', () => {
  const folder = temporaryFolder();
  const envFile = join(folder.path, 'acme.env');
  const publicKeyFile = join(folder.path, 'acme.webhook-public-key.pem');
  const signingKey = (...args: string[]): Promise<string> =>
    tdocInProcess(['signing-key', ...args], { ENV_FILE: envFile });

  beforeEach(() => {
    rmSync(publicKeyFile, { force: true });
    rmSync(envFile, { force: true });
  });

  const seed = (): string => readSettings({ ENV_FILE: envFile }).settings.SIGNING_PRIVATE_KEY ?? '';

  /** Returns whether a signature by the private key verifies with the file's public key. */
  function isPair(file = publicKeyFile): boolean {
    const key = parseSigningKey(seed());
    if (key === undefined) throw new Error('SIGNING_PRIVATE_KEY is not a key');
    const data = Buffer.from('body');
    return verify(null, data, createPublicKey(readFileSync(file)), sign(null, data, key));
  }

  it('writes a 32-byte seed no other user can read, and its public key beside the env file', async () => {
    const output = await signingKey();
    expect(Buffer.from(seed(), 'base64')).to.have.length(32);
    expect(output).to.contain(publicKeyFile).and.not.to.contain(seed());
    expect(statSync(envFile).mode & 0o777).to.equal(0o600);
    expect(readFileSync(publicKeyFile, 'utf8')).to.match(/^-----BEGIN PUBLIC KEY-----\n/);
    expect(isPair()).to.equal(true);
  });

  it('writes the public key where --public-key-file says', async () => {
    const elsewhere = join(folder.path, 'elsewhere/key.pem');
    await signingKey('--public-key-file', elsewhere);
    expect(isPair(elsewhere)).to.equal(true);
    expect(existsSync(publicKeyFile)).to.equal(false);
  });

  it('accepts an existing private key in PEM form', async () => {
    await signingKey();
    const pem = parseSigningKey(seed())?.export({ type: 'pkcs8', format: 'pem' }).toString() ?? '';
    expect(createPrivateKey(pem).asymmetricKeyType).to.equal('ed25519');
    writeFileSync(envFile, `SIGNING_PRIVATE_KEY="${pem}"\n`);
    expect(await signingKey()).to.contain('nothing was written');
  });
});

const PEM = 'acme.webhook-public-key.pem';
for (const [command, setting, publicName, advice, renewal] of [
  ['did', 'DID_KEY_PAIRS', 'did.json', 'no longer verify', '--rotate'],
  ['signing-key', 'SIGNING_PRIVATE_KEY', PEM, 'give subscribers the new public key', '--force'],
] as const)
  describe(`npx tdoc ${command}, run again`, () => {
    const folder = temporaryFolder();
    const envFile = join(folder.path, 'acme.env');
    const publicFile = join(folder.path, publicName);
    const settings = { ENV_FILE: envFile, DID_DOCUMENT_PATH: publicFile, DOMAIN: 'localhost:3000' };
    const run = (...args: string[]): Promise<string> => tdocInProcess([command, ...args], settings);
    const files = (): string[] => [envFile, publicFile].map((path) => readFileSync(path, 'utf8'));
    /** The secret part of the setting. */
    const secret = (): string => {
      const value = readSettings({ ENV_FILE: envFile }).settings[setting] ?? '';
      return /"secretKeyMultibase":"(\w+)"/.exec(value)?.[1] ?? value;
    };

    beforeEach(async () => {
      for (const path of [envFile, publicFile]) rmSync(path, { force: true });
      await run();
    });

    it('changes nothing, and rebuilds a missing public file', async () => {
      const before = files();
      expect(await run()).to.contain('nothing was written');
      expect(files()).to.deep.equal(before);
      rmSync(publicFile);
      expect(await run()).to.contain('rebuilt');
      expect(files()).to.deep.equal(before);
    });

    it('answers with one JSON object after --json, without the secret', async () => {
      const answer = { setting, envFile, publicFile };
      for (const path of [envFile, publicFile]) rmSync(path);
      const made = { ...answer, key: 'made', isPublicFileWritten: true, warning: null };
      expect(JSON.parse(await run('--json'))).to.deep.equal(made);
      const kept = JSON.parse(await run('--json')) as object;
      expect(kept).to.deep.equal({ ...answer, key: 'kept', isPublicFileWritten: false, warning: null });
      const output = await run('--force', '--json');
      expect(output).not.to.contain(secret());
      expect(JSON.parse(output)).to.deep.include({ ...answer, key: 'replaced', isPublicFileWritten: true });
    });

    it('replaces the key with --force, and says what follows', async () => {
      const [before, published] = [secret(), readFileSync(publicFile, 'utf8')];
      expect(await run('--force')).to.contain(advice);
      expect(secret()).not.to.equal(before);
      expect(readFileSync(publicFile, 'utf8')).not.to.equal(published);
      // It refuses to go on with a public file of another key.
      expect(await run()).to.contain('nothing was written');
    });

    it('does not overwrite a public file whose secret it does not have', async () => {
      const before = readFileSync(publicFile, 'utf8');
      rmSync(envFile);
      expect(await refusal(run())).to.match(new RegExp(`${renewal}[^]*KEY_EXISTS`));
      expect(readFileSync(publicFile, 'utf8')).to.equal(before);
      expect(existsSync(envFile)).to.equal(false);
    });
  });
