import { ENGINES, type Engine } from '../helpers/database/engines';
import { createFetchPlace } from '../helpers/fetch-model/fetch-model';
import { createIsolationPlace } from '../helpers/isolation-model/isolation-model';
import { createLivePlace } from '../helpers/live-change/live-change';
import { MintScenario } from '../helpers/mint-model/mint-model';
import { createMintPlace } from '../helpers/mint-model/place';
import { NodesScenario } from '../helpers/nodes-model/nodes-model';
import { createRequestPlace } from '../helpers/request-model/request-model';
import { createRetractionPlace } from '../helpers/retraction-model/retraction-model';
import type { Place } from '../helpers/scenario';

/** A model, and the engine of its database. */
export interface ModelOnEngine {
  model: 'mints' | 'nodes' | 'retractions' | 'requests' | 'subscriptions' | 'fetch' | 'isolation';
  engine: Engine;
}

/** The models that scenarios test. */
export const MODELS: readonly ModelOnEngine[] = [
  { model: 'mints', engine: 'SQLite' },
  { model: 'nodes', engine: 'SQLite' },
  ...ENGINES.flatMap((engine) => [
    { model: 'retractions' as const, engine },
    { model: 'requests' as const, engine },
    { model: 'subscriptions' as const, engine },
    { model: 'fetch' as const, engine },
    { model: 'isolation' as const, engine },
  ]),
];

/** Scenarios that main.ts gives to a process. It answers with the range and the result of each. */
export interface SeedRange extends ModelOnEngine {
  first: number;
  count: number;
  /** No scenario begins later than this after the first. */
  forMs?: number;
  /** The nodes of the scenarios have random profiles of public nodes. */
  hasProfiles?: boolean;
}

/** Undefined if the engine is not installed. */
export async function createPlace({
  model,
  engine,
  hasProfiles = false,
}: ModelOnEngine & Pick<SeedRange, 'hasProfiles'>): Promise<Place | undefined> {
  if (model === 'retractions') return createRetractionPlace(engine, hasProfiles);
  if (model === 'requests') return createRequestPlace(engine);
  if (model === 'subscriptions') return createLivePlace(engine);
  if (model === 'fetch') return createFetchPlace(engine);
  if (model === 'isolation') return createIsolationPlace(engine);
  const place = await createMintPlace();
  const Scenario = model === 'nodes' ? NodesScenario : MintScenario;
  return {
    async run(seed) {
      await place.reset();
      return new Scenario(place, seed, hasProfiles).run();
    },
  };
}
