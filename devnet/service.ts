import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withValue } from '../cli/files/env-file';
import { SECRET_MODE, writeFileAtomically } from '../cli/files/write-file';
import { createClient, type components } from '../client/create-client';
import { ServiceError, type ErrorCode } from '../service/base/errors';
import { PROJECT_ROOT } from '../service/base/project-root';
import { readSettings } from '../service/config/config';
import { NO_GAS_STATION } from '../service/config/settings';
import { startChild, type Child } from './child-process';
import { filesIn, type DevnetOptions, type Place } from './place';

/** Key of the first account of every Hardhat node: public, and worthless on any other chain. */
const WALLET_PRIVATE_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';

/** A test waits for each event, so the service looks for new blocks often. */
const POLL_INTERVAL_MS = 100;

/** Pauses between the attempts of a delivery, short enough for a test of a receiver that refuses. */
const RETRY = { initialDelayMs: 250, maxDelayMs: 1_000 };

/**
 * Writes the settings of the service into the env file of the folder, so that `tdoc` can use them too. Keys
 * that are there stay.
 */
export function writeSettings(
  { folder, ports, network }: Place,
  { confirmations, retractions }: DevnetOptions,
  receiverUrl: string,
): { adminApiKey: string } {
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
    // Retractions need a subscription of the API.
    WEBHOOK_URL: retractions ? '' : receiverUrl,
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

/** The service of the present build in a process of its own. */
export type ServiceProcess = Awaited<ReturnType<typeof startServiceProcess>>;

/** Starts the service with these settings and waits until it listens. */
export async function startServiceProcess(settings: Record<string, string>, logFile: string) {
  let running: Child | undefined;
  let isStopped = false;
  let restarting: Promise<unknown> = Promise.resolve();
  let report = (): void => undefined;
  const start = async (): Promise<string> => {
    const child = startChild('service', join(PROJECT_ROOT, 'dist/service/main.js'), [], settings, logFile);
    running = child;
    const [, port = ''] = await child.lineMatching(/"url":"http:[^"]*:(\d+)".*"msg":"listening"/);
    void child.ended.then(() => running === child && report());
    return `http://localhost:${port}`;
  };
  const end = async (): Promise<void> => {
    const before = running;
    running = undefined;
    await before?.stop();
  };
  return {
    url: await start().catch(async (error: unknown) => {
      await end();
      throw error;
    }),
    /** Resolves if the service has started and ends without `stop` or `restart`. */
    endedByItself: new Promise<void>((resolve) => (report = resolve)),
    /** Ends the service and starts the present build. Rejects if it does not start, or after `stop`. */
    restart(): Promise<void> {
      const done = restarting.then(async () => {
        await end();
        if (isStopped) throw new ServiceError('DEVNET_FAILED', 'The devnet was stopped.');
        await start();
      });
      restarting = done.catch(() => undefined);
      return done;
    },
    async stop(): Promise<void> {
      isStopped = true;
      await end();
      await restarting;
    },
  };
}

type Schemas = components['schemas'];

/** A document that was issued. */
export interface Issued {
  /** 64 hexadecimal digits, as in `credentialStatus`. */
  tokenId: string;
  /** The signed credential, as POST /create answers it. */
  document: Schemas['IssuedDocument']['signedW3CDocument'];
  /** Hash of the transaction that minted its token. */
  transactionHash: string;
}

/**
 * Issues a Bill of Lading.
 *
 * @throws ServiceError with the code of the answer (docs/error-codes.md).
 */
export async function issueDocument(url: string, body: Schemas['CreateRequest']): Promise<Issued> {
  const path = { documentId: 'BILL_OF_LADING' } as const;
  const created = dataOf(
    await createClient({ url }).POST('/create/{documentId}', { params: { path }, body }),
  );
  if (!('signedW3CDocument' in created)) throw new ServiceError('INTERNAL', 'The document was not minted.');
  const { signedW3CDocument: document, txHash: transactionHash } = created;
  return { tokenId: document.credentialStatus.tokenId, document, transactionHash };
}

/**
 * Subscribes a sink to all events and their retractions, unless it is subscribed already. The subscription of
 * an earlier run to another sink is deleted.
 *
 * @throws ServiceError with the code of the answer.
 */
export async function subscribe(url: string, adminApiKey: string, sink?: string): Promise<void> {
  const client = createClient({ url, key: adminApiKey });
  // Its pauses tell a subscription of a devnet from those of the user.
  const own = dataOf(await client.GET('/subscriptions')).filter(
    ({ config: { retractions, retry } }) =>
      retractions && Object.entries(RETRY).every(([name, ms]) => retry[name as keyof typeof RETRY] === ms),
  );
  for (const { id } of own.filter((one) => one.sink !== sink))
    dataOf(await client.DELETE('/subscriptions/{id}', { params: { path: { id } } }));
  if (sink === undefined || own.some((one) => one.sink === sink)) return;
  const config = { retractions: true, retry: RETRY };
  dataOf(await client.POST('/subscriptions', { body: { sink, protocol: 'HTTP', config } }));
}

/**
 * Makes a link to the console that logs in once.
 *
 * @throws ServiceError DEVNET_FAILED.
 */
export async function makeConsoleLink(
  { serviceUrl, adminApiKey }: { serviceUrl: string; adminApiKey: string },
  page?: string,
): Promise<string> {
  const headers = { authorization: `Bearer ${adminApiKey}` };
  const response = await fetch(`${serviceUrl}/console/api/links`, { method: 'POST', headers });
  if (!response.ok) throw new ServiceError('DEVNET_FAILED', `${response.url} answered ${response.status}.`);
  const { url } = (await response.json()) as { url: string };
  return `${serviceUrl}${url}${page === undefined ? '' : `&to=${page}`}`;
}

/** The answers of the client's calls. */
type Answer<Data> =
  | { data: Data; error?: never; response: Response }
  | { data?: never; error: Schemas['Error']; response: Response };

function dataOf<Data>({ data, error, response }: Answer<Data>): Data {
  if (error === undefined) return data;
  const code = (response.headers.get('X-Error-Code') ?? 'INTERNAL') as ErrorCode;
  // In development an error has a stack, whose first line says why a 500 was answered.
  const [reason = error.error.message] = error.error.stack?.split('\n') ?? [];
  throw new ServiceError(code, `${response.url} answered ${response.status}: ${reason}`);
}
