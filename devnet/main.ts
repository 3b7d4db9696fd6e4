import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, InvalidArgumentError } from 'commander';
import { errorText, invalid } from '../cli/errors';
import { createClient } from '../client/create-client';
import type { ServiceEvent } from '../client/events';
import { timelineOf, waterfallOf, type Bar, type Stage } from '../client/timeline';
import { codeOf, messageOf, ServiceError } from '../service/base/errors';
import { PROJECT_ROOT } from '../service/base/project-root';
import { NETWORKS } from '../service/chain/networks';
import { shortType } from '../service/events/cloud-event';
import { BILL_OF_LADING, MINT_EVENTS } from './bill-of-lading';
import { startChild } from './child-process';
import { makeFaults } from './faults';
import { announce, makeRunFolder, preferredPorts, type DevnetFacts, type DevnetOptions } from './place';
import { logTails, startDevnetWith, type Devnet } from './start-devnet';

/** The arguments of `npm run devnet` and `tdoc devnet`. */
interface Arguments extends DevnetOptions {
  /** Whether a document is issued and its token transferred after the start. */
  walk: boolean;
  once?: true;
  json?: true;
  watch?: true;
  faults?: true;
  trace?: true;
}

const PUBLIC = NETWORKS.filter(({ local }) => !local).map(({ name }) => name);

const HELP = `
Examples:
  $ npx tdoc devnet --once
  $ npx tdoc devnet --json --no-walk --port 4300
  $ npx tdoc devnet --receiver http://127.0.0.1:8080/webhook --keep

With --json each line is one JSON object; the one with "type": "ready" names everything that a test needs.
Ctrl-C stops everything. Exit codes: 0 stopped, or done; 1 failed; 2 a flag is unknown or wrong.`;

/** Reads the arguments. Exits with 0 after `--help`, which is printed, and with 2 after wrong ones. */
function readArguments(): Arguments {
  return new Command('tdoc devnet')
    .description('Starts a local chain, the service and a receiver, and issues a document.')
    .option('--receiver <url>', 'deliver events to your own receiver')
    .option('--port <n>', 'port of the service; the node has the next, the receiver the one after', number)
    .option(
      '--block-time <seconds>',
      'time between blocks; 0: a block for each transaction (default: that of the network)',
      number,
    )
    .option('--network <name>', `stand in for a public network: ${PUBLIC.join(', ')}`)
    .option('--confirmations <n>', 'blocks on top of an event before it is delivered', number)
    .option('--retractions', 'tell the receiver of events that a reorganisation took back')
    .option('--keep', 'keep chain, database and keys in .devnet/kept, and go on with them next time')
    .option('--folder <path>', 'keep keys, database, events and logs there')
    .option('--no-walk', 'only start: issue nothing')
    .option('--once', 'end after the document and its transfers')
    .option('--faults', 'make three faults, and tell the receiver of them: the console shows them')
    .option('--trace', 'print how long each stage of the document took')
    .option('--watch', 'in a checkout: build when the sources change, and restart the service')
    .option('--json', 'print JSON lines')
    .addHelpText('after', HELP)
    .showHelpAfterError('(--help shows the flags and examples)')
    .allowExcessArguments(false)
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
    .parse()
    .opts<Arguments>();
}

function number(text: string): number {
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Give a number, 0 or more.');
}

const WEBHOOKS_WITHIN_MS = 60_000;
/** Time to open the console before the token moves, and then to see each step. */
const TO_OPEN_MS = 15_000;
const TO_WATCH_MS = 5_000;

/** Runs `npm run devnet`, and returns its exit code. */
async function main(flags: Arguments): Promise<number> {
  const printer = flags.json ? forPrograms : forPeople;
  const interrupted = new Promise<'interrupted'>((resolveSignal) => {
    // `on`, not `once`: npm passes the terminal's Ctrl-C on, and the second signal must not end this process
    // half-way.
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.on(signal, () => resolveSignal('interrupted'));
  });
  const stopping = new AbortController();
  const ends: (() => unknown)[] = [];
  const starting = start(flags, printer);
  const running = starting.then((devnet) => run(devnet, flags, printer, ends, stopping.signal));
  let hasStarted = true;
  try {
    await Promise.race([starting.catch(() => (hasStarted = false)), interrupted]);
    const outcome = await Promise.race([running, interrupted]);
    if (outcome === 'interrupted') return flags.once ? 1 : 0;
    if (!flags.once) await Promise.race([(await starting).failure, interrupted]);
    return 0;
  } catch (error) {
    process.stderr.write(`\n${error instanceof ServiceError ? errorText(error) : messageOf(error)}\n`);
    return error instanceof ServiceError && WRONG_FLAGS.includes(error.code) ? 2 : 1;
  } finally {
    stopping.abort();
    if (hasStarted) printer.step('stopping');
    await Promise.allSettled([starting.then((devnet) => devnet.stop()), ...ends.map((end) => end())]);
    await Promise.allSettled([running]);
  }
}

