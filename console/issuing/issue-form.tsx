import { useEffect, useRef, useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { FailureNotice, Notice } from '../parts/feedback';
import { Problems } from '../parts/fields';
import { pauseAfter } from '../requests/pause-after';
import { failureFrom } from '../requests/request';
import { countOf, sizeOf } from '../text/words';
import {
  bytesOf,
  checkedPart,
  fieldsOf,
  firstDraft,
  MOST_BYTES,
  problemsByField,
  WHOLE_FORM,
  withRequired,
  type Draft,
} from './draft';
import { AttachmentFields, PackageFields, PartyFields, TermFields } from './form-fields';
import { groupsOf } from './term-groups';

/** The form of a Bill of Lading, which is locked while it is sent. */
export function IssueForm() {
  const { api, facts, issuing } = useConsole();
  const { draft = firstDraft(facts), submission, refusal, validation } = issuing;
  const { isTried, isReadingFiles, isChecking, failure } = issuing;
  const form = useRef<HTMLFormElement>(null);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  useValidation(draft);
  const all = [...withRequired(validation?.problems ?? []), ...(refusal ? [refusal] : [])];
  const byField = problemsByField(all, fieldsOf(facts.terms, draft.packages));
  const bytes = bytesOf(draft);
  const isTooLarge = bytes > MOST_BYTES;

  // An empty field is no mistake before somebody was in it.
  const problemsOf = (field: string) =>
    isTried || touched.has(field) || field === WHOLE_FORM ? (byField.get(field) ?? []) : [];
  const touch = (field: string): void => {
    if (!touched.has(field)) setTouched(new Set([...touched, field]));
  };
  /** Focuses the first wrong field, or else the group around the first problem. */
  const focusFirst = (): void => {
    setTimeout(() => {
      const field = form.current?.querySelector<HTMLElement>('[aria-invalid="true"]');
      const problem = form.current?.querySelector('.problem, .notice.bad');
      (field ?? problem?.closest<HTMLElement>('[tabindex="-1"]'))?.focus();
    });
  };
  useEffect(() => {
    if (refusal) focusFirst();
  }, [refusal]);

  const issue = async (): Promise<void> => {
    await issuing.issue(api, draft);
    focusFirst();
  };
  const refused = all.filter(({ isRefused }) => isRefused).length;
  const setDraft = (update: (now: Draft) => Draft): void => issuing.change(update, draft);
  const fields = { draft, setDraft, problemsOf, touch };
  return (
    <form
      ref={form}
      class="issue"
      noValidate
      onKeyDown={(event) => {
        // Enter in a field would issue a document that nobody finished.
        const { target } = event;
        const isText = target instanceof HTMLInputElement && target.type === 'text';
        if (event.key === 'Enter' && isText) event.preventDefault();
      }}
      onSubmit={(event) => {
        event.preventDefault();
        if (!isTooLarge) void issue();
      }}
    >
      <fieldset class="whole" disabled={submission !== undefined}>
        <legend class="unseen">Bill of Lading</legend>
        {groupsOf(facts.terms).map((group) => (
          <TermFields key={group.title} group={group} {...fields} />
        ))}
        <PackageFields {...fields} />
        <AttachmentFields {...fields} />
        <PartyFields {...fields} />
        <div class="send" tabIndex={-1}>
          <Problems problems={problemsOf(WHOLE_FORM)} />
          {isTooLarge && (
            <Notice tone="bad">
              The document has {sizeOf(bytes)}, and at most 50 MB can be sent. Remove a file.
            </Notice>
          )}
          <FailureNotice failure={failure} />
          <p class="buttons">
            <button
              type="submit"
              class="main"
              disabled={isTooLarge || isReadingFiles}
              aria-disabled={isChecking}
            >
              {isChecking ? 'Checking …' : 'Issue'}
            </button>
            <span class="dim">{sizeOf(bytes)} of 50 MB</span>
            <span role="status">
              {isTried && refused > 0 && `${countOf(refused, 'problem')} to solve first`}
            </span>
          </p>
        </div>
      </fieldset>
    </form>
  );
}

const DEBOUNCE_MS = 300;

/** Checks the document after each change, and again until there is an answer. */
function useValidation(draft: Draft): void {
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
