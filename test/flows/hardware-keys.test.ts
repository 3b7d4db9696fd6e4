import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
// eslint-disable-next-line no-restricted-syntax -- real time: the kill comes at some moment of the signing.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { encodeBase58, parseEther, toQuantity } from 'ethers';
import { freePort } from '../../devnet/place';
import { systemTime } from '../../service/base/time';
import { messageOf } from '../../service/base/errors';
import { readSettings } from '../../service/config/config';
import { openModule } from '../../service/keys/pkcs11';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { eventually } from '../helpers/eventually';
import {
  createSoftHsm,
  hasServer,
  moveKeys,
  startHsmServer,
  type HsmServer,
  type SoftHsm,
} from '../helpers/keys/soft-hsm';
import { askTdoc } from '../helpers/processes/command-answer';
import { create } from '../helpers/processes/create-call';
import { askHardhatInProcess } from '../helpers/processes/hardhat-in-process';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';

// SoftHSM2 is a module that nobody here wrote. p11-kit's server keeps it in a process of its own, as other
// modules are in other machines: it can be taken away, and the memory of the service has nothing of it.
describe('PKCS11_MODULE', function () {
  let local: LocalSetup;
  let hsm: SoftHsm;
  let server: HsmServer;
  let owner: string;
  /** With both keys in the module: those of the setup. */
  let settings: Record<string, string>;
  /** The private keys, in all their forms. */
  let secrets: Buffer[];
  // eslint-disable-next-line no-restricted-properties -- the libraries read the environment of the process.
  const { env } = process;

  before(async function () {
    if (!hasServer) return this.skip();
    const port = await freePort(0);
    local = await createLocalSetup({ domain: `localhost:${port}` });
    hsm = createSoftHsm();
    const moved = moveKeys(hsm, local);
    hsm.importKey('twin', { curve: 'secp256k1', bytes: randomBytes(32) });
    hsm.importKey('twin', { curve: 'secp256k1', bytes: randomBytes(32) });
    hsm.importKey('unpublished', { curve: 'prime256v1', bytes: randomBytes(32) });
    secrets = Object.values(moved.secrets).flatMap(formsOf);
    server = await startHsmServer(hsm, local.folder);
    owner = await local.account(1);
    settings = { ...local.settings, ...moved.settings, ...server.settings, PORT: String(port) };
    const { SOFTHSM2_CONF, P11_KIT_SERVER_ADDRESS } = settings;
    Object.assign(env, { SOFTHSM2_CONF, P11_KIT_SERVER_ADDRESS });
  });
  after(() => {
    delete env.SOFTHSM2_CONF;
    delete env.P11_KIT_SERVER_ADDRESS;
  });

  const document = () => ({ ...minimal, owner, holder: owner });

  const dataOf = (name: string) => ({ DATA_DIR: join(local.folder, name) });

  describe('in a service', () => {
    let service: ServiceProcess;
    const own = () => ({ ...settings, ...dataOf('data') });
    const start = async () => (service = await startServiceProcess(own()));

    before(start);

    it('signs a document and its mint with keys that the process does not have', async () => {
      const { status, text } = await create(service.url, document());
      expect(status, text).to.equal(200);
      const file = join(local.folder, 'answer.json');
      writeFileSync(file, text);
      const verified = await askTdocInProcess(['verify-credential', file], settings);
      expect(verified.code, verified.stdout + verified.stderr).to.equal(0);
      expect(isInFiles(local.folder, secrets)).to.equal(false);
      if (process.platform === 'linux') {
        expect(await isInMemory(service.pid, secrets)).to.equal(false);
        // The search finds what is there.
        expect(await isInMemory(service.pid, [Buffer.from(hsm.settings.PKCS11_PIN ?? '')])).to.equal(true);
      }
      await eventually('health says that both sign', async () => (await signers()).join() === BOTH_UP);
    });

    it('mints what was accepted when the module is back, and accepts nothing meanwhile', async () => {
      await server.kill();
      await eventually('health names both signers', async () => {
        const { signers } = (await healthOf(service.url)).issuing ?? {};
        return signers?.every(({ state, code }) => state === 'failing' && code === 'SIGNER_UNREACHABLE');
      });
      // One that came before the service noticed may be answered 503 at once, and nothing is stored of it.
      const asked = create(service.url, document());
      await server.start();
      const { status, text } = await asked;
      expect(status, text).to.equal(200);
    });

    it('makes one token of a request that is sent again after kill -9', async () => {
      const before = (await mintedTokens(local, 0)).size;
      const headers = { 'Idempotency-Key': '"one-document"' };
      const lost = create(service.url, document(), { headers }).catch(() => undefined);
      await sleep(60);
      await service.end('SIGKILL');
      await lost;
      await start();
      const { status, text } = await create(service.url, document(), { headers });
      expect(status, text).to.equal(200);
      expect((await mintedTokens(local, 0)).size).to.equal(before + 1);
    });

    it('ends although the module hangs', async () => {
      await eventually('the module was asked', async () => (await signers()).join() === BOTH_UP);
      server.signal('SIGSTOP');
      void create(service.url, document()).catch(() => undefined);
      // The request was read before that of health, which looks at the module too.
      await healthOf(service.url);
      await service.end('SIGTERM');
      server.signal('SIGCONT');
    });

    const BOTH_UP = 'wallet up,issuer up';
    const signers = async (): Promise<string[]> =>
      ((await healthOf(service.url)).issuing?.signers ?? []).map(({ key, state }) => `${key} ${state}`);
  });

  it('tries a refused PIN once, until it may try again', async () => {
    const pinFile = join(local.folder, 'pin');
    writeFileSync(pinFile, 'wrong');
    const own = { ...settings, ...dataOf('refused'), PKCS11_PIN: '', PKCS11_PIN_FILE: pinFile };
    const ask = (...args: string[]) => askTdoc(['keys', ...args], own);
    expect((await ask()).stdout)
      .to.contain('SIGNER_PIN_REFUSED')
      .and.contain('CKR_PIN_INCORRECT');
    writeFileSync(pinFile, hsm.settings.PKCS11_PIN ?? '');
    const again = await ask();
    expect(again.stdout).to.contain('was refused before, and is not tried again by itself');
    expect(again.code).to.equal(1);
    const marker = readFileSync(join(own.DATA_DIR, 'pin-refused.json'), 'utf8');
    expect(marker).not.to.contain('wrong');
    expect(await ask('--retry')).to.include({ code: 0 });
    expect(await ask()).to.include({ code: 0 });
  });

  it('does not try the PIN of its start again when the marker is cleared for another one', async () => {
    const { PKCS11_MODULE: path = '' } = hsm.settings;
    // A process opens a token once: that of the other tests has the right PIN.
    const token = 'other';
    hsm.addToken(token);
    const refusedPinFile = join(local.folder, 'refused-at-start.json');
    writeFileSync(refusedPinFile, JSON.stringify({ module: path, token }));
    const askModule = openModule(systemTime, {
      path,
      token,
      pin: 'wrong',
      pinFile: undefined,
      refusedPinFile,
    });
    const ask = () => askModule({ kind: 'describe', label: 'carrier-wallet', curve: 'secp256k1' });
    expect(messageOf(await ask().catch((error: unknown) => error))).to.contain('was refused before');
    rmSync(refusedPinFile);
    expect(messageOf(await ask().catch((error: unknown) => error))).to.contain('was refused before');
    expect(existsSync(refusedPinFile)).to.equal(false);
  });

  const FAULTS: Record<string, [own: Record<string, string>, ...told: string[]]> = {
    'a library that is not there': [{ PKCS11_MODULE: '/nowhere.so' }, 'cannot be loaded'],
    'a token that is not there': [{ PKCS11_TOKEN: 'none' }, 'has no token "none"'],
    'a key that is not there, and one of another curve': [
      { WALLET_PKCS11_KEY: 'other', DID_PKCS11_KEY: 'carrier-wallet' },
      'has no private key "other"',
      'of another curve than P-256',
    ],
    'several keys of one label, and a key that did.json does not have': [
      { WALLET_PKCS11_KEY: 'twin', DID_PKCS11_KEY: 'unpublished' },
      'has several private keys "twin"',
      `has no verification method with the module's key "unpublished"`,
    ],
    'another key than that of WALLET_ADDRESS': [
      { WALLET_ADDRESS: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
      'is another key than that of WALLET_ADDRESS',
    ],
  };
  for (const [fault, [own, ...told]] of Object.entries(FAULTS))
    it(`names ${fault}`, async () => {
      const { code, stdout } = await askTdocInProcess(['keys'], { ...settings, ...own });
      for (const part of told) expect(stdout).to.contain(part);
      expect(code).to.equal(1);
    });

  describe('with keys that `tdoc setup` made inside the module', () => {
    let own: Record<string, string>;
    let label: string;

    before(async () => {
      const port = await freePort(0);
      own = {
        ...hsm.settings,
        ...dataOf('new'),
        ENV_FILE: join(local.folder, 'new.env'),
        DID_DOCUMENT_PATH: join(local.folder, 'new-did.json'),
        SERVICE_CONFIG: join(local.folder, 'none.json'),
        DOMAIN: `localhost:${port}`,
        PORT: String(port),
        NET: '31337',
        RPC_URL: local.node.url,
        SIGNING_THREADS: '1',
      };
    });

    const run = async (ask: typeof askTdocInProcess, ...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await ask(args, own);
      expect(code, stdout + stderr).to.equal(0);
      return stdout;
    };
    const did = async (expected: number, ...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await askTdocInProcess(['did', ...args], own);
      expect(code, stdout + stderr).to.equal(expected);
      return stdout + stderr;
    };
    /** Issues a document into a file. Returns the name of the key that signed it. */
    const issued = async ({ url }: RunningService, name: string): Promise<string> => {
      const { status, text } = await create(url, document());
      expect(status, text).to.equal(200);
      writeFileSync(join(local.folder, name), text);
      return /"verificationMethod":"[^"#]*#([^"]*)"/.exec(text)?.[1] ?? '';
    };
    const verified = async (name: string) =>
      (await askTdocInProcess(['verify-credential', join(local.folder, name)], own)).code;

    it('deploys a registry, and rebuilds the DID document', async () => {
      const made = await run(askTdoc, 'setup', '--pkcs11');
      expect(await run(askTdocInProcess, 'setup', '--pkcs11')).to.contain(made.split('\n', 4).join('\n'));
      const { WALLET_ADDRESS: wallet, DID_PKCS11_KEY } = readSettings({ ENV_FILE: own.ENV_FILE }).settings;
      label = DID_PKCS11_KEY ?? '';
      await local.client.send('hardhat_setBalance', [wallet, toQuantity(parseEther('1'))]);
      await run(askHardhatInProcess, 'deploy', '--network', 'localhost');
      expect(readFileSync(own.ENV_FILE ?? '', 'utf8')).not.to.match(/^(WALLET_PRIVATE_KEY|DID_KEY_PAIRS)=/m);
      const { keys } = JSON.parse(await run(askTdocInProcess, 'keys', '--json')) as { keys: object[] };
      const inModule = { isExtractable: false, uses: ['sign'], problem: null };
      expect(keys[0]).to.deep.include({ key: 'wallet', public: wallet, ...inModule });
      expect(keys[1]).to.deep.include({ key: 'issuer', ...inModule });
      own = { ...own, ...server.settings };
      rmSync(own.DID_DOCUMENT_PATH ?? '');
      expect(await did(2, '--rotate')).to.contain('DID_DOCUMENT_UNUSABLE');
      expect(await did(0)).to.contain('was missing and was rebuilt from it');
      expect(await did(0)).to.contain('nothing was written');
      expect(await did(2, '--force')).to.contain('`npx tdoc did --rotate`');
    });

    it('makes the next key in the module, which signs after a restart', async () => {
      // A run that was interrupted left a key, which nobody knows.
      hsm.importKey(`${label}-2`, { curve: 'prime256v1', bytes: randomBytes(32) });
      await using service = await startService(own);
      expect(await issued(service, 'first.json')).to.equal('keys-1');
      expect(await did(0, '--rotate')).to.contain(`${label}-3, in token`);
      expect(await did(0, '--check')).to.match(/ok +DID_PKCS11_KEY\n/);
      expect(await issued(service, 'before-restart.json')).to.equal('keys-1');
    });

    it('revokes the key before', async () => {
      await using service = await startService(own);
      expect(await issued(service, 'second.json')).to.equal('keys-3');
      expect([await verified('first.json'), await verified('second.json')]).to.deep.equal([0, 0]);
      expect(await did(1, '--revoke', 'keys-3', '--yes')).to.contain('KEY_IN_USE');
      await did(0, '--revoke', 'keys-1', '--yes');
      expect([await verified('first.json'), await verified('second.json')]).to.deep.equal([1, 0]);
      const files = () =>
        [own.ENV_FILE, own.DID_DOCUMENT_PATH].map((file = '') => readFileSync(file, 'utf8'));
      const before = files();
      await server.kill();
      expect(await did(2, '--rotate')).to.contain('SIGNER_UNREACHABLE');
      expect(await did(2, '--check')).to.match(/unknown +DID_PKCS11_KEY: The module/);
      expect(files()).to.deep.equal(before);
    });
  });
});

/** The forms in which a private key may be in a file or in memory. */
function formsOf(secret: Buffer): Buffer[] {
  const hex = secret.toString('hex');
  const texts = [
    hex,
    hex.toUpperCase(),
    secret.toString('base64').slice(0, 42),
    encodeBase58(Buffer.concat([Buffer.from([0x86, 0x26]), secret])),
  ];
  return [secret, ...texts.map((text) => Buffer.from(text))];
}

const CHUNK_BYTES = 16 * 1024 * 1024;

/**
 * Searches the writable memory of a process, as Linux shows it. This takes seconds. Connections that the
 * process closes meanwhile have to be seen as closed by the next request.
 */
async function isInMemory(pid: number, sought: Buffer[]): Promise<boolean> {
  await using memory = await open(`/proc/${pid}/mem`, 'r');
  const regions = readFileSync(`/proc/${pid}/maps`, 'utf8').matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm);
  for (const [, from = '', to = ''] of regions) {
    const end = parseInt(to, 16);
    for (let at = parseInt(from, 16); at < end; at += CHUNK_BYTES) {
      const bytes = Buffer.alloc(Math.min(CHUNK_BYTES + 128, end - at));
      try {
        await memory.read(bytes, 0, bytes.length, at);
      } catch {
        continue; // Reserved, but not there.
      }
      if (sought.some((form) => bytes.includes(form))) return true;
    }
  }
  return false;
}

function isInFiles(folder: string, sought: Buffer[]): boolean {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).some((entry) => {
    if (!entry.isFile()) return false;
    const content = readFileSync(join(entry.parentPath, entry.name));
    return sought.some((form) => content.includes(form));
  });
}
