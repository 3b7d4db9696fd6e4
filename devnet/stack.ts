import { join } from 'node:path';
import { makeDidKey } from '../cli/keys/make-did-key';
import { makeSigningKey } from '../cli/keys/make-signing-key';
import { startChild, type Child } from './child-process';
import { freePort } from './free-port';
import { HARDHAT, startHardhatNode } from './hardhat-node';
import { readSettings } from '../service/config/config';
import { PROJECT_ROOT } from '../service/base/project-root';

/** The programs of devnet (node, service and receiver), set up with the commands that a user runs. */
export interface Stack {
  nodeUrl: string;
  serviceUrl: string;
  receiver: Child;
  registryAddress: string;
  folder: string;
  /**
   * Ends the service and starts the present build. After the first call, a service that ends by itself is not
   * a failure of the stack.
   */
  restartService(): Promise<void>;
  /** Rejects if one of them ends by itself. */
  failure: Promise<never>;
}

/** Key of the first account of every Hardhat node: public, and worthless on any other chain. */
const WALLET_PRIVATE_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';

const PREFERRED_PORTS = { node: 8545, service: 3000, receiver: 4000 };

/** Functions that undo each step of the start, latest first. */
export type Cleanup = (() => Promise<void>)[];

/**
 * Starts the stack. Keys, state and logs go into `folder`.
 *
 * @param say prints a line of progress.
 * @param cleanup is added to as programs start, so that a failure half-way leaves nothing running.
 */
export async function startStack(
  folder: string,
  say: (line: string) => void,
  cleanup: Cleanup,
): Promise<Stack> {
  const ports = await choosePorts(say);
  const publicKeyFile = join(folder, 'webhook-public-key.pem');
  const settings = {
    ENV_FILE: join(folder, 'service.env'),
    SERVICE_CONFIG: join(folder, 'service.config.json'),
    DID_DOCUMENT_PATH: join(folder, 'did.json'),
    DATA_DIR: join(folder, 'data'),
    DOMAIN: `localhost:${ports.service}`,
    PORT: String(ports.service),
    NET: '31337',
    RPC_URL: `http://127.0.0.1:${ports.node}`,
    WALLET_PRIVATE_KEY,
    WEBHOOK_URL: `http://127.0.0.1:${ports.receiver}/webhook`,
  };
  await makeDidKey({ force: false }, settings);
  await makeSigningKey({ force: false, publicKeyFile }, settings);
  say('did:web key pair and webhook signing key made');
  const node = await startHardhatNode({ port: ports.node, logFile: join(folder, 'node.log') });
  cleanup.push(() => node.stop());
  say(`local chain at ${node.url}`);
  await deploy(settings, folder, cleanup);
  const registryAddress = readSettings(settings).settings.TOKEN_REGISTRY_ADDRESS ?? '';
  say(`token registry deployed at ${registryAddress}`);

  const start = (name: string, own: Record<string, string>): Child => {
    const script = join(PROJECT_ROOT, `dist/${name}/main.js`);
    const child = startChild(name, script, [], own, join(folder, `${name}.log`));
    cleanup.push(() => child.stop());
    return child;
  };
  const receiver = start('receiver', receiverSettings(folder, ports.receiver, publicKeyFile));
  const first = start('service', settings);
  let service: Child | undefined = first;
  await receiver.lineMatching(/"listening"/);
  say(`reference receiver at http://127.0.0.1:${ports.receiver}`);
  await first.lineMatching(/"msg":"listening"/);
  const serviceUrl = `http://localhost:${ports.service}`;
  say(`creator service at ${serviceUrl}`);
  const ends = [
    node.ended.then(() => 'the hardhat node'),
    receiver.ended.then(() => 'the receiver'),
    first.ended.then(() => (service === first ? 'the service' : new Promise<never>(() => undefined))),
  ];
  const failure = Promise.race(ends).then((name) =>
    Promise.reject<never>(new Error(`${name} ended by itself.`)),
  );
  failure.catch(() => undefined);
  const restartService = async (): Promise<void> => {
    const before = service;
    service = undefined;
    await before?.stop();
    service = start('service', settings);
    await service.lineMatching(/"msg":"listening"/);
  };
  return { nodeUrl: node.url, serviceUrl, receiver, registryAddress, folder, restartService, failure };
}

async function choosePorts(say: (line: string) => void): Promise<typeof PREFERRED_PORTS> {
  const ports = { ...PREFERRED_PORTS };
  for (const name of ['node', 'service', 'receiver'] as const) {
    const preferred = PREFERRED_PORTS[name];
    ports[name] = await freePort(preferred);
    if (ports[name] !== preferred) say(`port ${preferred} is taken: the ${name} uses ${ports[name]}`);
  }
  return ports;
}

function receiverSettings(folder: string, port: number, publicKeyFile: string): Record<string, string> {
  return {
    ENV_FILE: join(folder, 'service.env'),
    RECEIVER_PORT: String(port),
    WEBHOOK_PUBLIC_KEY_FILE: publicKeyFile,
    RECEIVER_EVENTS_FILE: join(folder, 'received-events.jsonl'),
  };
}

async function deploy(settings: Record<string, string>, folder: string, cleanup: Cleanup): Promise<void> {
  const args = ['deploy', '--network', 'localhost'];
  const child = startChild('hardhat deploy', HARDHAT, args, settings, join(folder, 'deploy.log'));
  cleanup.push(() => child.stop());
  const code = await child.ended;
  if (code !== 0) throw new Error(`\`npx hardhat deploy\` failed:\n${child.tail()}`);
}
