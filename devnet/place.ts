import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ConfigurationError } from '../service/base/errors';
import { findNetwork, knownNetworks, type Network } from '../service/chain/networks';
import type { DevnetOptions } from './devnet';
import { freePorts, portsFrom, requireFree, type Ports } from './ports';
import { keptPort } from './stack-settings';

/** Where a devnet keeps what it has, and where it listens. */
export interface Place {
  network: Network;
  folder: string;
  /** Whether the folder is removed at the end. */
  isTemporary: boolean;
  ports: Ports;
}

/**
 * Checks the options and chooses what they leave open.
 *
 * @param given ports of the caller's choice.
 * @throws ConfigurationError ARGUMENT_INVALID; ServiceError PORT_TAKEN.
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
  const place = folderOf(options);
  return { network, ...place, ports: await portsOf(options, place.folder, given) };
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

function folderOf({ folder, keep }: DevnetOptions): Pick<Place, 'folder' | 'isTemporary'> {
  const chosen = folder ?? (keep ? '.devnet/kept' : undefined);
  if (chosen === undefined) return { folder: mkdtempSync(join(tmpdir(), 'tdoc-devnet-')), isTemporary: true };
  mkdirSync(resolve(chosen), { recursive: true, mode: 0o700 });
  return { folder: resolve(chosen), isTemporary: false };
}

/** The issuer's DID contains the service's port, so what was kept goes on at the same one. */
async function portsOf({ port, keep }: DevnetOptions, folder: string, given?: Ports): Promise<Ports> {
  if (port !== undefined && !(Number.isSafeInteger(port) && port >= 1 && port + 2 <= LAST_PORT))
    throw invalid(`The port is ${port}: give a number, 1 to ${LAST_PORT - 2}.`);
  const kept = keep ? keptPort(folder) : undefined;
  if (kept !== undefined && port !== undefined && port !== kept)
    throw invalid(`What is kept in ${folder} is of port ${kept}: leave the port out, or delete that folder.`);
  if (port !== undefined) return portsFrom(port);
  if (kept !== undefined) return requireFree({ ...(given ?? (await freePorts())), service: kept });
  return given ?? freePorts();
}

function invalid(message: string): ConfigurationError {
  return new ConfigurationError('ARGUMENT_INVALID', message);
}
