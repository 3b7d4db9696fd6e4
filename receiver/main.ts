import { createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs, parseEnv } from 'node:util';
import { startReceiver } from './receiver';
import type { StoredEvent } from './store';
import { onlyKey, publishedKeys, type FindKey } from './verify';

const HELP = `\
The webhook receiver: checks the signature of each delivery, stores the event, and answers.

Usage: npx tsx main.ts [--port N] [--retractions]
       npx tdoc receiver [--port N] [--retractions]   where the service is installed

  --port N        listening port; wins over RECEIVER_PORT
  --retractions   for a subscription with the option \`retractions\`: duplicates are found by their id

Settings, in the environment or in the file .env; the environment wins:

  WEBHOOK_PUBLIC_KEY_FILE   the service's public key, PEM         webhook-public-key.pem
  RECEIVER_JWKS_URL         instead of the file: where the service publishes its keys; https
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

/** Runs the receiver until SIGTERM or SIGINT. Events go to standard output, problems to standard error. */
async function main(): Promise<void> {
  const { help, port, retractions } = readArguments();
  if (help) return void process.stdout.write(HELP);
  const setting = readSettings();
  const receiver = await startReceiver({
    host: setting('RECEIVER_HOST', '127.0.0.1'),
    port: readPort(port ?? setting('RECEIVER_PORT', '4000')),
    findKey: readKeys(setting),
    eventsFile: setting('RECEIVER_EVENTS_FILE', '.receiver/received-events.jsonl'),
    retractions,
    onEvent,
    onProblem: (problem) => console.error(JSON.stringify(problem)),
  });
  let closing: Promise<void> | undefined;
  const close = (): void => void (closing ??= receiver.close().catch(fail));
  process.on('SIGTERM', close).on('SIGINT', close);
  // Last: a process that waits for this line may send signals at once.
  print({ listening: receiver.url });
}

function readArguments(): { help?: boolean; port?: string; retractions?: boolean } {
  const options = {
    help: { type: 'boolean', short: 'h' },
    port: { type: 'string' },
    retractions: { type: 'boolean' },
  } as const;
  try {
    return parseArgs({ options }).values;
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${message}. --help shows the arguments and the settings.`, { cause });
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

function readKeys(setting: Setting): FindKey {
  const url = setting('RECEIVER_JWKS_URL', '');
  if (url === '') return onlyKey(readKeyFile(setting('WEBHOOK_PUBLIC_KEY_FILE', 'webhook-public-key.pem')));
  if (setting('WEBHOOK_PUBLIC_KEY_FILE', '') !== '')
    throw new Error('RECEIVER_JWKS_URL and WEBHOOK_PUBLIC_KEY_FILE are both set. Unset one of them.');
  if (isSafe(url)) return publishedKeys(url);
  throw new Error(
    'RECEIVER_JWKS_URL is not an https URL without user and password ' +
      '(http is accepted for this machine only). ' +
      'Set it to the address of the keys: https://trade.example.com/.well-known/jwks.json.',
  );
}

/** Over plain http, anybody on the way could replace the keys. */
function isSafe(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  const isThisMachine = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  return username + password === '' && (protocol === 'https:' || (protocol === 'http:' && isThisMachine));
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

function fail(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
  console.error(`The receiver stopped. ${message}${isTaken ? '. Set RECEIVER_PORT to a free port.' : ''}`);
  process.exitCode = 1;
}

main().catch(fail);