/** The codes of flags that cannot be used together, or not here. */
const WRONG_FLAGS = ['ARGUMENT_INVALID', 'NETWORK_UNKNOWN'];

async function start(flags: Arguments, { step: say, webhook: onWebhook }: Printer): Promise<Devnet> {
  const { keep, port, folder, watch } = flags;
  if (keep && flags.faults) throw invalid('--faults empties the wallet, which --keep cannot keep.');
  if (watch && !existsSync(join(PROJECT_ROOT, 'cli/bundle.cjs')))
    throw invalid('--watch needs the sources: the package has none.');
  const chosen = folder ?? (keep ? undefined : makeRunFolder(resolve('.devnet')));
  const ports = port === undefined && !keep ? await preferredPorts(say) : undefined;
  const place = { ...flags, ...(chosen !== undefined && { folder: chosen }) };
  return startDevnetWith(place, { say, onWebhook, ports });
}

/** Does what the flags ask for, until the signal. `ends` gets what undoes it. */
async function run(
  devnet: Devnet,
  flags: Arguments,
  printer: Printer,
  ends: (() => unknown)[],
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  ends.push(announce(factsOf(devnet)));
  const walking = flags.walk && !devnet.isContinued && issueAndWalk(devnet, flags, printer, signal);
  const tokenId = await Promise.race([walking || undefined, devnet.failure]).catch((cause: unknown) => {
    if (codeOf(cause) === 'DEVNET_FAILED') throw cause;
    const message = `${messageOf(cause)}\n\n${logTails(devnet.folder)}`;
    throw new ServiceError('DEVNET_FAILED', message, { cause });
  });
  if (signal.aborted) return;
  if (flags.trace && tokenId) await printTrace(devnet, tokenId, printer);
  if (flags.faults)
    ends.push(await makeFaults(devnet, { say: printer.step, isOwn: flags.receiver === undefined }));
  if (flags.watch) ends.push(restartOnChange(devnet, printer.step));
  if (flags.once) return;
  const page = flags.faults ? undefined : tokenId && pageOf(tokenId);
  printer.ready(devnet, await devnet.consoleLink(page), tokenId);
}

/** The console's page of a token. */
const pageOf = (tokenId: string): string => `token?id=${tokenId}`;

/**
 * Issues a Bill of Lading and transfers its token, and returns the token's id. Checks that every event was
 * delivered, in order.
 */
async function issueAndWalk(
  devnet: Devnet,
  flags: Arguments,
  { step }: Printer,
  signal: AbortSignal,
): Promise<string> {
  const { tokenId } = await devnet.issue(undefined, { remarks: 'shipped on board' });
  step(`Bill of Lading signed and minted: token ${tokenId}`);
  const isWatched = process.stdout.isTTY && !flags.json && !flags.once;
  if (isWatched) {
    step(`watch it in the console: ${await devnet.consoleLink(pageOf(tokenId))}`);
    step(`the holder hands the document on in ${TO_OPEN_MS / 1_000} seconds`);
  }
  const expected: string[] = [...MINT_EVENTS];
  const walk = [
    ['the holder hands the document to account 2', 'transferHolder', 2, ['holder_transfer']],
    ['the beneficiary nominates account 3', 'nominate', 3, ['nomination']],
    [
      'the holder makes the nominee the beneficiary',
      'transferBeneficiary',
      3,
      ['beneficiary_transfer', 'nomination'],
    ],
  ] as const;
  for (const [index, [title, operation, to, events]] of walk.entries()) {
    const pauseMs = index === 0 ? TO_OPEN_MS : TO_WATCH_MS;
    if (isWatched) await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return tokenId;
    step(title);
    await devnet[operation](tokenId, { to });
    expected.push(...events);
  }
  if (flags.receiver !== undefined) return tokenId;
  for (const [index, type] of expected.entries()) {
    const event = await devnet.webhooks.next({ tokenId, withinMs: WEBHOOKS_WITHIN_MS });
    const got = shortType(event.type);
    if (got !== type) throw new Error(`Webhook ${index + 1} should be ${type}, but is ${got}.`);
  }
  step(`all ${expected.length} webhooks verified, in order`);
  return tokenId;
}

/** Prints the stages of a document, once its events are delivered. */
async function printTrace(
  { serviceUrl, adminApiKey }: Devnet,
  tokenId: string,
  { trace }: Printer,
): Promise<void> {
  const client = createClient({ url: serviceUrl, key: adminApiKey });
  const { data: token, error } = await client.GET('/tokens/{tokenId}', { params: { path: { tokenId } } });
  if (token === undefined) throw new Error(`The trace cannot be read: ${error.error.message}`);
  trace(token.issuing?.traceId ?? null, timelineOf(token));
}

/**
 * Builds whenever the sources change, and restarts the service after every build without errors, until the
 * result is called.
 */
