import { expect } from 'chai';
import { createPlace, MODELS, type ModelOnEngine } from '../soak/models';

/** The same scenarios in each run, about five seconds of each model; `npm run soak` runs others. */
const SEEDS: Record<ModelOnEngine['model'], number> = {
  mints: 10,
  nodes: 10,
  retractions: 1,
  requests: 1,
  subscriptions: 3,
  fetch: 5,
  isolation: 3,
};

const PROMISES: Record<ModelOnEngine['model'], [subject: string, promise: string]> = {
  mints: [
    'the mint queue with unreliable nodes and random kills',
    'mints one token for every key and fails none wrongly',
  ],
  nodes: [
    'three nodes, of which one lies and any one is away at times,',
    'gives every event and every token once',
  ],
  retractions: [
    'a subscription with retractions, under reorganisations, kills and wrong answers,',
    'leads to the state of the contracts',
  ],
  requests: [
    'the service, the receiver and tdoc under right requests, wrong ones, rubbish and texts of every kind',
    'gives only answers that are described and fit to be read, and goes on as before',
  ],
  subscriptions: [
    'subscriptions and registries that change while events are recorded',
    'gives each subscriber the events of its rules, in order, and no other',
  ],
  fetch: [
    'clients that fetch under reorganisations, purges, kills and changed rules, and stop at any cursor,',
    'leads them to what the chain has, by pages of just the events that they select',
  ],
  isolation: [
    'keys of random scopes that read, subscribe, end and are revoked, while chains are reorganised,',
    'shows each what is its own, and all else as if it did not exist',
  ],
};

for (const chosen of MODELS) {
  const { model, engine } = chosen;
  const [subject, promise] = PROMISES[model];
  describe(`a model of ${subject} on ${engine}`, () =>
    it(`${promise} (seeds 1 to ${SEEDS[model]})`, async function () {
      const place = await createPlace(chosen);
      if (place === undefined) return this.skip();
      for (let seed = 1; seed <= SEEDS[model]; seed++) {
        const { violations, history } = await place.run(seed);
        if (violations.length > 0) console.error(history.slice(-200).join('\n'));
        const options = `--model ${model} --engine ${engine} --seed ${seed}`;
        expect(violations, `npm run soak -- ${options} makes the same choices again`).to.deep.equal([]);
      }
    }));
}
