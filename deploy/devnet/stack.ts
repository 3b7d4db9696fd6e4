import { join } from 'node:path';
import { startChild, type Child } from './child-process';
import { freePort } from './free-port';
import { HARDHAT, startHardhatNode } from './hardhat-node';
import { readSettings } from '../../service/config';
import { PROJECT_ROOT } from '../../service/project-root';

/** Everything that devnet runs: node, service and receiver, set up by the commands a user runs. */
export interface Stack {
  nodeUrl: string;
  serviceUrl: string;
  receiver: Child;
  registryAddress: string;
  folder: string;
  /** Rejects when one of them ends by itself. */
  failure: Promise<never>;
}

/** Key of the first account of every Hardhat node: public knowledge, worthless anywhere else. */
const WALLET_PRIVATE_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';

const PREFERRED_PORTS = { node: 8545, service: 3000, receiver: 4000 };

/** How to undo each thing that was started, latest first. */
export type Cleanup = (() => Promise<void>)[];

/**
 * Starts the stack; keys, state and logs go into `folder`.
 *
 * @param say prints a line of progress.
 * @param cleanup is added to as things start, so that a failure half-way leaves nothing running.
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
  const command = (...args: string[]): Promise<void> => runHardhat(args, settings, folder, cleanup);

  const keys = command('did').then(() => command('signing-key', '--public-key-file', publicKeyFile));
  // Awaited below; a failure before that must not count as unhandled.
  keys.catch(() => undefined);
  const node = await startHardhatNode({ port: ports.node, logFile: join(folder, 'node.log') });
  cleanup.push(() => node.stop());
  say(`local chain at ${node.url}`);
  await command('deploy');
  const registryAddress = readSettings(settings).settings.TOKEN_REGISTRY_ADDRESS ?? '';
  say(`token registry deployed at ${registryAddress}`);
  await keys;
  say('did:web key pair and webhook signing key made');

  const start = (name: string, own: Record<string, string>): Child => {
    const script = join(PROJECT_ROOT, `dist/${name}/main.js`);
    const child = startChild(name, script, [], own, join(folder, `${name}.log`));
    cleanup.push(() => child.stop());
    return child;
  };
  const receiver = start('receiver', receiverSettings(folder, ports.receiver, publicKeyFile));
  const service = start('service', settings);
  await receiver.lineMatching(/"listening"/);
  say(`reference receiver at http://127.0.0.1:${ports.receiver}`);
  await service.lineMatching(/"msg":"listening"/);
  const serviceUrl = `http://localhost:${ports.service}`;
  say(`creator service at ${serviceUrl}`);
  const ends = [
    node.ended.then(() => 'the hardhat node ended by itself.'),
    ...[receiver, service].map((child) => child.ended.then(() => `the ${child.name} ended by itself.`)),
  ];
  const failure = Promise.race(ends).then((reason) => Promise.reject<never>(new Error(reason)));
  failure.catch(() => undefined);
  return { nodeUrl: node.url, serviceUrl, receiver, registryAddress, folder, failure };
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

async function runHardhat(
  args: string[],
  settings: Record<string, string>,
  folder: string,
  cleanup: Cleanup,
): Promise<void> {
  const child = startChild(`hardhat ${args[0]}`, HARDHAT, args, settings, join(folder, `${args[0]}.log`));
  cleanup.push(() => child.stop());
  const code = await child.ended;
  if (code !== 0) throw new Error(`\`npx hardhat ${args[0]}\` failed:\n${child.tail()}`);
}
