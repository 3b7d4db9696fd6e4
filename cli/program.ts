import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { PROJECT_ROOT } from '../service/base/project-root';
import type { Time } from '../service/base/time';
import { EXIT_CODES, print, tell } from './answer';
import { addCredentialCommands } from './commands/credentials';
import { addDatabaseCommands } from './commands/database';
import { addRegistryCommands } from './commands/registry';
import { addSetupCommands } from './commands/setup';

const EXIT_CODE_HELP = `
Exit codes: 0 done, or yes; 1 no, or refused: nothing was changed; 2 failed, or the answer is not known.
Settings are environment variables, or lines of .env (ENV_FILE names another file).`;

/** The commands of `tdoc`. Each loads its code only when it runs, so `--help` answers at once. */
export function createProgram(time: Time): Command {
  const program = new Command('tdoc')
    .description('Operates the transferable document service and reads its documents and tokens.')
    .version(readVersion())
    .option('--stack-traces', 'print the stack traces of errors')
    .showHelpAfterError('(--help shows the arguments and examples)')
    .addHelpText('after', EXIT_CODE_HELP);
  // In the order in which `tdoc --help` lists them.
  addSetupCommands(program);
  addCredentialCommands(program, time);
  addRegistryCommands(program, time);
  addDatabaseCommands(program);
  for (const command of allCommands(program)) {
    command.exitOverride().configureOutput({
      writeOut: (text) => text.trimEnd().split('\n').forEach(print),
      writeErr: (text) => text.trimEnd().split('\n').forEach(tell),
      // It repeats arguments. A suggestion follows on a line of its own.
      outputError: (text) =>
        text
          .trimEnd()
          .split(/\n(?=\()/)
          .forEach(tell),
    });
  }
  return program;
}

/** Runs `tdoc` with these arguments and sets the exit code. */
export async function runTdoc(args: readonly string[], time: Time): Promise<void> {
  try {
    await createProgram(time).parseAsync(args, { from: 'user' });
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    process.exitCode = thrown.exitCode === 0 ? EXIT_CODES.yes : EXIT_CODES.failed;
  }
}

function readVersion(): string {
  const text = readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** A command, and those below it. */
export function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}
