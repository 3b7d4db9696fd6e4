import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ConfigurationError } from '../service/base/errors';
import { findNetwork, knownNetworks, type Network } from '../service/chain/networks';
import type { DevnetOptions } from './devnet';
import { readKeptChain, type KeptChain } from './kept-chain';
import { freePorts, portsFrom, requireFree, type Ports } from './ports';
import { filesIn, keptPorts } from './stack-settings';

/** Where a devnet keeps what it has, and where it listens. */
export interface Place {
  network: Network;
  folder: string;
  /** Removes a temporary folder; other folders stay. */
  leave: () => void;
  /** The chain of an earlier run, which goes on. */
  kept: KeptChain | undefined;
  ports: Ports;
}

/**
 * Checks the options and chooses what they leave open.
 *
 * @param given ports of the caller's choice.
 * @throws ConfigurationError ARGUMENT_INVALID, NETWORK_UNKNOWN; ServiceError PORT_TAKEN.
 */
export async function placeOf(options: DevnetOptions, given?: Ports): Promise<Place> {
  const network = networkOf(options.network);
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
  const { keep, folder = keep ? '.devnet/kept' : undefined } = options;
  const earlier = keep && folder !== undefined ? resolve(folder) : undefined;
  const kept = earlier === undefined ? undefined : keptChainOf(earlier, network);
  if (folder !== undefined && kept === undefined) requireNoRun(resolve(folder), earlier !== undefined);
  const ports = await portsOf(options.port, earlier, given);
  // Last, so that nothing is left of a start that was refused.
  return { network, kept, ports, ...makeFolder(folder) };
}

const MOST_SECONDS = 3_600;
const LAST_PORT = 65_535;

function networkOf(name = 'localhost'): Network {
  const network = findNetwork(name);
  if (network) return network;
  throw new ConfigurationError(
    'NETWORK_UNKNOWN',
    `There is no network "${name}". Known: ${knownNetworks()}.`,
  );
}

function makeFolder(named?: string): Pick<Place, 'folder' | 'leave'> {
  if (named !== undefined) {
    const folder = resolve(named);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return { folder, leave: () => undefined };
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
async function portsOf(port?: number, earlier?: string, given?: Ports): Promise<Ports> {
  if (port !== undefined && !(Number.isSafeInteger(port) && port >= 1 && port + 2 <= LAST_PORT))
    throw invalid(`The port is ${port}: give a number, 1 to ${LAST_PORT - 2}.`);
  const kept = earlier === undefined ? undefined : keptPorts(earlier);
  if (kept === undefined) return port === undefined ? (given ?? freePorts()) : portsFrom(port);
  if (port === undefined || port === kept.service) return requireFree(kept);
  throw invalid(
    `The devnet in ${earlier} is of port ${kept.service}: leave the port out, or delete that folder.`,
  );
}

function invalid(message: string): ConfigurationError {
  return new ConfigurationError('ARGUMENT_INVALID', message);
}
