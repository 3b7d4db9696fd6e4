import { createPublicKey, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { parseArgs, parseEnv } from 'node:util';
import { FetchError, fetchPages, isSafeUrl, type FetchOptions } from './fetch-events';
import { startReceiver } from './receiver';
import { EventStore, parseEvent, type StoredEvent, type StoreOptions } from './store';
import { onlyKey, publishedKeys, type FindKey } from './verify';

const HELP = `\
The webhook receiver: checks the signature of each delivery, stores the event, and answers.

Usage: npx tsx main.ts [--port N | --fetch URL] [--retractions]
       npx tdoc receiver [--port N | --fetch URL] [--retractions]   where the service is installed

  --port N        listening port; wins over RECEIVER_PORT
  --fetch URL     fetch the events instead of listening: https://trade.example.com/events/stream
  --retractions   for a subscription with the option \`retractions\`: duplicates are found by their id

Settings, in the environment or in the file .env; the environment wins:

  WEBHOOK_PUBLIC_KEY_FILE   the service's public key, PEM         webhook-public-key.pem
  RECEIVER_JWKS_URL         instead of the file: where the service publishes its keys; https
  RECEIVER_API_KEY          for --fetch: your key of the service, tdk_…, or its ADMIN_API_KEY
  RECEIVER_PORT             listening port; 0 is any free one     4000
  RECEIVER_HOST             listening address                     127.0.0.1
  RECEIVER_EVENTS_FILE      where every event is stored           .receiver/received-events.jsonl
  ENV_FILE                  another file than .env

Ctrl-C stops it.
`;
const KEY_REMEDY =
  'Run `npx tdoc signing-key` where the service runs, and copy the webhook-public-key.pem that it writes.';

/** Your work: replace the printing. Events come in order, and again if this failed or the process ended. */
function onEvent({ type, id, subject, data }: StoredEvent): void {
  const { transactionHash, logIndex, retracts, test } = data;
  print({ verified: true, type, id, subject, transactionHash, logIndex, retracts, test });
}

const ARGUMENTS = {
  help: { type: 'boolean', short: 'h' },
  port: { type: 'string' },
  fetch: { type: 'string' },
  retractions: { type: 'boolean' },
} as const;

/** Runs the receiver until SIGTERM or SIGINT. Events go to standard output, problems to standard error. */
async function main(): Promise<void> {
  const { help, port, fetch: url, retractions = false } = parseArgs({ options: ARGUMENTS }).values;
  if (help) return void process.stdout.write(HELP);
  const setting = readSettings();
  const options = {
    findKey: readKeys(setting, url),
    eventsFile: setting('RECEIVER_EVENTS_FILE', '.receiver/received-events.jsonl'),
    retractions,
    onEvent,
    onProblem: (problem: object) => console.error(JSON.stringify(problem)),
  };
  const stop = new AbortController();
  const close = (): void => stop.abort();
  process.on('SIGTERM', close).on('SIGINT', close);
  if (url !== undefined) {
    const key = setting('RECEIVER_API_KEY', '');
    if (key === '')
      throw new Error('RECEIVER_API_KEY is not set. Set it to your key of the service, or ADMIN_API_KEY.');
    // A subscription's own option must not differ from the rule by which the store finds duplicates.
    return fetchEvents({ ...options, url, query: { retractions }, key, signal: stop.signal });
  }
  const receiver = await startReceiver({
    ...options,
    host: setting('RECEIVER_HOST', '127.0.0.1'),
    port: readPort(port ?? setting('RECEIVER_PORT', '4000')),
  });
  print({ listening: receiver.url });
  if (!stop.signal.aborted) await once(stop.signal, 'abort');
  await receiver.close();
}

/** Stores the events that the service has, until the signal aborts. */
async function fetchEvents(options: FetchOptions & StoreOptions & { eventsFile: string }): Promise<void> {
  const cursorFile = `${options.eventsFile}.cursor`;
  // As in verify.ts: by default Node.js gives each address of a distant host up too early.
  setDefaultAutoSelectFamilyAttemptTimeout(2_500);
  const store = await EventStore.open(options.eventsFile, options);
  try {
    const after = existsSync(cursorFile) ? readFileSync(cursorFile, 'utf8') : undefined;
    print({ fetching: options.url });
    for await (const page of fetchPages({ ...options, after })) {
      const added = page.events.map(async ({ body, cursor }) => {
        const event = parseEvent(Buffer.from(body));
        if (event) await store.add(event);
        else options.onProblem?.({ reason: `Not an event, left out. Its cursor is ${cursor}.` });
      });
      await Promise.all(added);
      // Only now: a process that ends before it fetches the same events again, and finds them as duplicates.
      await writeFile(`${cursorFile}.new`, page.cursor, { mode: 0o600, flush: true });
      await rename(`${cursorFile}.new`, cursorFile);
    }
  } catch (cause) {
    if (!(cause instanceof FetchError) || !cause.code.startsWith('CURSOR_')) throw cause;
    const remedy = `Remove ${cursorFile} to begin with the oldest event that the service has.`;
    throw new Error(`${cause.message} ${remedy}`, { cause });
  } finally {
    await store.close();
  }
}

/** A setting by its name, or the fallback. */
type Setting = (name: string, fallback: string) => string;

/** Reads the environment, and ENV_FILE, or `.env` if it exists. */
function readSettings(): Setting {
  const named = process.env.ENV_FILE?.trim();
  const path = named || '.env';
  let settings: NodeJS.Dict<string> = process.env;
  try {
    settings = { ...parseEnv(readFileSync(path, 'utf8')), ...process.env };
  } catch (cause) {
    const isAbsent = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    const remedy = 'Set ENV_FILE to a file that can be read, or to /dev/null for none.';
    if (!isAbsent || named)
      throw new Error(`ENV_FILE: the file ${path} cannot be read. ${remedy}`, { cause });
  }
  return (name, fallback) => settings[name]?.trim() || fallback;
}

function readPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
  if (port <= 65_535) return port;
  throw new Error(`RECEIVER_PORT is "${text}". Set it to a number from 0 (any free port) to 65535.`);
}

