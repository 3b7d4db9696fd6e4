import type { RequestProblem } from '../../service/console/views';
import type { Draft } from './draft';

/** The properties of each part of the form. Fields are named by their pointers into the request. */
export interface FormFields {
  draft: Draft;
  setDraft: (update: (now: Draft) => Draft) => void;
  problemsOf: (field: string) => readonly RequestProblem[];
  /** Somebody was there: from now on its problems are shown. */
  touch: (field: string) => void;
}
