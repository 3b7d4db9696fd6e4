import { useEffect, useState } from 'preact/hooks';
import type { Validation } from '../../service/console/views';
import { useConsole } from '../frame/console-context';
import { checkedPart, type Draft } from './draft';

const DEBOUNCE_MS = 300;

/** Checks the document while somebody types. Undefined until the first answer. */
export function useValidation(draft: Draft): Validation | undefined {
  const { api, revision } = useConsole();
  const [validation, setValidation] = useState<Validation>();
  const body = checkedPart(draft);
  const text = JSON.stringify(body);
  // After a lost connection it is checked again.
  const isKnown = validation !== undefined;
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(() => {
      api.validate(body, controller.signal).then(setValidation, () => undefined);
    }, DEBOUNCE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text, isKnown || revision]);
  return validation;
}
