/**
 * Everything a test starts (processes, servers, folders) is owned here until it is stopped. What a suite
 * forgets to stop fails the run.
 */
const owned = new Map<symbol, string>();

/** Notes that something was started; call the result when it is stopped. */
export function track(name: string): () => void {
  const key = Symbol(name);
  owned.set(key, name);
  return () => owned.delete(key);
}

/** Throws when something that was started was not stopped. */
export function nothingIsLeftRunning(): void {
  const left = [...owned.values()];
  // The next file in this process is not to blame.
  owned.clear();
  if (left.length > 0) throw new Error(`left running: ${left.join(', ')}`);
}

// Benchmarks use these helpers too, without Mocha, and ask for themselves.
if (typeof after === 'function') after(nothingIsLeftRunning);
