import type { Command } from 'commander';
import { printAnswer } from '../exit-code';
import { examples, JSON_FLAG, wholeNumber } from './arguments';

interface Options {
  event?: string;
  dead?: true;
  fromBlock?: number;
  registry?: string;
  subscription: string;
  json?: true;
}

/** `tdoc redeliver`. */
export function addRedeliver(program: Command): void {
  program
    .command('redeliver')
    .summary('queue events for delivery again')
    .description(
      'Queues events for delivery again: one event, all dead letters, or every event since a block.',
    )
    .option('--event <id>', 'one event')
    .option('--dead', 'all dead letters')
    .option('--from-block <n>', 'every event since this block', wholeNumber)
    .option('--registry <address>', 'only the events of this registry')
    .option('--subscription <id>', 'to this subscription', 'default')
    .option(...JSON_FLAG)
    .addHelpText('after', examples('redeliver --dead', 'redeliver --from-block 1200'))
    .action(async ({ event, dead, fromBlock, registry, subscription, json }: Options, command: Command) =>
      printAnswer(command, json === true, () => {
        const { sendAgain } =
          require('../deliveries/send-again') as typeof import('../deliveries/send-again');
        return sendAgain({ event, dead: dead === true, fromBlock, registry, subscription });
      }),
    );
}
