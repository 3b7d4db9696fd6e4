import type { ComponentChildren } from 'preact';

export type FactsRow = readonly [name: string, value: ComponentChildren];

/** Names with their values, aligned. A row whose value is undefined, null or false is left out. */
export function FactsList({ rows }: { rows: readonly FactsRow[] }) {
  return (
    <dl class="facts">
      {rows.map(
        ([name, value]) =>
          value !== undefined &&
          value !== null &&
          value !== false && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
