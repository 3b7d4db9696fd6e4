import { Field, Problems } from '../parts/field';
import { EMPTY_PACKAGE, PACKAGE_TERMS, packagePointers, pointerOfTerm } from './draft';
import type { FormFields } from './form-fields';
import { labelOf } from './term-groups';

/** The packages, one row for each. */
export function PackageFields({ draft, setDraft, problemsOf, touch }: FormFields) {
  const { packages } = draft;
  const pointers = packagePointers(packages);
  return (
    <fieldset class="card">
      <legend>
        <h2>Packages</h2>
      </legend>
      {packages.map((row, index) => {
        const title = `Package ${index + 1}`;
        const pointer = pointers[index];
        return (
          <fieldset key={index} class="row">
            <legend class="unseen">{title}</legend>
            {PACKAGE_TERMS.map((term) => {
              const field = pointer === undefined ? undefined : `${pointer}/${term}`;
              return (
                <Field
                  key={term}
                  label={labelOf(term)}
                  problems={field === undefined ? [] : problemsOf(field)}
                  isWide={term === 'packagesDescription'}
                >
                  {(control) => (
                    <input
                      {...control}
                      type="text"
                      dir="auto"
                      autocomplete="off"
                      value={row[term]}
                      onBlur={() => field !== undefined && touch(field)}
                      onInput={({ currentTarget }) => {
                        if (field !== undefined) touch(field);
                        const changed = { ...row, [term]: currentTarget.value };
                        setDraft({ ...draft, packages: packages.with(index, changed) });
                      }}
                    />
                  )}
                </Field>
              );
            })}
            <button
              type="button"
              aria-label={`Remove package ${index + 1}`}
              onClick={() => setDraft({ ...draft, packages: packages.toSpliced(index, 1) })}
            >
              Remove
            </button>
          </fieldset>
        );
      })}
      <Problems problems={problemsOf(pointerOfTerm('packages'))} />
      <button type="button" onClick={() => setDraft({ ...draft, packages: [...packages, EMPTY_PACKAGE] })}>
        Add a package
      </button>
    </fieldset>
  );
}
