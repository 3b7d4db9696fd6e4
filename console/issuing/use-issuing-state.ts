import { useMemo, useState } from 'preact/hooks';
import { createIssuing, NOTHING, type IssuingState } from './issuing-state';

/** The document that is being issued, as it changes. */
export function useIssuingState(): IssuingState {
  const [now, setNow] = useState(NOTHING);
  const actions = useMemo(() => createIssuing(setNow), []);
  return { ...now, ...actions };
}
