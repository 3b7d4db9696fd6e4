import type { Command } from 'commander';
import { withExitCode } from '../exit-code';
import { examples, wholeNumber } from './arguments';

interface Options {
  event?: string;
  dead?: true;
  fromBlock?: number;
  registry?: string;
}

/** `tdoc redeliver`. */
export function addRedeliver(program: Command): void {
  program
    .command('redeliver')
    .summary('send events again that were given up, or lost by the subscriber')
    .description('Queues events for delivery once more: one, the dead letters, or all from a block on.')
    .option('--event <id>', 'one event')
    .option('--dead', 'all dead letters')
    .option('--from-block <n>', 'all events of this block and later ones', wholeNumber)
    .option('--registry <address>', 'only the events of this registry')
    .addHelpText('after', examples('redeliver --dead', 'redeliver --from-block 1200'))
    .action(async ({ event, dead, fromBlock, registry }: Options, command: Command) =>
      withExitCode(command, async () => {
        const { sendAgain } =
          require('../deliveries/send-again') as typeof import('../deliveries/send-again');
        const lines = await sendAgain({ event, dead: dead === true, fromBlock, registry });
        for (const line of lines) console.log(line);
        return true;
      }),
    );
}
