const SLOW_MS = 3_000;

/** Waits for what may hang, and tells so when it takes longer than somebody watches a silent terminal. */
export async function toldIfSlow<T>(work: Promise<T>, tell: () => void): Promise<T> {
  const timer = setTimeout(tell, SLOW_MS);
  return work.finally(() => clearTimeout(timer));
}
