import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createPrivateKey, randomBytes } from 'node:crypto';
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
  remove(): void;
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
    remove: () => folder.remove(),
  };
  hsm.addToken('etr');
  return hsm;
}

/** SEC 1, C.4, with the curve's object identifier; node:crypto adds the public key. */
function pemOf(curve: 'secp256k1' | 'prime256v1', bytes: Buffer): string {
  const oid = curve === 'secp256k1' ? '06052b8104000a' : '06082a8648ce3d030107';
  const parameters = Buffer.from(`a0${(oid.length / 2).toString(16).padStart(2, '0')}${oid}`, 'hex');
  const content = Buffer.concat([Buffer.from('0201010420', 'hex'), bytes, parameters]);
  const key = Buffer.concat([Buffer.from([0x30, content.length]), content]);
  return createPrivateKey({ key, format: 'der', type: 'sec1' })
    .export({ format: 'pem', type: 'pkcs8' })
    .toString();
}

/** The keys of a setup, and the settings that name them in the token instead. */
export interface MovedKeys {
  settings: Record<string, string>;
  /** The private keys: 32 bytes each. */
  secrets: { wallet: Buffer; issuer: Buffer };
}

/** Puts the keys of a setup into the token, and takes the issuer's out of the setup's file. */
export function moveKeys(hsm: SoftHsm, { settings: { ENV_FILE = '' } }: LocalSetup): MovedKeys {
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
export interface HsmServer {
  /** Settings for the library that asks the server. */
  settings: Record<string, string>;
  start(): Promise<void>;
  /** Ends it, and every session in it. */
  kill(this: void): Promise<void>;
  /** Makes it hang, or go on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
}

/** Starts p11-kit's server for a token. */
export async function startHsmServer(hsm: SoftHsm, folder: string): Promise<HsmServer> {
  const socket = join(folder, 'p11.sock');
  let running: ChildProcess | undefined;
  const server: HsmServer = {
    settings: {
      ...hsm.settings,
      PKCS11_MODULE: CLIENT ?? '',
      P11_KIT_SERVER_ADDRESS: `unix:path=${socket}`,
    },
    async start() {
      if (running !== undefined) return;
      rmSync(socket, { force: true });
      const args = ['-f', '-n', socket, '-p', hsm.settings.PKCS11_MODULE ?? '', 'pkcs11:'];
      const env = { ...hsm.settings, XDG_RUNTIME_DIR: folder };
      // It forks for each connection: a group of its own is signalled as a whole.
      running = spawn(SERVER ?? '', args, { env, detached: true, stdio: 'ignore' });
      await eventually("the token's server listens", () => existsSync(socket));
    },
    async kill() {
      const ended = running && once(running, 'close');
      signalGroup('SIGCONT');
      signalGroup('SIGKILL');
      await ended;
      running = undefined;
    },
    signal: (signal) => signalGroup(signal),
  };
  const signalGroup = (signal: NodeJS.Signals): void => {
    if (running?.pid !== undefined) process.kill(-running.pid, signal);
  };
  await server.start();
  stopLater("the token's server", server.kill);
  return server;
}
