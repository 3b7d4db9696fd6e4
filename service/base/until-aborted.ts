/**
 * Waits for a promise, but not beyond the end: a node that hangs must not keep the service from stopping.
 * What the promise becomes afterwards is of no interest.
 *
 * @throws the signal's reason when it aborts first.
 */
export async function untilAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  signal.throwIfAborted();
  let end: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    end = () => reject(signal.reason as Error);
    signal.addEventListener('abort', end, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (end) signal.removeEventListener('abort', end);
  }
}
