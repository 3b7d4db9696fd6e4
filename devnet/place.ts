import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { invalid } from '../cli/errors';
import { SECRET_MODE, writeFileAtomically } from '../cli/files/write-file';
import { publishedContractsOf } from '../deploy/published-contracts';
import { ConfigurationError, ServiceError } from '../service/base/errors';
import { findNetwork, knownNetworks, type Network } from '../service/chain/networks';
import { readKeptChain, type KeptChain } from './kept-chain';

/** Options of `startDevnet`. */
export interface DevnetOptions {
  /** URL of your own receiver. `webhooks` and `receiver` of the devnet then do not exist. */
  receiver?: string;
  /** Port of the service; the node has the next, the receiver the one after. By default, free ports. */
  port?: number;
  /** Seconds between blocks. 0, the default on a local network: each transaction is mined at once. */
  blockTime?: number;
  /**
   * The network that the node stands in for, for example `amoy`: its chain id, its contracts at their
   * published addresses, and its confirmations. By default `localhost`.
   */
  network?: string;
  /** Blocks on top of an event's block before it is delivered. By default, those of the network. */
  confirmations?: number;
  /** Whether the receiver is told of events that a reorganisation took back. By default not. */
  retractions?: boolean;
  /** Whether chain, database and keys stay in the folder, and the next devnet there goes on with them. */
  keep?: boolean;
  /**
   * Folder for keys, database, received events and logs. By default `.devnet/kept` with `keep`, and otherwise
   * a temporary one, which `stop` removes.
   */
  folder?: string;
}

/** Everything that a test, a shell or a receiver needs to use a devnet. */
export interface DevnetFacts {
  serviceUrl: string;
  nodeUrl: string;
  chainId: number;
  registryAddress: string;
  /** Where events are delivered. */
  receiverUrl: string;
  /** Key of the API of subscriptions and registries. */
  adminApiKey: string;
  /** The node's accounts: it signs for them. Account 0 mints and is the registry's admin. */
  accounts: readonly string[];
  folder: string;
  /** PEM of the key that verifies webhooks. */
  publicKeyFile: string;
  didDocumentFile: string;
  /** The settings of the service: `ENV_FILE=… npx tdoc …` uses them. */
  envFile: string;
}

/** The files of a devnet in its folder. */
export function filesIn(folder: string) {
  return {
    envFile: join(folder, 'service.env'),
    serviceConfig: join(folder, 'service.config.json'),
    didDocument: join(folder, 'did.json'),
    publicKey: join(folder, 'webhook-public-key.pem'),
    events: join(folder, 'received-events.jsonl'),
    chain: join(folder, 'chain.jsonl'),
    ports: join(folder, 'ports.json'),
    /** Folder of the database. */
    data: join(folder, 'data'),
    log: (program: string) => join(folder, `${program}.log`),
  };
}

/** Where a devnet keeps what it has, where it listens, and the chain of an earlier run, which goes on. */
export type Place = Awaited<ReturnType<typeof placeOf>>;

/**
 * Checks the options and chooses what they leave open.
 *
 * @param given ports of the caller's choice.
 * @throws ConfigurationError ARGUMENT_INVALID, NETWORK_UNKNOWN; ServiceError PORT_TAKEN.
 */
export async function placeOf(options: DevnetOptions, given?: Ports) {
  const { network: name = 'localhost' } = options;
  const network = findNetwork(name);
  if (!network)
    throw new ConfigurationError(
      'NETWORK_UNKNOWN',
      `There is no network "${name}". Known: ${knownNetworks()}.`,
    );
  const published = network.local ? undefined : publishedContractsOf(network.chainId);
  if (!network.local && !published)
    throw invalid(`Nothing can stand in for ${name}: TradeTrust publishes no v5 contracts there.`);
  const { blockTime, confirmations, receiver, retractions } = options;
  if (blockTime !== undefined && !(blockTime >= 0 && blockTime <= MOST_SECONDS))
    throw invalid(`The block time is ${blockTime}: give seconds, 0 to ${MOST_SECONDS}.`);
  if (confirmations !== undefined && !(Number.isSafeInteger(confirmations) && confirmations >= 0))
    throw invalid(`The confirmations are ${confirmations}: give a number of blocks, from 0.`);
  if (receiver !== undefined && !/^https?:$/.test(URL.canParse(receiver) ? new URL(receiver).protocol : ''))
    throw invalid(`The receiver is ${receiver}: give an http or https URL.`);
  if (retractions && !network.local && !receiver?.startsWith('https:'))
    throw invalid(
      'Retractions need a subscription, whose sink must be https on a public network: leave the network ' +
        'out, or give an https receiver.',
    );
  const { keep, port, folder = keep ? '.devnet/kept' : undefined } = options;
  const named = folder === undefined ? undefined : resolve(folder);
  const earlier = keep ? named : undefined;
  const kept = earlier === undefined ? undefined : keptChainOf(earlier, network);
  if (named !== undefined && kept === undefined) requireNoRun(named, keep === true);
  const ports = await portsOf(port, earlier, given);
  // Last, so that nothing is left of a start that was refused.
  return { network, published, kept, ports, ...makeFolder(named) };
}

const MOST_SECONDS = 3_600;
const LAST_PORT = 65_535;

