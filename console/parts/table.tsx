import type { ComponentChildren } from 'preact';

/** A column: its head, and the cell of each row. */
export interface Column<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  /** Whether the cells are aligned at their ends. */
  isNumber?: boolean;
}

export interface TableProps<T> {
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  /** Whether older rows are left out. */
  isCut?: boolean;
  /** Shown instead of a table without rows. */
  empty: string;
}

/**
 * A table that becomes a list in a narrow window. The roles are given, because browsers forget those of
 * elements whose display changes.
 */
export function Table<T>({ caption, columns, rows, isCut, keyOf, empty }: TableProps<T>) {
  if (rows.length === 0) return <p class="note">{empty}</p>;
  return (
    <div class="table-box">
      <table role="table" class="table">
        <caption class="unseen">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ head, isNumber }) => (
              <th key={head} role="columnheader" scope="col" class={isNumber ? 'number' : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map(({ head, cell, isNumber }) => (
                <td key={head} role="cell" data-head={head} class={isNumber ? 'number' : undefined}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {isCut && <p class="dim">Only the newest are shown.</p>}
    </div>
  );
}
