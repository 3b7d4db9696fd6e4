import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { sql } from 'kysely';
import { createSecretsCipher } from '../../service/subscriptions/secrets';
import {
  addSubscription,
  defaultStateOf,
  MOST_SUBSCRIPTIONS,
  setDefaultState,
} from '../../service/subscriptions/stored-subscriptions';
import { withFailures } from '../../service/subscriptions/subscription-health';
import { describeOnEngines } from '../helpers/database/engines';
import { openSampleFeed, SAMPLE_FEED } from '../helpers/database/sample-feed';
import { subscriptionWith } from '../helpers/subscription-body';

const cipher = createSecretsCipher(undefined);

describeOnEngines('subscriptions in a new database', (on) => {
  it('can have default paused before any registry was read', async () => {
    await setDefaultState(on.database, 'paused', 1);
    expect(await defaultStateOf(on.database.db, [])).to.equal('paused');
  });

  it('have their failures read with one statement for all of a page', async () => {
    await openSampleFeed(on.database);
    const page = ['a', 'b', 'c'].map((id) => ({ ...subscriptionWith(), id }));
    for (const one of page) await addSubscription(on.database, one, cipher, 1);
    await on.database.db.updateTable('channels').set({ failing_since: 5 }).execute();
    let statements = 0;
    const db = on.database.db.withPlugin({
      transformQuery({ node }) {
        statements++;
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const query = { feeds: [SAMPLE_FEED], failingBefore: 5, hasDefault: false };
    const shown = await withFailures(db, page, query);
    expect(shown.map(({ failingSince }) => failingSince)).to.deep.equal(
      Array(3).fill(new Date(5).toISOString()),
    );
    expect(statements).to.equal(1);
    expect(await withFailures(db, page, { ...query, failingBefore: 4 })).to.deep.equal(page);
  });

  it('are refused beyond 10,000, and accepted again after a deletion', async () => {
    const definition = JSON.stringify(subscriptionWith());
    await sql`insert into subscriptions (name, definition, created_at, changed_at)
        with recursive numbers (i) as (select 1 union all select i + 1 from numbers
          where i < ${sql.lit(MOST_SUBSCRIPTIONS)})
        select 'number ' || i, ${definition}, 1, 1 from numbers`.execute(on.database.db);
    const add = () => addSubscription(on.database, { ...subscriptionWith(), id: randomUUID() }, cipher, 1);
    const refused = await add().catch((error: unknown) => error);
    expect(refused).to.include({
      code: 'SUBSCRIPTIONS_TOO_MANY',
      message: 'There are 10000 subscriptions already. Delete one first.',
    });
    await sql`delete from subscriptions where name = 'number 1'`.execute(on.database.db);
    await add();
  });
});
