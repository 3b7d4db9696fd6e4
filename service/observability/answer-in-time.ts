/**
 * Wraps a request that may hang. One request runs at a time: callers that arrive meanwhile share its answer,
 * so that requests do not pile up.
 *
 * @returns a function that takes a timeout in milliseconds. It resolves to the answer, or to undefined if the
 *   request fails or takes longer.
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
