/**
 * Everything a test starts (processes, servers, folders) is owned here until it is stopped. What a suite forgets to stop fails the run.
 */
const owned = new Map<symbol, string>();

/** Notes that something was started; call the result when it is stopped. */
export function own(name: string): () => void {
  const key = Symbol(name);
  owned.set(key, name);
  return () => owned.delete(key);
}

after(function nothingIsLeftRunning() {
  if (owned.size > 0) throw new Error(`left running: ${[...owned.values()].join(', ')}`);
});
