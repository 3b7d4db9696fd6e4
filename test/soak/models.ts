import type { Engine } from '../helpers/database/engines';
import { createLivePlace } from '../helpers/live-change/live-change';
import { MintScenario } from '../helpers/mint-model/mint-model';
import { createMintPlace } from '../helpers/mint-model/place';
import { NodesScenario } from '../helpers/nodes-model/nodes-model';
import { createRequestPlace } from '../helpers/request-model/request-model';
import { createRetractionPlace } from '../helpers/retraction-model/retraction-model';
import type { Place } from '../helpers/scenario';

/** The models that scenarios test. */
export const MODELS = ['mints', 'retractions', 'requests', 'nodes', 'subscriptions'] as const;
export type Model = (typeof MODELS)[number];

/** The scenarios that main.ts gives to a process. Each result is sent as a message. */
export interface SeedRange {
  model: Model;
  /** For requests and subscriptions: the other models have one. */
  engine: Engine;
  first: number;
  count: number;
  /** No scenario begins later than this after the first. */
  forMs?: number;
}

/** Undefined if the engine is not installed. */
export async function createPlace(model: Model, engine: Engine): Promise<Place | undefined> {
  if (model === 'retractions') return createRetractionPlace();
  if (model === 'requests') return createRequestPlace(engine);
  if (model === 'subscriptions') return createLivePlace(engine);
  const place = await createMintPlace();
  const Scenario = model === 'nodes' ? NodesScenario : MintScenario;
  return {
    async run(seed) {
      await place.reset();
      return new Scenario(place, seed).run();
    },
  };
}
