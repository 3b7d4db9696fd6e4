import { setImmediate as turn } from 'node:timers/promises';
import { lookup } from 'node:dns';
import { join } from 'node:path';
import { expect } from 'chai';
import type { KyselyPlugin } from 'kysely';
import pino from 'pino';
import { createLifecycle } from '../../service/base/lifecycle';
import { systemTime, newDeferred } from '../../service/base/time';
import { startEventDelivery } from '../../service/composition/event-delivery';
import { loadConfig } from '../../service/config/config';
import { createDeliverySlots } from '../../service/delivery/delivery-slots';
import { giveUpRegistry, storeRegistry } from '../../service/followed-registries/stored-registries';
import { RegistryFollower } from '../../service/watcher/follow-registry';
import { newState, openState } from '../helpers/database/engines';
import { stopLater } from '../helpers/resources';

const CHAIN = { chainId: 31_337, network: 'localhost' };
const LEFT = { ...CHAIN, address: `0x${'5b'.repeat(20)}` };
const KEPT = { ...CHAIN, address: `0x${'6c'.repeat(20)}` };

/** The stops and starts that follow are those of this process, and need no other. */
async function turns(): Promise<void> {
  for (let count = 0; count < 20; count++) await turn();
}

describe('event delivery', () => {
  it('goes on for a stored registry while another ends and the registries are read again', async () => {
    const state = (await newState('SQLite'))!;
    const database = await openState(state);
    const logger = pino({ level: 'silent' });
    const added = { startBlock: undefined, confirmations: undefined, addedAt: 1 };
    for (const one of [LEFT, KEPT]) await storeRegistry(database, { ...one, ...added });
    // Each answer of the database waits while `answers` is pending.
    let answers = Promise.resolve();
    const waiting: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => answers.then(() => result),
    };
    const ENV_FILE = join(state.settings.DATA_DIR, 'none.env');
    const RPC_URL = 'http://127.0.0.1:9';
    const core = {
      config: loadConfig({ ...state.settings, ENV_FILE, NET: '31337', RPC_URL }),
      database: { ...database, db: database.db.withPlugin(waiting) },
      time: systemTime,
      lifecycle: createLifecycle(),
      logger,
      lookup,
    };
    const slots = createDeliverySlots({ most: 10, time: systemTime, logger });
    const delivery = await startEventDelivery(core, slots);
    stopLater('event delivery', () => delivery.stop());
    const ending = newDeferred<undefined>();
    const stop = Reflect.get(RegistryFollower.prototype, 'stop');
    stopLater('delaying stops', () => (RegistryFollower.prototype.stop = stop));
    RegistryFollower.prototype.stop = async function () {
      await ending.promise;
      await stop.call(this);
    };
    await giveUpRegistry(database, LEFT, { isForced: true, now: 2 });
    await delivery.refresh();
    const kept = delivery.feeds();
    expect(kept.map(({ registry }) => registry)).to.deep.equal([KEPT.address]);

    const answering = newDeferred<undefined>();
    answers = answering.promise.then(() => undefined);
    const refreshed = delivery.refresh();
    await turns();
    ending.resolve(undefined);
    await turns();
    const during = delivery.feeds();
    answering.resolve(undefined);
    await refreshed;
    expect(during).to.deep.equal(kept);
  });
});
