/** The models that scenarios test. */
export const MODELS = ['mints', 'retractions', 'requests'] as const;
export type Model = (typeof MODELS)[number];

/** The scenarios that main.ts gives to a process. Each result is sent as a message. */
export interface SeedRange {
  model: Model;
  first: number;
  count: number;
}
