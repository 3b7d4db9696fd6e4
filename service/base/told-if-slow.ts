const SLOW_MS = 3_000;

/** Waits for work, and calls `tell` once when the work takes longer than three seconds. */
export async function toldIfSlow<T>(work: Promise<T>, tell: () => void): Promise<T> {
  const timer = setTimeout(tell, SLOW_MS);
  return work.finally(() => clearTimeout(timer));
}
