import type { Command } from 'commander';
import { printAnswer } from '../exit-code';
import { examples, JSON_FLAG, NETWORK, wholeNumber } from './arguments';

interface Named {
  registry: string;
  network?: string;
  json?: true;
}

type AddOptions = Named & { startBlock?: number; confirmations?: number };

const ADDRESS = '0xd8058efe0198ae9dD7D563e1b4938Dcbc86A1F81';

/** `tdoc registries list`, `add` and `remove`. */
export function addRegistries(program: Command): void {
  const registries = program
    .command('registries')
    .summary('list, add and remove the registries whose events are delivered')
    .description(
      'Lists, adds and removes the registries whose events are delivered. ' +
        'A running service follows within seconds.',
    );
  registries
    .command('list')
    .description('Lists the followed registries.')
    .option(...JSON_FLAG)
    .addHelpText('after', examples('registries list', 'registries list --json'))
    .action(async ({ json }: { json?: true }, command: Command) =>
      printAnswer(command, json === true, () => {
        const { listRegistries } =
          require('../registries/list-registries') as typeof import('../registries/list-registries');
        return listRegistries();
      }),
    );
  registries
    .command('add')
    .description('Follows a registry, after a check against its chain.')
    .requiredOption('--registry <address>', 'registry to follow')
    .option(...NETWORK)
    .option(
      '--start-block <n>',
      'first block to read (default: the first block of the registry)',
      wholeNumber,
    )
    .option(
      '--confirmations <n>',
      'blocks on top of the block of an event before it is delivered',
      wholeNumber,
    )
    .option(...JSON_FLAG)
    .addHelpText('after', examples(`registries add --registry ${ADDRESS} --network amoy`))
    .action(async ({ registry, network, startBlock, confirmations, json }: AddOptions, command: Command) =>
      printAnswer(command, json === true, () => {
        const { addRegistry } =
          require('../registries/change-registries') as typeof import('../registries/change-registries');
        return addRegistry({ registry, network, startBlock, confirmations });
      }),
    );
  registries
    .command('remove')
    .description('Gives a registry up. Its stored events stay, and adding it again goes on where it stopped.')
    .requiredOption('--registry <address>', 'registry to give up')
    .option(...NETWORK)
    .option('--force', 'also if undelivered events wait')
    .option(...JSON_FLAG)
    .addHelpText('after', examples(`registries remove --registry ${ADDRESS} --network amoy`))
    .action(async ({ registry, network, force, json }: Named & { force?: true }, command: Command) =>
      printAnswer(command, json === true, () => {
        const { removeRegistry } =
          require('../registries/change-registries') as typeof import('../registries/change-registries');
        return removeRegistry({ registry, network }, force === true);
      }),
    );
}
