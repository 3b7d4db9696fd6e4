import { Field, Problems } from '../parts/fields';
import { EMPTY_PACKAGE, PACKAGE_TERMS, packagePointers, pointerOfTerm, type Draft } from './draft';
import type { FormFields } from './form-fields';
import { labelOf } from './term-groups';

/** The packages, one row for each. */
export function PackageFields({ draft, setDraft, problemsOf, touch }: FormFields) {
  const { packages } = draft;
  const pointers = packagePointers(packages);
  const setPackages = (update: (rows: Draft['packages']) => Draft['packages']): void =>
    setDraft((now) => ({ ...now, packages: update(now.packages) }));
  return (
    <fieldset class="card" tabIndex={-1}>
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
                        const { value } = currentTarget;
                        setPackages((rows) => rows.with(index, { ...(rows[index] ?? row), [term]: value }));
                      }}
                    />
                  )}
                </Field>
              );
            })}
            <button
              type="button"
              aria-label={`Remove package ${index + 1}`}
              onClick={() => setPackages((rows) => rows.toSpliced(index, 1))}
            >
              Remove
            </button>
          </fieldset>
        );
      })}
      <Problems problems={problemsOf(pointerOfTerm('packages'))} />
      <button type="button" onClick={() => setPackages((rows) => [...rows, EMPTY_PACKAGE])}>
        Add a package
      </button>
    </fieldset>
  );
}
