import type { Suite } from 'mocha';

/** Something that a test or a hook started: a process, a server, a folder. */
interface Resource {
  name: string;
  stop: () => unknown;
  /** The suite that it ends with: the innermost one of the test or hook. Undefined until that is over. */
  suite: Suite | undefined;
}

/** Everything that was started and not stopped yet, in order. */
const running = new Set<Resource>();

/**
 * Stops something at the end of the suite whose test or hook started it, after the suite's own hooks; the
 * newest is stopped first. Returns the function that stops it before. Only the first call does so.
 */
export function stopLater<R>(name: string, stop: () => R): () => R {
  let stopped: { by: R } | undefined;
  const resource = { name, suite: undefined, stop: () => (stopped ??= { by: stop() }).by };
  running.add(resource);
  return () => {
    running.delete(resource);
    return resource.stop();
  };
}

/**
 * Stops a resource by its method of this name as `stopLater` does, or at the end of the block that has it in
 * `await using`.
 */
export function owned<M extends string, T extends Record<M, () => unknown>>(
  name: string,
  resource: T,
  method: M,
): T & AsyncDisposable {
  const stop = stopLater(name, resource[method].bind(resource));
  return Object.assign(resource, { [method]: stop, [Symbol.asyncDispose]: async () => void (await stop()) });
}

/** Lets each suite below this one stop what it started. */
export function stopWithSuites(suite: Suite): void {
  for (const inner of suite.suites) {
    inner.beforeAll('owns what its hooks started', () => give(inner));
    inner.afterAll('stops what it started', () =>
      stopAll(({ suite }) => suite === inner || suite === undefined),
    );
    stopWithSuites(inner);
  }
}

/** Gives a suite everything that nobody has. */
export function give(suite: Suite | undefined): void {
  for (const resource of running) resource.suite ??= suite;
}

/** Stops resources, the newest first. Throws if one does not stop. */
export async function stopAll(which: (resource: Resource) => boolean = () => true): Promise<void> {
  const failures: unknown[] = [];
  for (const resource of [...running].filter(which).reverse()) {
    running.delete(resource);
    try {
      await resource.stop();
    } catch (error) {
      failures.push(new Error(`${resource.name} did not stop`, { cause: error }));
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join('\n'));
}
