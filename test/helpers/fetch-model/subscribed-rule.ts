import type { ChainEvent, Retraction } from '../../../client/events';
import type { Database } from '../../../service/database/database';
import { addSubscription, replaceSubscription } from '../database/subscriber';
import { randomRule, type TYPES } from '../live-change/rule';
import type { SeededRandom } from '../seeded-random';

/** What a page selects, without the code that is tested. */
export interface StreamRule {
  readonly text: string;
  wants(event: ChainEvent | Retraction): boolean;
}

export const NO_RULE: StreamRule = { text: 'no rule', wants: () => true };

/** The rule of a stored subscription, which is replaced by others. */
export class SubscribedRule {
  #current = NO_RULE;

  /** @param tokens and `sources`: those of the events. */
  constructor(
    private readonly subscription: { name: string; hasRetractions: boolean },
    private readonly tokens: readonly bigint[],
    private readonly sources: readonly string[],
    private readonly random: SeededRandom,
  ) {}

  get current(): StreamRule {
    return this.#current;
  }

  async add(database: Database): Promise<void> {
    await addSubscription(database, this.#next(), this.subscription.name);
  }

  async replace(database: Database): Promise<void> {
    await replaceSubscription(database, this.subscription.name, this.#next());
  }

  /** As it is stored. */
  async definition({ db }: Database): Promise<string> {
    const { definition } = await db
      .selectFrom('subscriptions')
      .select('definition')
      .where('name', '=', this.subscription.name)
      .executeTakeFirstOrThrow();
    return definition ?? '';
  }

  /** Draws the next rule, and returns its members. */
  #next(): object {
    const rule = randomRule(this.random, this.tokens);
    const source = this.random.chance(0.3) ? this.random.pick(this.sources) : undefined;
    const all = { ...rule.members, ...(source && { source }) };
    this.#current = {
      text: JSON.stringify(all),
      wants: ({ source: from, type, data }) =>
        (source ?? from) === from &&
        rule.wants({
          type: type.slice('com.service.etr.'.length) as (typeof TYPES)[number],
          tokenId: 'tokenIdHex' in data ? BigInt(data.tokenId) : undefined,
        }),
    };
    return { ...all, config: { retractions: this.subscription.hasRetractions } };
  }
}
