import type { Command } from 'commander';
import { answering } from '../answer';
import type { ListDeliveriesOptions, RedeliverOptions, ShowDeliveriesOptions } from '../database/deliveries';
import type { PurgeOptions } from '../database/purge';
import type { AddRegistryOptions, RemoveRegistryOptions } from '../database/registries';
import type { PrintEventsOptions } from '../events/print-events';
import { examples, JSON_FLAG, NETWORK, REGISTRY, wholeNumber, YES } from './arguments';

const events = () => require('../events/print-events') as typeof import('../events/print-events');
const deliveries = () => require('../database/deliveries') as typeof import('../database/deliveries');
const purge = () => require('../database/purge') as typeof import('../database/purge');
const registries = () => require('../database/registries') as typeof import('../database/registries');
const subscriptions = () =>
  require('../database/subscriptions') as typeof import('../database/subscriptions');

/**
 * `tdoc events`, which asks the service, and commands on its database, which may run meanwhile: `registries`,
 * `deliveries`, `redeliver`, `subscriptions`, `purge-documents` and `purge-events`.
 */
export function addDatabaseCommands(program: Command): void {
  program.commandsGroup("The service's database: events, subscriptions, documents:");
  addRegistries(program);
  program
    .command('events')
    .summary('print the events of a running service, and wait for further ones')
    .description(
      'Prints the events that a running service has recorded, verified, the oldest first. ' +
        'RECEIVER_API_KEY, or else ADMIN_API_KEY, opens them.',
    )
    .option('--follow', 'wait for further events, until Ctrl-C')
    .option('--after <cursor>', 'go on after this cursor; now: only events that are recorded from now on')
    .option('--url <url>', 'address of the service (default: HOST and PORT)')
    .option('--json', 'print one JSON object a line: the event, and the cursor that goes on after it')
    .addHelpText('after', examples('events --follow --after now', 'events --json'))
    .action(answering((options: PrintEventsOptions) => () => events().printEvents(options)));
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
    .action(answering((options: ShowDeliveriesOptions) => () => deliveries().showDeliveries(options)));
  withSelection(program.command('redeliver'))
    .summary('queue events for delivery again')
    .description(
      'Queues events for delivery again: one event, all dead letters, or every event since a block.',
    )
    .option('--subscription <id>', 'to this subscription', 'default')
    .option(...JSON_FLAG)
    .addHelpText('after', examples('redeliver --dead', 'redeliver --from-block 1200'))
    .action(answering((options: RedeliverOptions) => () => deliveries().sendAgain(options)));
  addSubscriptions(program);
  addPurge(program);
}

/** Adds the options that select the events to queue again. */
function withSelection(command: Command): Command {
  return command
    .option('--event <id>', 'one event')
    .option('--dead', 'all dead letters')
    .option('--from-block <n>', 'every event since this block', wholeNumber)
    .option('--registry <address>', 'only the events of this registry');
}

const ADDRESS = '0xd8058efe0198ae9dD7D563e1b4938Dcbc86A1F81';

function addRegistries(program: Command): void {
  const group = program
    .command('registries')
    .summary('list, add and remove the registries whose events are delivered')
    .description(
      'Lists, adds and removes the registries whose events are delivered. ' +
        'A running service follows within seconds.',
    );
  group
    .command('list')
    .description('Lists the followed registries.')
    .option(...JSON_FLAG)
    .addHelpText('after', examples('registries list', 'registries list --json'))
    .action(answering(() => () => registries().listRegistries()));
  group
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
      'blocks on top of the block of an event before it is delivered; or finalized, or safe',
    )
    .option(...JSON_FLAG)
    .addHelpText('after', examples(`registries add --registry ${ADDRESS} --network amoy`))
    .action(answering((options: AddRegistryOptions) => () => registries().addRegistry(options)));
  group
    .command('remove')
    .description('Gives a registry up. Its stored events stay, and adding it again goes on where it stopped.')
    .requiredOption('--registry <address>', 'registry to give up')
    .option(...NETWORK)
    .option('--force', 'also if undelivered events wait')
    .option(...JSON_FLAG)
    .addHelpText('after', examples(`registries remove --registry ${ADDRESS} --network amoy`))
    .action(answering((options: RemoveRegistryOptions) => () => registries().removeRegistry(options)));
}

const ID = ['<id>', 'id of the subscription'] as const;
const FILE = ['<file>', 'JSON of the subscription; - is standard input'] as const;

/** They do on the database itself the same as the API of subscriptions. */
function addSubscriptions(program: Command): void {
  const group = program
    .command('subscriptions')
    .summary('list, make, change, delete and try subscriptions')
    .description('Manages the subscriptions in the database. A running service follows within a second.')
    .addHelpText('after', examples('subscriptions list'));
  const add = (name: string, summary: string, example: string): Command =>
    group
      .command(name)
      .summary(summary)
      .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`)
      .option(...JSON_FLAG)
      .addHelpText('after', examples(`subscriptions ${example}`));

  add('list', 'list all subscriptions', 'list').action(answering(() => () => subscriptions().listAll()));
  add('show', 'show a subscription', 'show default')
    .argument(...ID)
    .action(answering((id: string) => () => subscriptions().showOne(id)));
  add('create', 'make a subscription', 'create subscription.json')
    .argument(...FILE)
    .action(answering((file: string) => () => subscriptions().create(file)));
  add('update', 'replace a subscription, or pause or resume `default`', 'update default state.json')
    .argument(...ID)
    .argument(...FILE)
    .action(answering((id: string, file: string) => () => subscriptions().update(id, file)));
  add('delete', 'delete a subscription', 'delete 0192f3c8-5a00-7000-8000-000000000001')
    .argument(...ID)
    .option('--force', 'also if events for it are undelivered')
    .action(answering((id: string, options: { force?: true }) => () => subscriptions().remove(id, options)));
  add('test', 'send a test event to a subscription', 'test 0192f3c8-5a00-7000-8000-000000000001')
    .argument(...ID)
    .action(answering((id: string) => () => subscriptions().test(id)));
  withSelection(
    add('redeliver', 'queue events for a subscription again', 'redeliver default --dead').argument(...ID),
  ).action(
    answering(
      (subscription: string, options: Omit<RedeliverOptions, 'subscription'>) => () =>
        deliveries().sendAgain({ ...options, subscription }),
    ),
  );
  add('deliveries', 'list the undelivered events of a subscription', 'deliveries default --state dead')
    .argument(...ID)
    .option('--state <state>', 'waiting, failed or dead')
    .option('--token <id>', 'only the events of this token')
    .option('--limit <n>', 'at most this many events', wholeNumber, 50)
    .action(
      answering(
        (id: string, options: ListDeliveriesOptions) => () => deliveries().listUndelivered(id, options),
      ),
    );
}

function addPurge(program: Command): void {
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
    .action(answering((options: PurgeOptions) => (say) => purge().purgeDocuments(options, say)));
  program
    .command('purge-events')
    .summary('remove delivered events from the database')
    .description('Removes delivered events from the database. This cannot be undone.')
    .option('--older-than <days>', 'events that were last sent at least this many days ago', wholeNumber)
    .option(...REGISTRY)
    .option(...YES)
    .option(...JSON_FLAG)
    .addHelpText('after', examples('purge-events --older-than 90'))
    .action(answering((options: PurgeOptions) => (say) => purge().purgeOldEvents(options, say)));
}