/** `leave` removes a temporary folder; other folders stay. */
function makeFolder(named: string | undefined): { folder: string; leave: () => void } {
  if (named !== undefined) {
    mkdirSync(named, { recursive: true, mode: 0o700 });
    return { folder: named, leave: () => undefined };
  }
  const folder = mkdtempSync(join(tmpdir(), 'tdoc-devnet-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  // It has keys, which must not stay after a process that ends without `stop`.
  process.once('exit', remove);
  return {
    folder,
    leave() {
      process.off('exit', remove);
      remove();
    },
  };
}

/** A database would meet a chain that it is not of, and a key a DID with another port. */
function requireNoRun(folder: string, isKept: boolean): void {
  const { data, envFile } = filesIn(folder);
  if (!existsSync(data) && (isKept || !existsSync(envFile))) return;
  const remedy = isKept ? 'Delete that folder.' : 'Delete that folder, or choose another one.';
  throw invalid(`${folder} has an earlier run, whose chain was not kept. ${remedy}`);
}

function keptChainOf(folder: string, { name, chainId }: Network): KeptChain | undefined {
  const file = filesIn(folder).chain;
  const kept = readKeptChain(file);
  if (kept === undefined || kept.head.chainId === chainId) return kept;
  const remedy = 'Start with the network of before, or delete the folder of that file.';
  throw invalid(`${file} is of chain ${kept.head.chainId}, not of ${name} (${chainId}). ${remedy}`);
}

/**
 * The issuer's DID contains the port of the service, and the programs of the user the other ports: a devnet
 * that goes on has those of before.
 */
async function portsOf(
  port: number | undefined,
  earlier: string | undefined,
  given: Ports | undefined,
): Promise<Ports> {
  if (port !== undefined && !(Number.isSafeInteger(port) && port >= 1 && port + 2 <= LAST_PORT))
    throw invalid(`The port is ${port}: give a number, 1 to ${LAST_PORT - 2}.`);
  const file = earlier === undefined ? '' : filesIn(earlier).ports;
  const kept = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Ports) : undefined;
  if (kept !== undefined && port !== undefined && port !== kept.service)
    throw invalid(
      `The devnet in ${earlier} is of port ${kept.service}: leave the port out, or delete that folder.`,
    );
  if (kept !== undefined) return requireFree(kept);
  if (port !== undefined) return requireFree({ service: port, node: port + 1, receiver: port + 2 });
  if (given !== undefined) return given;
  const [service, node, receiver] = await Promise.all([freePort(0), freePort(0), freePort(0)]);
  return { service, node, receiver };
}

/** The ports of a devnet's programs. */
export interface Ports {
  service: number;
  node: number;
  receiver: number;
}

const PREFERRED: Ports = { service: 3000, node: 8545, receiver: 4000 };

/** Gives back ports that are all free. @throws ServiceError PORT_TAKEN. */
async function requireFree(ports: Ports): Promise<Ports> {
  for (const [name, port] of Object.entries(ports) as [string, number][]) {
    if ((await tryPort(port)) === port) continue;
    const remedy = 'Stop the program that listens there, or choose another port.';
    throw new ServiceError('PORT_TAKEN', `Port ${port} of the ${name} is taken. ${remedy}`, { remedy });
  }
  return ports;
}

/** The usual ports, and free ones for those that are taken. */
export async function preferredPorts(say: (line: string) => void): Promise<Ports> {
  const ports = { ...PREFERRED };
  for (const name of ['node', 'service', 'receiver'] as const) {
    ports[name] = await freePort(PREFERRED[name]);
    if (ports[name] !== PREFERRED[name])
      say(`port ${PREFERRED[name]} is taken: the ${name} uses ${ports[name]}`);
  }
  return ports;
}

/** The preferred port of 127.0.0.1 if it is free, or else any free port. */
export async function freePort(preferred: number): Promise<number> {
  return (await tryPort(preferred)) ?? (await tryPort(0)) ?? preferred;
}

function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => {
      const { port: taken } = server.address() as AddressInfo;
      server.close(() => resolve(taken));
    });
  });
}

/**
 * Makes a fresh folder for this run under `parent`, named for the process, and removes the folders of runs
 * that have ended; other files and folders stay. Two devnets at the same time do not disturb each other, and
 * the logs of a run last until the next one.
 */
export function makeRunFolder(parent: string): string {
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(parent))
    if (/^\d+$/.test(name) && (Number(name) === process.pid || !isRunning(Number(name))))
      rmSync(join(parent, name), { recursive: true, force: true });
  const folder = join(parent, String(process.pid));
  mkdirSync(folder, { mode: 0o700 });
  return folder;
}

/** Whether there is a process with this id. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The file in which `npm run devnet` says what is running, for `tdoc operate` in the same folder. */
const FILE = '.devnet/current.json';

/** Writes the file. The result removes it, unless another devnet has written its own since. */
export function announce(facts: DevnetFacts): () => void {
  const file = resolve(FILE);
  writeFileAtomically(file, `${JSON.stringify({ pid: process.pid, ...facts }, null, 2)}\n`, SECRET_MODE);
  return () => {
    if (read(file)?.pid === process.pid) rmSync(file, { force: true });
  };
}

/** The devnet that runs in this folder. Undefined if there is none. */
export function currentDevnet(): DevnetFacts | undefined {
  const current = read(resolve(FILE));
  return current && isRunning(current.pid) ? current : undefined;
}

function read(file: string): (DevnetFacts & { pid: number }) | undefined {
  if (!existsSync(file)) return undefined;
  return JSON.parse(readFileSync(file, 'utf8')) as DevnetFacts & { pid: number };
}
