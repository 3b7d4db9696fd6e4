/**
 * Makes a question to what may hang. It is asked once at a time: who asks while it is under way waits for the
 * same answer, so that what hangs is not asked by ever more callers.
 *
 * @returns gives the answer; undefined when it fails, or does not come within the milliseconds given.
 */
export function answerInTime<T>(ask: () => Promise<T>): (withinMs: number) => Promise<T | undefined> {
  let underWay: Promise<T | undefined> | undefined;
  const begin = (): Promise<T | undefined> =>
    ask()
      .catch(() => undefined)
      .finally(() => (underWay = undefined));
  return async (withinMs) => {
    const answer = (underWay ??= begin());
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), withinMs);
    });
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  };
}
