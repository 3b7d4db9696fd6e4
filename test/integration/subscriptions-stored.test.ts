import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { sql } from 'kysely';
import {
  addSubscription,
  defaultStateOf,
  MOST_SUBSCRIPTIONS,
  setDefaultState,
} from '../../service/subscriptions/stored-subscriptions';
import { describeOnEngines } from '../helpers/database/engines';
import { subscriptionWith } from '../helpers/subscription-body';

describeOnEngines('subscriptions in a new database', (on) => {
  it('can have default paused before any registry was read', async () => {
    await setDefaultState(on.database, 'paused', 1);
    expect(await defaultStateOf(on.database.db, [])).to.equal('paused');
  });

  it('are refused beyond 10,000, and accepted again after a deletion', async () => {
    const definition = JSON.stringify(subscriptionWith());
    await sql`insert into subscriptions (name, definition, created_at, changed_at)
        with recursive numbers (i) as (select 1 union all select i + 1 from numbers
          where i < ${sql.lit(MOST_SUBSCRIPTIONS)})
        select 'number ' || i, ${definition}, 1, 1 from numbers`.execute(on.database.db);
    const add = () => addSubscription(on.database, { ...subscriptionWith(), id: randomUUID() }, undefined, 1);
    const refused = await add().catch((error: unknown) => error);
    expect(refused).to.include({
      code: 'SUBSCRIPTIONS_TOO_MANY',
      message: 'There are 10000 subscriptions already. Delete one first.',
    });
    await sql`delete from subscriptions where name = 'number 1'`.execute(on.database.db);
    await add();
  });
});
