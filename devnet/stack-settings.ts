import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withValue } from '../cli/files/env-file';
import { SECRET_MODE, writeFileAtomically } from '../cli/files/write-file';
import { NO_GAS_STATION } from '../service/config/settings';
import { readSettings } from '../service/config/config';
import type { Network } from '../service/chain/networks';
import type { Ports } from './ports';

/** Key of the first account of every Hardhat node: public, and worthless on any other chain. */
const WALLET_PRIVATE_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';

/** A test waits for each event, so the service looks for new blocks often. */
const POLL_INTERVAL_MS = 100;

/** Pauses between the attempts of a delivery, short enough for a test of a receiver that refuses. */
export const RETRY = { initialDelayMs: 250, maxDelayMs: 1_000 };

/** The files of a devnet in its folder. */
interface StackFiles {
  envFile: string;
  serviceConfig: string;
  didDocument: string;
  publicKey: string;
  events: string;
  chain: string;
  ports: string;
  /** Folder of the database. */
  data: string;
  log(program: string): string;
}

export function filesIn(folder: string): StackFiles {
  return {
    envFile: join(folder, 'service.env'),
    serviceConfig: join(folder, 'service.config.json'),
    didDocument: join(folder, 'did.json'),
    publicKey: join(folder, 'webhook-public-key.pem'),
    events: join(folder, 'received-events.jsonl'),
    chain: join(folder, 'chain.jsonl'),
    ports: join(folder, 'ports.json'),
    data: join(folder, 'data'),
    log: (program) => join(folder, `${program}.log`),
  };
}

/** The facts that the settings of the service follow from. */
interface StackFacts {
  folder: string;
  ports: Ports;
  network: Network;
  /** Undefined: no webhook in the settings, because there is a subscription of the API. */
  webhookUrl: string | undefined;
  confirmations: number | undefined;
}

/**
 * Writes the settings of the service into the env file of the folder, so that `tdoc` can use them too. Keys
 * that are there stay.
 */
export function writeSettings(facts: StackFacts): { adminApiKey: string } {
  const { folder, ports, network, webhookUrl, confirmations } = facts;
  const { envFile, serviceConfig, didDocument, data, ports: portsFile } = filesIn(folder);
  const kept = readSettings({ ENV_FILE: envFile }).settings;
  const adminApiKey = kept.ADMIN_API_KEY ?? randomBytes(24).toString('base64url');
  const settings: Record<string, string> = {
    SERVICE_CONFIG: serviceConfig,
    DID_DOCUMENT_PATH: didDocument,
    DATA_DIR: data,
    DOMAIN: `localhost:${ports.service}`,
    PORT: String(ports.service),
    NET: String(network.chainId),
    RPC_URL: `http://127.0.0.1:${ports.node}`,
    GAS_STATION_URL: NO_GAS_STATION,
    POLL_INTERVAL_MS: String(POLL_INTERVAL_MS),
    WALLET_PRIVATE_KEY,
    ADMIN_API_KEY: adminApiKey,
    SECRETS_KEY: kept.SECRETS_KEY ?? randomBytes(32).toString('base64'),
    ALLOW_PRIVATE_SINKS: 'true',
    // Errors then have their reasons.
    NODE_ENV: 'development',
    // Each thread takes a second of processor time to start.
    SIGNING_THREADS: '1',
    WEBHOOK_URL: webhookUrl ?? '',
    CONFIRMATIONS: confirmations === undefined ? '' : String(confirmations),
  };
  let text = existsSync(envFile) ? readFileSync(envFile, 'utf8') : '';
  for (const [name, value] of Object.entries(settings)) text = withValue(text, name, value);
  writeFileAtomically(envFile, text, SECRET_MODE);
  writeFileAtomically(portsFile, JSON.stringify(ports), SECRET_MODE);
  if (!existsSync(serviceConfig))
    writeFileAtomically(serviceConfig, JSON.stringify({ webhook: { retry: RETRY } }), SECRET_MODE);
  return { adminApiKey };
}

/** The ports of an earlier run in this folder. */
export function keptPorts(folder: string): Ports | undefined {
  const { ports } = filesIn(folder);
  return existsSync(ports) ? (JSON.parse(readFileSync(ports, 'utf8')) as Ports) : undefined;
}
