import { expect } from 'chai';
import { expectedEvents } from '../helpers/chain/expected-events';
import { expectPromisesKept } from '../helpers/receiver/delivery-promises';
import { newState, type Engine } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { OPERATIONS, randomLifecycles, type Operation } from '../helpers/chain/random-lifecycles';
import { startRecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startService } from '../helpers/processes/running-service';
import { seededRandom } from '../helpers/seeded-random';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

/** The share of a run that has happened when the service is started. */
const STARTED = { 'in the middle': 0.5, 'at the end': 1 };

const RUNS: [seed: number, started: keyof typeof STARTED, engine: Engine][] = [
  [1, 'in the middle', 'SQLite'],
  [2, 'at the end', 'PostgreSQL'],
];
const TOKENS = 20;
const OPERATIONS_OF_A_RUN = 160;
/** Ids that break when a number is too small or signed, or leading zeros are lost. */
const UNUSUAL_IDS = [0n, 1n, 2n ** 256n - 1n, 2n ** 255n, 2n ** 53n + 1n, 0xabcdefn, 2n ** 248n - 1n];

describe('deliveries of random token operations', () => {
  const sent = new Map<Operation, number>();
  const local = localSetupOfSuite();

  for (const [seed, started, engine] of RUNS) {
    it(`equal the logs of the chain: seed ${seed}, service started ${started}, ${engine}`, async function () {
      const state = await newState(engine);
      if (state === undefined) return this.skip();
      const random = seededRandom(seed);
      const unusual = UNUSUAL_IDS.filter((_, index) => index % RUNS.length === seed % RUNS.length);
      const ids = Array.from({ length: TOKENS }, (_, index) => unusual[index] ?? BigInt(random.hex(32)));
      const lives = await randomLifecycles(local, random, ids);
      const fromBlock = (await local.client.getBlockNumber()) + 1;
      const missed = OPERATIONS_OF_A_RUN * STARTED[started];
      await lives.run(missed);
      const receiver = await startRecordingReceiver(local.publicKeyFile);
      const starting = startService({
        ...local.settings,
        ...state.settings,
        START_BLOCK: String(fromBlock),
        WEBHOOK_URL: receiver.url,
        // Without a wallet no signing threads start, which take a second of processor time.
        WALLET_PRIVATE_KEY: '',
      });
      await Promise.all([starting, lives.run(OPERATIONS_OF_A_RUN - missed)]);
      const expected = await expectedEvents(local.client, local.registryAddress, fromBlock);
      const { deliveries } = receiver;
      // The comparison names missing events.
      await eventually('all events', () => deliveries.length >= expected.length).catch(() => undefined);
      await (await starting).stop();
      expectPromisesKept(deliveries, expected);
      expect(deliveries).to.have.length(expected.length);
      for (const operation of OPERATIONS)
        sent.set(operation, (sent.get(operation) ?? 0) + lives.counts[operation]);
    });
  }

  it('cover every operation', () => {
    for (const operation of OPERATIONS) expect(sent.get(operation), operation).to.be.greaterThan(0);
  });
});
