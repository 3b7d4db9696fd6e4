import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { failureFrom, type RequestFailure } from './request';
import { rereader } from './rereader';

/** Data that a page reads. While `data` is old, `failure` says why it could not be read again. */
export interface Loaded<T> {
  data: T | undefined;
  failure: RequestFailure | undefined;
  /** Resolves when it was asked for again. */
  reload: () => void;
}

/**
 * Reads what `key` names, and again whenever the service says that something moved. Without a key it reads
 * nothing.
 */
export function useLoaded<T>(key: string | undefined, read: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const { revision, overview, session } = useConsole();
  const [found, setFound] = useState<{ key: string; data?: T; failure?: RequestFailure }>();
  const latest = useRef(read);
  latest.current = read;
  const asking = useRef<() => void>(undefined);

  useEffect(() => {
    if (key === undefined) return undefined;
    const controller = new AbortController();
    const { ask, stop } = rereader(async () => {
      try {
        const data = await latest.current(controller.signal);
        if (!controller.signal.aborted) setFound({ key, data });
      } catch (error) {
        if (controller.signal.aborted) return;
        const failure = failureFrom(error);
        setFound((before) =>
          before?.key === key && before.data !== undefined ? { ...before, failure } : { key, failure },
        );
      }
    });
    asking.current = ask;
    ask();
    return () => {
      asking.current = undefined;
      stop();
      controller.abort();
    };
  }, [key]);

  // The first revision is that of what was read when the page began.
  const isKnown = useRef(false);
  useEffect(() => {
    if (isKnown.current || found?.failure) asking.current?.();
    isKnown.current = overview !== undefined || session.holder !== undefined;
  }, [revision]);

  const reload = useCallback(() => asking.current?.(), []);
  const current = found?.key === key ? found : undefined;
  return { data: current?.data, failure: current?.failure, reload };
}
