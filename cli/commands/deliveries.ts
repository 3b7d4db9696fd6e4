import type { Command } from 'commander';
import { withExitCode } from '../exit-code';
import { examples } from './arguments';

interface Options {
  dead?: true;
  orphaned?: true;
  event?: string;
  registry?: string;
  json?: true;
}

/** `tdoc deliveries`. */
export function addDeliveries(program: Command): void {
  program
    .command('deliveries')
    .summary('show waiting deliveries, dead letters, orphaned events or one event')
    .description(
      'Shows the waiting deliveries or, with an option, dead letters, orphaned events or one event.',
    )
    .option('--dead', 'dead letters: the events that were given up')
    .option('--orphaned', 'events that were sent before their block was orphaned')
    .option('--event <id>', 'one event: its body and every attempt')
    .option('--registry <address>', 'only the events of this registry')
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', examples('deliveries', 'deliveries --dead --json'))
    .action(async ({ dead, orphaned, event, registry, json }: Options, command: Command) =>
      withExitCode(command, async () => {
        const { showDeliveries } =
          require('../deliveries/show-deliveries') as typeof import('../deliveries/show-deliveries');
        const flags = { dead: dead === true, orphaned: orphaned === true, json: json === true };
        for (const line of await showDeliveries({ ...flags, event, registry })) console.log(line);
        return true;
      }),
    );
}
