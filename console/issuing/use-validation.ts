import { useEffect } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { failureFrom } from '../requests/request';
import { pauseAfter } from '../requests/pause-after';
import { checkedPart, type Draft } from './draft';

const DEBOUNCE_MS = 300;

/** Checks the document while somebody types, until there is an answer. */
export function useValidation(draft: Draft): void {
  const { api, issuing } = useConsole();
  const body = checkedPart(draft);
  const text = JSON.stringify(body);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    let timer: ReturnType<typeof setTimeout>;
    const check = async (failures: number): Promise<void> => {
      try {
        const validation = await api.validate(body, signal);
        if (!signal.aborted) issuing.checked(validation);
      } catch (error) {
        // Texts that are too long for the check stay so.
        if (signal.aborted || failureFrom(error).status === 413) return;
        timer = setTimeout(() => void check(failures + 1), pauseAfter(failures));
      }
    };
    timer = setTimeout(() => void check(1), DEBOUNCE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
}
