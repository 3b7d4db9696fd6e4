import { systemTime } from '../../service/base/time';
import { createSubscriptions, type Subscriptions } from '../../service/subscriptions/manage-subscriptions';
import { MOST_SUBSCRIPTIONS } from '../../service/subscriptions/stored-subscriptions';
import type { Subscription } from '../../service/subscriptions/subscription';
import type { Answer } from '../answer';
import { Refusal } from '../errors';
import { readJsonInput } from '../files/user-file';
import { withDatabase } from './with-database';

async function withSubscriptions(work: (subscriptions: Subscriptions) => Promise<Answer>): Promise<Answer> {
  return withDatabase((database, config) => {
    const onChanged = async (): Promise<void> => undefined;
    return work(createSubscriptions(config, { database, time: systemTime, onChanged }));
  });
}

/** Lists all subscriptions, the one of the settings first. */
export async function listAll(): Promise<Answer> {
  return withSubscriptions(async (subscriptions) => {
    // One page: its subscriptions may be deleted while a next one is read.
    const page = await subscriptions.list({ limit: MOST_SUBSCRIPTIONS + 1 });
    const all = page?.subscriptions ?? [];
    const lines = all.map(({ id, sink, config }) => `${id}  ${config.state}  ${sink}`);
    return { lines: lines.length > 0 ? lines : ['no subscriptions'], json: all, isYes: true };
  });
}

/** Shows a subscription. @throws RequestError SUBSCRIPTION_UNKNOWN */
export async function showOne(id: string): Promise<Answer> {
  return withSubscriptions(async (subscriptions) => shown(await subscriptions.show(id)));
}

/** Makes the subscription that a file describes; `-` is standard input. */
export async function create(file: string): Promise<Answer> {
  const body = await readJsonInput(file);
  return withSubscriptions(async (subscriptions) => shown(await subscriptions.add(body)));
}

/** Replaces a subscription by the one that a file describes. For `default` it sets only the state. */
export async function update(id: string, file: string): Promise<Answer> {
  const body = await readJsonInput(file);
  return withSubscriptions(async (subscriptions) => shown(await subscriptions.replace(id, body)));
}

/** Deletes a subscription. @throws Refusal SUBSCRIPTION_UNDELIVERED if events wait and it is not forced. */
export async function remove(id: string, { force }: { force?: true }): Promise<Answer> {
  return withSubscriptions(async (subscriptions) => {
    const { undelivered, isRemoved } = await subscriptions.remove(id, force === true);
    if (!isRemoved) {
      const remedy = 'Give --force to delete them with it.';
      const problem = `${undelivered} events are not delivered yet, and would be lost for this subscriber.`;
      throw new Refusal('SUBSCRIPTION_UNDELIVERED', `${problem} ${remedy}`, { remedy });
    }
    return {
      lines: [`${id} deleted, with ${undelivered} undelivered events`],
      json: { deleted: id, undelivered },
      isYes: true,
    };
  });
}

/** Sends a test event. The answer is no if the sink does not accept it. */
export async function test(id: string): Promise<Answer> {
  return withSubscriptions(async (subscriptions) => {
    const json = await subscriptions.test(id);
    const { eventId, isDelivered, status, error, milliseconds } = json;
    const outcome = isDelivered ? `delivered: ${status}` : `not delivered: ${error ?? ''}`;
    return { lines: [`${eventId}  ${outcome}  ${milliseconds} ms`], json, isYes: isDelivered };
  });
}

function shown(subscription: Subscription): Answer {
  return { lines: [], json: subscription, isForAll: true, isYes: true };
}
