import type { Command } from 'commander';
import type { Answer } from '../answer';
import { printAnswer } from '../exit-code';
import { examples, JSON_FLAG, wholeNumber } from './arguments';

interface Json {
  json?: true;
}

const ID = ['<id>', 'id of the subscription'] as const;
const FILE = ['<file>', 'JSON of the subscription; - is standard input'] as const;

const manage = (): typeof import('../subscriptions/manage') =>
  require('../subscriptions/manage') as typeof import('../subscriptions/manage');

/** `tdoc subscriptions …` does on the database itself the same as the API of subscriptions. */
export function addSubscriptions(program: Command): void {
  const subscriptions = program
    .command('subscriptions')
    .summary('list, make, change, delete and try subscriptions')
    .description('Manages the subscriptions in the database. A running service follows within a second.')
    .addHelpText('after', examples('subscriptions list'));
  const add = (name: string, summary: string, example: string): Command =>
    subscriptions
      .command(name)
      .summary(summary)
      .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`)
      .option(...JSON_FLAG)
      .addHelpText('after', examples(`subscriptions ${example}`));
  const print = (command: Command, { json }: Json, work: () => Promise<Answer>): Promise<void> =>
    printAnswer(command, json === true, work);

  add('list', 'list all subscriptions', 'list').action((options: Json, command: Command) =>
    print(command, options, () => manage().listAll()),
  );
  add('show', 'show a subscription', 'show default')
    .argument(...ID)
    .action((id: string, options: Json, command: Command) =>
      print(command, options, () => manage().showOne(id)),
    );
  add('create', 'make a subscription', 'create subscription.json')
    .argument(...FILE)
    .action((file: string, options: Json, command: Command) =>
      print(command, options, () => manage().create(file)),
    );
  add('update', 'replace a subscription, or pause or resume `default`', 'update default state.json')
    .argument(...ID)
    .argument(...FILE)
    .action((id: string, file: string, options: Json, command: Command) =>
      print(command, options, () => manage().update(id, file)),
    );
  add('delete', 'delete a subscription', 'delete 0192f3c8-5a00-7000-8000-000000000001')
    .argument(...ID)
    .option('--force', 'also if events for it are undelivered')
    .action((id: string, options: Json & { force?: true }, command: Command) =>
      print(command, options, () => manage().remove(id, options.force === true)),
    );
  add('test', 'send a test event to a subscription', 'test 0192f3c8-5a00-7000-8000-000000000001')
    .argument(...ID)
    .action((id: string, options: Json, command: Command) =>
      print(command, options, () => manage().test(id)),
    );
  add('redeliver', 'queue events for a subscription again', 'redeliver default --dead')
    .argument(...ID)
    .option('--event <id>', 'one event')
    .option('--dead', 'all dead letters')
    .option('--from-block <n>', 'every event since this block', wholeNumber)
    .option('--registry <address>', 'only the events of this registry')
    .action((subscription: string, options: RedeliverOptions, command: Command) =>
      print(command, options, () => {
        const { sendAgain } =
          require('../deliveries/send-again') as typeof import('../deliveries/send-again');
        const { event, dead, fromBlock, registry } = options;
        return sendAgain({ event, dead: dead === true, fromBlock, registry, subscription });
      }),
    );
  add('deliveries', 'list the undelivered events of a subscription', 'deliveries default --state dead')
    .argument(...ID)
    .option('--state <state>', 'waiting, failed or dead')
    .option('--token <id>', 'only the events of this token')
    .option('--limit <n>', 'at most this many', wholeNumber, 50)
    .action((id: string, options: DeliveriesOptions, command: Command) =>
      print(command, options, () => {
        const { listDeliveries } =
          require('../subscriptions/list-deliveries') as typeof import('../subscriptions/list-deliveries');
        const { state, token, limit } = options;
        return listDeliveries(id, { state, token, limit });
      }),
    );
}

interface RedeliverOptions extends Json {
  event?: string;
  dead?: true;
  fromBlock?: number;
  registry?: string;
}

interface DeliveriesOptions extends Json {
  state?: string;
  token?: string;
  limit: number;
}
