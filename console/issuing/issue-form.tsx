import { useEffect, useRef, useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { Problems } from '../parts/fields';
import { FailureNotice, Notice } from '../parts/feedback';
import { countOf, sizeOf } from '../text/words';
import { AttachmentFields } from './attachment-fields';
import { bytesOf, fieldsOf, MOST_BYTES, type Draft } from './draft';
import { PackageFields } from './package-fields';
import { PartyFields } from './party-fields';
import { problemsByField, WHOLE_FORM, withRequired } from './problem-fields';
import { groupsOf } from './term-groups';
import { TermFields } from './term-fields';
import { useValidation } from './use-validation';

interface Props {
  draft: Draft;
  /** While it is sent. */
  isLocked: boolean;
}

/** The form of a Bill of Lading. */
export function IssueForm({ draft, isLocked }: Props) {
  const { api, facts, issuing } = useConsole();
  const { refusal, validation, isTried, isReadingFiles, isChecking, failure } = issuing;
  const form = useRef<HTMLFormElement>(null);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  useValidation(draft);
  const all = [...withRequired(validation?.problems ?? []), ...(refusal ? [refusal] : [])];
  const byField = problemsByField(all, fieldsOf(facts.terms, draft.packages));
  const bytes = bytesOf(draft);
  const isTooLarge = bytes > MOST_BYTES;

  // A field that nobody came to yet may be empty.
  const problemsOf = (field: string) =>
    isTried || touched.has(field) || field === WHOLE_FORM ? (byField.get(field) ?? []) : [];
  const touch = (field: string): void => {
    if (!touched.has(field)) setTouched(new Set([...touched, field]));
  };
  /** The first wrong field, else the group of the first problem: the whole form has one, too. */
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
      <fieldset class="whole" disabled={isLocked}>
        <legend class="unseen">Bill of Lading</legend>
        {groupsOf(facts.terms).map((group) => (
          <TermFields key={group.title} group={group} {...fields} />
        ))}
        <PackageFields {...fields} />
        <AttachmentFields {...fields} />
        <PartyFields {...fields} remarks={validation} />
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
