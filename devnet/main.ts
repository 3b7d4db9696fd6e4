import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../cli/errors';
import { shortType } from '../service/events/event-types';
import { codeOf, ConfigurationError, messageOf, ServiceError } from '../service/base/errors';
import { PROJECT_ROOT } from '../service/base/project-root';
import { readArguments, type Arguments } from './arguments';
import { announce } from './current';
import type { Devnet } from './devnet';
import { logTails } from './log-tails';
import { preferredPorts } from './ports';
import { factsOf, forPeople, forPrograms, type Printer } from './printer';
import { restartOnChange } from './restart-on-change';
import { makeRunFolder } from './run-folder';
import { startDevnetWith } from './start-devnet';
import { MINT_EVENTS, stepsFor } from './walk-token';

const WEBHOOKS_WITHIN_MS = 60_000;
/** Time to open the console before the token moves, and then to see each step. */
const TO_OPEN_MS = 15_000;
const TO_WATCH_MS = 5_000;

/** Runs `npm run devnet`, and returns its exit code. */
async function main(): Promise<number> {
  const read = readArguments(process.argv.slice(2));
  if ('exitCode' in read) return read.exitCode;
  const flags = read.arguments;
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
  if (watch && !existsSync(join(PROJECT_ROOT, 'cli/bundle.cjs')))
    throw new ConfigurationError('ARGUMENT_INVALID', '--watch needs the sources: the package has none.');
  const chosen = folder ?? (keep ? undefined : makeRunFolder(resolve('.devnet')));
  const ports = port === undefined && !keep ? await preferredPorts(say) : undefined;
  const place = { ...flags, ...(chosen !== undefined && { folder: chosen }) };
  return startDevnetWith(place, { say, onWebhook, ...(ports && { ports }) });
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
  if (flags.watch) ends.push(restartOnChange(devnet, printer.step));
  if (flags.once) return;
  printer.ready(devnet, { tokenId, consoleLink: await devnet.consoleLink(tokenId && pageOf(tokenId)) });
}

/** The console's page of a token. */
function pageOf(tokenId: string): string {
  return `token?id=${tokenId}`;
}

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
  for (const [index, { title, run: send, events }] of stepsFor(devnet, tokenId).entries()) {
    const pauseMs = index === 0 ? TO_OPEN_MS : TO_WATCH_MS;
    if (isWatched) await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return tokenId;
    step(title);
    await send();
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

void main().then((code) => process.exit(code));
