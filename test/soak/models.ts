import type { Engine } from '../helpers/database/engines';
import { runScenario, type ScenarioResult } from '../helpers/mint-model/mint-model';
import { createMintPlace } from '../helpers/mint-model/place';
import { runNodesScenario } from '../helpers/nodes-model/nodes-model';
import { createRequestPlace } from '../helpers/request-model/request-model';
import { createRetractionPlace } from '../helpers/retraction-model/retraction-model';

/** The models that scenarios test. */
export const MODELS = ['mints', 'retractions', 'requests', 'nodes'] as const;
export type Model = (typeof MODELS)[number];

/** The scenarios that main.ts gives to a process. Each result is sent as a message. */
export interface SeedRange {
  model: Model;
  /** For requests: the other models have one. */
  engine: Engine;
  first: number;
  count: number;
  /** No scenario begins later than this after the first. */
  forMs?: number;
}

/** An environment that runs the scenarios of a model one after the other. */
export interface Place {
  run(this: void, seed: number): Promise<ScenarioResult>;
}

/** Undefined if the engine is not installed. */
export async function createPlace(model: Model, engine: Engine): Promise<Place | undefined> {
  if (model === 'retractions') return createRetractionPlace();
  if (model === 'requests') return createRequestPlace(engine);
  const place = await createMintPlace();
  const runOne = model === 'nodes' ? runNodesScenario : runScenario;
  return { run: (seed) => runOne(place, seed) };
}