function readKeys(setting: Setting, fetched: string | undefined): FindKey {
  if (fetched !== undefined) requireSafe('--fetch', fetched, 'events/stream');
  const file = setting('WEBHOOK_PUBLIC_KEY_FILE', '');
  const published = fetched && file === '' ? new URL('../.well-known/jwks.json', fetched).href : '';
  const url = setting('RECEIVER_JWKS_URL', published);
  if (url === '') return onlyKey(readKeyFile(file || 'webhook-public-key.pem'));
  if (file !== '')
    throw new Error('RECEIVER_JWKS_URL and WEBHOOK_PUBLIC_KEY_FILE are both set. Unset one of them.');
  requireSafe('RECEIVER_JWKS_URL', url, '.well-known/jwks.json');
  return publishedKeys(url);
}

function requireSafe(name: string, text: string, path: string): void {
  if (isSafeUrl(text)) return;
  throw new Error(
    `${name} is not an https URL without user and password (http is accepted for this machine only). ` +
      `Set it to an address such as https://trade.example.com/${path}.`,
  );
}

function readKeyFile(path: string): KeyObject {
  const problemOf = (problem: string, cause?: unknown): Error =>
    new Error(`WEBHOOK_PUBLIC_KEY_FILE: the file ${path} ${problem}. ${KEY_REMEDY}`, { cause });
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (cause) {
    throw problemOf('cannot be read', cause);
  }
  // Node.js would derive the public key from it. But whoever holds the private key can forge events.
  if (pem.includes('PRIVATE KEY')) throw problemOf('holds a private key, which must stay with the service');
  try {
    const key = createPublicKey(pem);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // The message below covers it.
  }
  throw problemOf('is not an Ed25519 public key in PEM form');
}

function print(value: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Remedies of errors of Node.js, by the beginnings of their codes. */
const REMEDIES = {
  EADDRINUSE: '. Set RECEIVER_PORT to a free port.',
  ERR_PARSE_ARGS: '. --help shows the arguments and the settings.',
};

function fail(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const [, remedy = ''] = Object.entries(REMEDIES).find(([begin]) => code.startsWith(begin)) ?? [];
  console.error(`The receiver stopped. ${message}${remedy}`);
  process.exitCode = 1;
}

main().catch(fail);
