import { useState } from 'preact/hooks';
import { failureFrom, type RequestFailure } from '../requests/request';

/** A request that a button starts: whether it runs, and how it failed. */
export interface Action {
  isRunning: boolean;
  failure: RequestFailure | undefined;
  run: (action: () => Promise<void>) => void;
}

export function useAction(): Action {
  const [isRunning, setRunning] = useState(false);
  const [failure, setFailure] = useState<RequestFailure>();
  const start = async (action: () => Promise<void>): Promise<void> => {
    setRunning(true);
    setFailure(undefined);
    try {
      await action();
    } catch (error) {
      setFailure(failureFrom(error));
    } finally {
      setRunning(false);
    }
  };
  return { isRunning, failure, run: (action) => void start(action) };
}
