import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { NETWORKS } from '../service/chain/networks';
import type { DevnetOptions } from './devnet';

/** The arguments of `npm run devnet` and `tdoc devnet`. */
export interface Arguments extends DevnetOptions {
  /** Whether a document is issued and its token transferred after the start. */
  walk: boolean;
  once?: true;
  json?: true;
  watch?: true;
}

const HELP = `
Examples:
  $ npx tdoc devnet --once
  $ npx tdoc devnet --json --no-walk --port 4300
  $ npx tdoc devnet --receiver http://127.0.0.1:8080/webhook --keep

With --json each line is one JSON object; the one with "type": "ready" names everything that a test needs.
Ctrl-C stops everything. Exit codes: 0 stopped, or done; 1 failed; 2 a flag is unknown or wrong.`;

/** Reads the arguments. The exit code is 0 after `--help`, which is printed, and 2 after wrong ones. */
export function readArguments(args: readonly string[]): { arguments: Arguments } | { exitCode: number } {
  const command = new Command('tdoc devnet')
    .description('Starts a local chain, the service and a receiver, and issues a document.')
    .option('--receiver <url>', 'deliver events to your own receiver', url)
    .option('--port <n>', 'port of the service; the node has the next, the receiver the one after', number)
    .option(
      '--block-time <seconds>',
      'time between blocks; 0: a block for each transaction (default: that of the network)',
      number,
    )
    .option('--network <name>', `stand in for a public network: ${publicNames()}`)
    .option('--confirmations <n>', 'blocks on top of an event before it is delivered', number)
    .option('--retractions', 'tell the receiver of events that a reorganisation took back')
    .option('--keep', 'keep chain, database and keys in .devnet/kept, and go on with them next time')
    .option('--folder <path>', 'keep keys, database, events and logs there')
    .option('--no-walk', 'only start: issue nothing')
    .option('--once', 'end after the document and its transfers')
    .option('--watch', 'in a checkout: build when the sources change, and restart the service')
    .option('--json', 'print JSON lines')
    .addHelpText('after', HELP)
    .showHelpAfterError('(--help shows the flags and examples)')
    .allowExcessArguments(false)
    .exitOverride();
  try {
    return { arguments: command.parse(args, { from: 'user' }).opts<Arguments>() };
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    return { exitCode: thrown.exitCode === 0 ? 0 : 2 };
  }
}

function number(text: string): number {
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Give a number, 0 or more.');
}

function url(text: string): string {
  if (/^https?:\/\//.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError('Give a URL with http:// or https://.');
}

function publicNames(): string {
  return NETWORKS.filter(({ local }) => !local)
    .map(({ name }) => name)
    .join(', ');
}
