import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createECDH, createPrivateKey, randomBytes, type JsonWebKey } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { decodeBase58, toBeArray } from 'ethers';
import { parseDidKeyPair } from '../../../service/base/did-key-pair';
import { readSettings } from '../../../service/config/config';
import { DEPLOYER, DEPLOYER_KEY, type LocalSetup } from '../chain/local-setup';
import { eventually } from '../eventually';
import { stopLater } from '../resources';
import { temporaryFolder } from '../temporary-folder';

const PIN = '4711-of-the-token';
const SECURITY_OFFICER = '0815-of-its-officer';

const LIBRARY = [
  '/usr/lib/softhsm/libsofthsm2.so',
  '/usr/lib64/pkcs11/libsofthsm2.so',
  '/usr/lib64/softhsm/libsofthsm2.so',
  '/usr/local/lib/softhsm/libsofthsm2.so',
  '/opt/homebrew/lib/softhsm/libsofthsm2.so',
].find((path) => existsSync(path));

/** Keeps a module in a process of its own: p11-kit's server, and the library that asks it. */
const SERVER = ['/usr/libexec/p11-kit/p11-kit-server', '/usr/lib/p11-kit/p11-kit-server'].find(existsSync);
const CLIENT = [
  '/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-client.so',
  '/usr/lib/aarch64-linux-gnu/pkcs11/p11-kit-client.so',
  '/usr/lib64/pkcs11/p11-kit-client.so',
].find((path) => existsSync(path));

export const hasSoftHsm = LIBRARY !== undefined && isAddonBuilt();
if (!hasSoftHsm) console.log('SoftHSM2 is not installed, or pkcs11js not built: what needs them is skipped.');
/** Without p11-kit, a module cannot be taken away from the process that asks it. */
export const hasServer = hasSoftHsm && SERVER !== undefined && CLIENT !== undefined;

function isAddonBuilt(): boolean {
  try {
    createRequire(__filename)('pkcs11js');
    return true;
  } catch {
    return false;
  }
}

/** A token of SoftHSM2 in a folder of its own. */
export interface SoftHsm {
  /** Settings, and what the library reads from the environment. */
  settings: Record<string, string>;
  /** Makes a token of this label in it. */
  addToken(label: string): void;
  /** Puts a key pair in, whose private key is known. */
  importKey(label: string, secret: { curve: 'secp256k1' | 'prime256v1'; bytes: Buffer }): void;
}

/** Makes a token with the label `etr`. */
export function createSoftHsm(): SoftHsm {
  const folder = temporaryFolder();
  const conf = join(folder.path, 'softhsm2.conf');
  const tokens = join(folder.path, 'tokens');
  mkdirSync(tokens);
  writeFileSync(conf, `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`);
  const environment = { SOFTHSM2_CONF: conf };
  const util = (...args: string[]): void => {
    execFileSync('softhsm2-util', args, { env: { PATH: '/usr/bin:/bin:/usr/local/bin', ...environment } });
  };
  const hsm: SoftHsm = {
    settings: { ...environment, PKCS11_MODULE: LIBRARY ?? '', PKCS11_TOKEN: 'etr', PKCS11_PIN: PIN },
    addToken: (label) =>
      util('--init-token', '--free', '--label', label, '--pin', PIN, '--so-pin', SECURITY_OFFICER),
    importKey(label, { curve, bytes }) {
      const file = join(folder.path, `${label}.pem`);
      writeFileSync(file, pemOf(curve, bytes));
      const id = randomBytes(8).toString('hex');
      util('--import', file, '--token', 'etr', '--label', label, '--id', id, '--pin', PIN);
      rmSync(file);
    },
  };
  hsm.addToken('etr');
  return hsm;
}

function pemOf(curve: 'secp256k1' | 'prime256v1', bytes: Buffer): string {
  const pair = createECDH(curve);
  pair.setPrivateKey(bytes);
  const point = pair.getPublicKey();
  const parts = [bytes, point.subarray(1, 33), point.subarray(33)];
  const [d, x, y] = parts.map((part) => part.toString('base64url'));
  const key = { kty: 'EC', crv: curve === 'secp256k1' ? curve : 'P-256', d, x, y } as JsonWebKey;
  return createPrivateKey({ key, format: 'jwk' }).export({ format: 'pem', type: 'pkcs8' }).toString();
}

/**
 * Puts the keys of a setup into the token, and takes the issuer's out of the setup's file. Returns the
 * settings that name them in the token, and the private keys, of 32 bytes each.
 */
export function moveKeys(hsm: SoftHsm, { settings: { ENV_FILE = '' } }: LocalSetup) {
  const { DID_KEY_PAIRS = '' } = readSettings({ ENV_FILE }).settings;
  const parsed = parseDidKeyPair(DID_KEY_PAIRS);
  if ('problem' in parsed) throw new Error(parsed.problem);
  const prefixed = Buffer.from(toBeArray(decodeBase58(parsed.keyPair.secretKeyMultibase.slice(1))));
  const secrets = { wallet: Buffer.from(DEPLOYER_KEY.slice(2), 'hex'), issuer: prefixed.subarray(2) };
  hsm.importKey('carrier-wallet', { curve: 'secp256k1', bytes: secrets.wallet });
  hsm.importKey('carrier-issuer', { curve: 'prime256v1', bytes: secrets.issuer });
  const lines = readFileSync(ENV_FILE, 'utf8').split('\n');
  writeFileSync(ENV_FILE, lines.filter((line) => !line.startsWith('DID_KEY_PAIRS=')).join('\n'));
  const settings = {
    ...hsm.settings,
    WALLET_PRIVATE_KEY: '',
    WALLET_ADDRESS: DEPLOYER,
    WALLET_PKCS11_KEY: 'carrier-wallet',
    DID_PKCS11_KEY: 'carrier-issuer',
  };
  return { settings, secrets };
}

/** The token in a process of its own, which can be killed. */
export type HsmServer = Awaited<ReturnType<typeof startHsmServer>>;

/** Starts p11-kit's server for a token. */
export async function startHsmServer(hsm: SoftHsm, folder: string) {
  const socket = join(folder, 'p11.sock');
  let running: ChildProcess | undefined;
  const signal = (name: NodeJS.Signals): void => {
    if (running?.pid !== undefined) process.kill(-running.pid, name);
  };
  const server = {
    /** For the library that asks the server. */
    settings: {
      ...hsm.settings,
      PKCS11_MODULE: CLIENT ?? '',
      P11_KIT_SERVER_ADDRESS: `unix:path=${socket}`,
    },
    async start(): Promise<void> {
      rmSync(socket, { force: true });
      const args = ['-f', '-n', socket, '-p', hsm.settings.PKCS11_MODULE ?? '', 'pkcs11:'];
      const env = { ...hsm.settings, XDG_RUNTIME_DIR: folder };
      // It forks for each connection: a group of its own is signalled as a whole.
      running = spawn(SERVER ?? '', args, { env, detached: true, stdio: 'ignore' });
      await eventually("the token's server listens", () => existsSync(socket));
    },
    /** Ends it, and every session in it. */
    async kill(this: void): Promise<void> {
      const ended = running && once(running, 'close');
      signal('SIGCONT');
      signal('SIGKILL');
      await ended;
      running = undefined;
    },
    /** Makes it hang with SIGSTOP, and go on with SIGCONT. */
    signal,
  };
  await server.start();
  stopLater("the token's server", server.kill);
  return server;
}
