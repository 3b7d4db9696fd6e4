import type { Engine } from '../helpers/database/engines';

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
