import type { Command } from 'commander';
import { withExitCode } from '../exit-code';
import { examples, REGISTRY, wholeNumber, YES } from './arguments';

interface Options {
  olderThan?: number;
  token?: string;
  registry?: string;
  yes?: true;
}

/** `tdoc purge-documents` and `tdoc purge-events`. Exit code 1: not confirmed, nothing was removed. */
export function addPurge(program: Command): void {
  program
    .command('purge-documents')
    .summary('remove issued documents from the database')
    .description(
      'Removes issued documents from the database: one, or all that are old enough. This cannot be undone.',
    )
    .option(
      '--older-than <days>',
      'documents that became final or failed at least this many days ago',
      wholeNumber,
    )
    .option('--token <id>', 'the document of this token')
    .option(...REGISTRY)
    .option(...YES)
    .addHelpText('after', examples('purge-documents --older-than 365'))
    .action(async ({ olderThan, token, registry, yes }: Options, command: Command) =>
      withExitCode(command, async () => {
        const { purgeDocuments } =
          require('../documents/purge-documents') as typeof import('../documents/purge-documents');
        await purgeDocuments({ olderThan, token, registry, isAgreed: yes === true }, (line) =>
          console.log(line),
        );
        return true;
      }),
    );
  program
    .command('purge-events')
    .summary('remove delivered events from the database')
    .description('Removes delivered events from the database. This cannot be undone.')
    .option('--older-than <days>', 'events that were last sent at least this many days ago', wholeNumber)
    .option(...REGISTRY)
    .option(...YES)
    .addHelpText('after', examples('purge-events --older-than 90'))
    .action(async ({ olderThan, registry, yes }: Options, command: Command) =>
      withExitCode(command, async () => {
        const { purgeOldEvents } =
          require('../deliveries/purge-old-events') as typeof import('../deliveries/purge-old-events');
        await purgeOldEvents({ olderThan, registry, isAgreed: yes === true }, (line) => console.log(line));
        return true;
      }),
    );
}
