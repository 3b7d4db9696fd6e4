import { Field } from '../parts/fields';
import { pointerOfTerm } from './draft';
import type { FormFields } from './form-fields';
import { labelOf, REQUIRED_TERMS, type TermGroup } from './term-groups';

/** A group of plain terms. */
export function TermFields({ group, draft, setDraft, problemsOf, touch }: FormFields & { group: TermGroup }) {
  return (
    <fieldset class="card">
      <legend>
        <h2>{group.title}</h2>
      </legend>
      <div class="fields">
        {group.terms.map((term) => {
          const pointer = pointerOfTerm(term);
          return (
            <Field
              key={term}
              label={labelOf(term)}
              isRequired={REQUIRED_TERMS.includes(term)}
              problems={problemsOf(pointer)}
            >
              {(control) => (
                <input
                  {...control}
                  type="text"
                  dir="auto"
                  name={term}
                  autocomplete="off"
                  aria-required={REQUIRED_TERMS.includes(term)}
                  value={draft.terms[term] ?? ''}
                  onBlur={() => touch(pointer)}
                  onInput={({ currentTarget }) => {
                    touch(pointer);
                    const { value } = currentTarget;
                    setDraft((now) => ({ ...now, terms: { ...now.terms, [term]: value } }));
                  }}
                />
              )}
            </Field>
          );
        })}
      </div>
    </fieldset>
  );
}
