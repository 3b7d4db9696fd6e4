import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
// eslint-disable-next-line no-restricted-syntax -- real time: answers come after random pauses.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { expectedEvents } from '../helpers/chain/expected-events';
import { expectPromisesKept } from '../helpers/receiver/delivery-promises';
import { mintDirectly, transferHolder } from '../helpers/chain/direct-mint';
import { ENGINES, newState } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { startRecordingReceiver, type Answer } from '../helpers/receiver/recording-receiver';
import { startService } from '../helpers/processes/running-service';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

const TOKENS = 10;
const CONCURRENCY = 8;
const LONGEST_ANSWER_MS = 20;
const TIMEOUT_MS = 1_000;

const SEED = 1;

/** Observations of the receiver. */
interface Notes {
  /** Ids of the events that it took. */
  taken: string[];
  /** Events that came before it had taken an earlier one of their token. */
  overtaking: string[];
  /** The most deliveries that waited for answers at the same time. */
  mostAtOnce: number;
}

describe('a receiver that fails half of the time', () => {
  const local = localSetupOfSuite();

  before(async () => {
    const retry = { initialDelayMs: 20, maxDelayMs: 100 };
    const webhook = { timeoutMs: TIMEOUT_MS, maxConcurrentDeliveries: CONCURRENCY, retry };
    writeFileSync(local.settings.SERVICE_CONFIG ?? '', JSON.stringify({ webhook }));
  });

  for (const engine of ENGINES) {
    it(`gets every event, one at a time for a token, several tokens at once (${engine})`, async function () {
      const state = await newState(engine);
      if (state === undefined) return this.skip();
      const notes: Notes = { taken: [], overtaking: [], mostAtOnce: 0 };
      const answer = failingAnswer(seededRandom(SEED), notes);
      const receiver = await startRecordingReceiver(local.publicKeyFile, answer);
      const fromBlock = (await local.client.getBlockNumber()) + 1;
      const START_BLOCK = String(fromBlock);
      const settings = { ...local.settings, ...state.settings, WEBHOOK_URL: receiver.url, START_BLOCK };
      const service = await startService(settings);
      await mintAndMove();
      const expected = await expectedEvents(local.client, local.registryAddress, fromBlock);
      await eventually('all events are taken', () => new Set(notes.taken).size >= expected.length);
      await service.stop();
      await receiver.close();

      expectPromisesKept(receiver.deliveries, expected);
      expect(notes.overtaking).to.deep.equal([]);
      expect(new Set(notes.taken).size).to.equal(expected.length);
      // On a busy machine an answer may come too late. The event is then sent again.
      const late = service.log.filter(({ reason }) => reason === `no answer within ${TIMEOUT_MS} ms`);
      const unanswered = new Set(late.map(({ eventId }) => eventId));
      const repeated = notes.taken.filter((id, index) => notes.taken.indexOf(id) < index);
      expect(repeated.filter((id) => !unanswered.has(id))).to.deep.equal([]);
      expect(notes.mostAtOnce).to.be.within(2, CONCURRENCY);
      expect(receiver.deliveries.length).to.be.greaterThan(1.5 * expected.length);
    });
  }

  async function mintAndMove(): Promise<void> {
    const [from, to] = [await local.account(1), await local.account(2)];
    for (let minted = 0; minted < TOKENS; minted++) {
      const token = await mintDirectly(local, from);
      await transferHolder(local, token, { from, to });
      await transferHolder(local, token, { from: to, to: from });
    }
  }
});

/**
 * Takes half of the deliveries, at random and after a short delay, and fails the others in different ways.
 */
function failingAnswer(random: SeededRandom, notes: Notes): Answer {
  const current = new Map<string, string>();
  const taken = new Set<string>();
  let waiting = 0;
  return async ({ event: { id, subject } }, response) => {
    const before = current.get(subject) ?? id;
    if (before !== id && !taken.has(before)) notes.overtaking.push(`${id} of token ${subject}`);
    current.set(subject, id);
    waiting++;
    notes.mostAtOnce = Math.max(notes.mostAtOnce, waiting);
    await sleep(random.below(LONGEST_ANSWER_MS));
    waiting--;
    if (random.chance(0.5)) return fail(random, response);
    taken.add(id);
    notes.taken.push(id);
    response.writeHead(random.pick([200, 201, 202, 204, 299])).end();
  };
}

/** An error, a redirect, a broken connection, or no answer at all. */
function fail(random: SeededRandom, response: ServerResponse): void {
  const kind = random.fraction();
  if (kind < 0.7) response.writeHead(random.pick([302, 400, 404, 429, 500, 503])).end();
  else if (kind < 0.95) response.destroy();
}
