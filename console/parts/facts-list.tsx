import type { ComponentChildren } from 'preact';

/** Names with their values, aligned. Rows without a value are left out. */
export function FactsList({
  rows,
}: {
  rows: readonly (readonly [name: string, value: ComponentChildren])[];
}) {
  return (
    <dl class="facts">
      {rows.map(
        ([name, value]) =>
          value !== undefined && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
