import { parseArgs } from 'node:util';
import { startReceiver } from './app';
import { readReceiverConfig, SettingError } from './config';
import type { ServiceEvent } from './event-schemas';
import { HELP } from './help';
import { idKeyOf } from './received-event';
import { States } from './states';

/**
 * Starts the receiver and runs it until SIGTERM or SIGINT. Events go to standard output, problems to standard
 * error.
 */
async function main(): Promise<void> {
  const { help, port, state } = readArguments();
  if (help) return void process.stdout.write(HELP);
  const states = state ? new States() : undefined;
  const printState = (event: ServiceEvent): void => {
    const changed = states?.add(event);
    if (changed !== undefined) print({ state: changed });
  };
  const receiver = await startReceiver({
    ...readReceiverConfig(port === undefined ? {} : { RECEIVER_PORT: port }),
    ...(states && { keyOf: idKeyOf, onStored: (received) => void states.add(received) }),
    onEvent: (event) => {
      const { transactionHash, logIndex } = event.data;
      print({ ...summaryOf(event), transactionHash, logIndex });
      printState(event);
    },
    onRetraction: (event) => {
      print({ ...summaryOf(event), retracts: event.data.retracts });
      printState(event);
    },
    onTest: (event) => print({ ...summaryOf(event), test: true }),
    onUnknown: ({ unknown }) => print({ verified: true, unknown }),
    onDamaged: (problem) => console.error(JSON.stringify({ problem })),
    onProblem: (problem) => console.error(JSON.stringify(problem)),
  });

  let isClosing = false;
  const close = (): void => {
    if (isClosing) return;
    isClosing = true;
    receiver.close().catch(fail);
  };
  process.on('SIGTERM', close);
  process.on('SIGINT', close);
  for (const stored of states?.all() ?? []) print({ state: stored });
  // Last: a process that waits for this line may send signals at once.
  print({ listening: receiver.url });
}

/** @throws SettingError */
function readArguments(): { help?: boolean; port?: string; state?: boolean } {
  const options = {
    help: { type: 'boolean', short: 'h' },
    port: { type: 'string' },
    state: { type: 'boolean' },
  } as const;
  try {
    return parseArgs({ options }).values;
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new SettingError(`${message}. --help shows the arguments and the settings.`, { cause });
  }
}

function summaryOf(event: ServiceEvent): Record<string, unknown> {
  const { type, id } = event;
  return { verified: true, type, id, ...('subject' in event && { subject: event.subject }) };
}

function print(value: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

function fail(error: unknown): void {
  console.error(`The receiver stopped. ${explain(error)}`);
  process.exitCode = 1;
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isTaken = 'code' in error && error.code === 'EADDRINUSE';
  return isTaken ? `${error.message}. Set RECEIVER_PORT to a free port.` : error.message;
}

main().catch(fail);
