import { useRef, useState } from 'preact/hooks';
import { failureFrom, type RequestFailure } from '../requests/request';

/** A request that a button starts: whether it runs, and how it failed. */
export interface Action {
  /** For `aria-disabled`: a button that is disabled would lose the focus. */
  isRunning: boolean;
  failure: RequestFailure | undefined;
  /** Does nothing while the last action runs. */
  run: (action: () => Promise<void>) => void;
}

export function useAction(): Action {
  const [isRunning, setRunning] = useState(false);
  const [failure, setFailure] = useState<RequestFailure>();
  const isBusy = useRef(false);
  const start = async (action: () => Promise<void>): Promise<void> => {
    if (isBusy.current) return;
    isBusy.current = true;
    setRunning(true);
    setFailure(undefined);
    try {
      await action();
    } catch (error) {
      setFailure(failureFrom(error));
    } finally {
      isBusy.current = false;
      setRunning(false);
    }
  };
  return { isRunning, failure, run: (action) => void start(action) };
}
