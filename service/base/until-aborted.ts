/**
 * Waits for a promise until the signal aborts, so that a hanging node cannot prevent the service from
 * stopping. The promise's later outcome is ignored.
 *
 * @throws the signal's reason if it aborts first.
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
