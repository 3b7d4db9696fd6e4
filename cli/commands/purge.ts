import type { Command } from 'commander';
import { printAnswer } from '../exit-code';
import { examples, JSON_FLAG, REGISTRY, wholeNumber, YES } from './arguments';

interface Options {
  olderThan?: number;
  token?: string;
  registry?: string;
  yes?: true;
  json?: true;
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
    .option(...JSON_FLAG)
    .addHelpText('after', examples('purge-documents --older-than 365'))
    .action(async ({ olderThan, token, registry, yes, json }: Options, command: Command) =>
      printAnswer(command, json === true, (say) => {
        const { purgeDocuments } =
          require('../documents/purge-documents') as typeof import('../documents/purge-documents');
        return purgeDocuments({ olderThan, token, registry, isAgreed: yes === true }, say);
      }),
    );
  program
    .command('purge-events')
    .summary('remove delivered events from the database')
    .description('Removes delivered events from the database. This cannot be undone.')
    .option('--older-than <days>', 'events that were last sent at least this many days ago', wholeNumber)
    .option(...REGISTRY)
    .option(...YES)
    .option(...JSON_FLAG)
    .addHelpText('after', examples('purge-events --older-than 90'))
    .action(async ({ olderThan, registry, yes, json }: Options, command: Command) =>
      printAnswer(command, json === true, (say) => {
        const { purgeOldEvents } =
          require('../deliveries/purge-old-events') as typeof import('../deliveries/purge-old-events');
        return purgeOldEvents({ olderThan, registry, isAgreed: yes === true }, say);
      }),
    );
}
