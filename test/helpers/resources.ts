/**
 * Everything that tests have started (processes, servers, folders) and not stopped yet. A suite that leaves
 * something running fails.
 */
const owned = new Map<symbol, string>();

/** Notes that something was started; call the result when it is stopped. */
export function track(name: string): () => void {
  const key = Symbol(name);
  owned.set(key, name);
  return () => owned.delete(key);
}

/** Throws if something is still running. */
export function nothingIsLeftRunning(): void {
  const left = [...owned.values()];
  // The next file in this process must not fail for it.
  owned.clear();
  if (left.length > 0) throw new Error(`left running: ${left.join(', ')}`);
}
