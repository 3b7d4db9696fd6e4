import { Field } from '../parts/fields';
import type { SubscriptionDraft } from './subscription-draft';

interface Props {
  draft: SubscriptionDraft;
  setDraft: (draft: SubscriptionDraft) => void;
}

/** Headers that each delivery gets. Their values are secrets. */
export function HeaderFields({ draft, setDraft }: Props) {
  const { headers } = draft;
  const change = (index: number, changed: Partial<(typeof headers)[number]>): void => {
    setDraft({
      ...draft,
      headers: headers.map((header, at) => (at === index ? { ...header, ...changed } : header)),
    });
  };
  return (
    <fieldset class="choices" tabIndex={-1}>
      <legend>Headers of each delivery</legend>
      {headers.map(({ name, value }, index) => (
        <div key={index} class="row header-row">
          <Field label={`Name of header ${index + 1}`}>
            {(control) => (
              <input
                {...control}
                type="text"
                autocomplete="off"
                spellcheck={false}
                value={name}
                onInput={({ currentTarget }) => change(index, { name: currentTarget.value })}
              />
            )}
          </Field>
          <Field label={`Value of header ${index + 1}`}>
            {(control) => (
              <input
                {...control}
                type="password"
                autocomplete="off"
                value={value}
                onInput={({ currentTarget }) => change(index, { value: currentTarget.value })}
              />
            )}
          </Field>
          <button
            type="button"
            aria-label={`Remove header ${index + 1}`}
            onClick={() => setDraft({ ...draft, headers: headers.toSpliced(index, 1) })}
          >
            Remove
          </button>
        </div>
      ))}
      <p class="hint">Values are secrets: no later answer shows them. They need SECRETS_KEY.</p>
      <button
        type="button"
        onClick={() => setDraft({ ...draft, headers: [...headers, { name: '', value: '' }] })}
      >
        Add a header
      </button>
    </fieldset>
  );
}