function restartOnChange(devnet: Devnet, say: (line: string) => void): () => Promise<void> {
  const script = join(PROJECT_ROOT, 'cli/bundle.cjs');
  const bundler = startChild('esbuild', script, ['--watch'], {}, join(devnet.folder, 'esbuild.log'));
  let isFirst = true;
  let isBroken = false;
  let isWatching = true;
  let restarting = Promise.resolve();
  const restart = async (): Promise<void> => {
    const since = performance.now();
    const outcome = await devnet.restartService().then(
      () => `service restarted in ${((performance.now() - since) / 1000).toFixed(1)} s`,
      (error) => `the service did not start; it is started again after the next change\n${messageOf(error)}`,
    );
    if (isWatching) say(outcome);
  };
  bundler.onLine((line) => {
    isBroken ||= line.includes('[ERROR]');
    // The message, and the place of the error.
    if (line.includes('[ERROR]') || /^ +\S+:\d+:\d+:$/.test(line)) say(line);
    if (!line.includes('build finished')) return;
    if (isFirst) say('watching the sources: the service restarts when they change');
    else if (!isBroken) restarting = restarting.then(restart);
    isFirst = false;
    isBroken = false;
  });
  return async () => {
    isWatching = false;
    await Promise.all([bundler.stop(), restarting]);
  };
}

/** Prints what happens: lines for people, or with `--json` one JSON object a line. */
interface Printer {
  step(this: void, text: string): void;
  webhook(this: void, event: ServiceEvent): void;
  trace(this: void, traceId: string | null, stages: readonly Stage[]): void;
  /** The last lines before it waits. */
  ready(this: void, devnet: Devnet, consoleLink: string, tokenId: string | undefined): void;
}

const startedAt = performance.now();
const print = (line: string): void => void process.stdout.write(`${line}\n`);
/** Seconds since the start, with one digit. */
const elapsed = (): string => ((performance.now() - startedAt) / 1000).toFixed(1);
const printJson = (type: string, members: object): void =>
  print(JSON.stringify({ type, seconds: Number(elapsed()), ...members }));
const say = (text: string): void => print(`${`${elapsed()} s`.padStart(7)}  ${text}`);

const BAR = 40;

/** A line of the waterfall of a document's stages. */
function waterfallLine({ stage, event, milliseconds, error }: Stage, { from, to }: Bar): string {
  const start = Math.min(Math.floor(from * BAR), BAR - 1);
  const bar = `${' '.repeat(start)}${'█'.repeat(Math.max(Math.round(to * BAR) - start, 1))}`;
  const name = `${stage} ${event === null ? '' : shortType(event)}`;
  const took = milliseconds === null ? 'under way' : `${milliseconds} ms`;
  return `  ${name.padEnd(30)} ${bar.padEnd(BAR)} ${took.padStart(9)}${error === null ? '' : `  ${error}`}`;
}

const forPeople: Printer = {
  trace(traceId, stages) {
    const bars = waterfallOf(stages);
    print(`\nThe document, in trace ${traceId}:\n`);
    for (const [index, stage] of stages.entries())
      print(waterfallLine(stage, bars[index] ?? { from: 0, to: 1 }));
    print('');
  },
  step: say,
  webhook: ({ type, id }) => say(`  webhook verified: ${shortType(type).padEnd(20)} ${id}`),
  ready: ({ serviceUrl, folder, accounts }, consoleLink, tokenId = 'TOKEN') =>
    print(`
The console, with a link that logs in once, within 15 minutes:

  ${consoleLink}

Try next, in another terminal:

  npx tdoc operate transferHolder --token ${tokenId} --to 4

  curl -s ${serviceUrl}/.well-known/did.json

  curl -s ${serviceUrl}/create/BILL_OF_LADING -H 'Content-Type: application/json' -d '{
    "owner":  "${accounts[1]}",
    "holder": "${accounts[1]}",
    "credentialSubject": { "type": ["BillOfLading"], "scac": "${BILL_OF_LADING.scac}", "blNumber": "1" }
  }'

Keys, settings, received events and logs are in ${folder}. Ctrl-C stops everything.
`),
};

const forPrograms: Printer = {
  trace: (traceId, stages) => printJson('trace', { traceId, stages }),
  step: (text) => printJson('step', { text }),
  webhook: (event) => printJson('webhook', { event }),
  ready: (devnet, consoleLink) => printJson('ready', { ...factsOf(devnet), consoleLink }),
};

/** The facts in `--json` and in the file of the running devnet. */
function factsOf(devnet: DevnetFacts): DevnetFacts {
  const { serviceUrl, nodeUrl, chainId, registryAddress, receiverUrl, adminApiKey, accounts } = devnet;
  const { folder, publicKeyFile, didDocumentFile, envFile } = devnet;
  const urls = { serviceUrl, nodeUrl, chainId, registryAddress, receiverUrl };
  return { ...urls, adminApiKey, accounts, folder, publicKeyFile, didDocumentFile, envFile };
}

void main(readArguments()).then((code) => process.exit(code));
