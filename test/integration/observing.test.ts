import { join } from 'node:path';
import { expect } from 'chai';
import { sql } from 'kysely';
import { systemClock } from '../../service/base/clock';
import { createLogger } from '../../service/base/logger';
import { startObserving } from '../../service/composition/observing';
import { loadConfig } from '../../service/config/config';
import { createMintOutcomes } from '../../service/observability/issuing-report';
import { createMetrics } from '../../service/observability/metrics';
import { newState, openState } from '../helpers/database/engines';

describe('the observation', () => {
  it('logs that the conditions cannot be read, and answers without them', async () => {
    const state = (await newState('SQLite'))!;
    const database = await openState(state);
    const log: Record<string, unknown>[] = [];
    const destination = { write: (line: string) => void log.push(JSON.parse(line) as (typeof log)[0]) };
    await sql`drop table conditions`.execute(database.db);
    const metrics = createMetrics();
    const ENV_FILE = join(state.settings.DATA_DIR, 'none.env');
    const observing = startObserving(loadConfig({ ...state.settings, ENV_FILE, NET: '31337' }), {
      database,
      metrics,
      outcomes: createMintOutcomes(metrics, systemClock),
      issuing: { scope: undefined, report: async () => undefined, isMinting: () => false },
      eventDelivery: { feeds: [], feedOf: () => undefined, figures: async () => [] },
      deliveryClock: systemClock,
      logger: createLogger({ level: 'info', mask: (text) => text, destination }),
      timing: {},
    });
    const health = await observing.health().finally(() => observing.stop());
    expect(health).to.include({ isHealthy: true, conditions: undefined });
    const lines = log.filter(({ msg }) => msg === 'the conditions cannot be read');
    expect(lines).to.have.length(1);
    expect(lines[0]).to.deep.include({ level: 'warn' }).and.have.nested.property('error.message');
  });
});
