import { Marked } from 'marked';
import type { Json } from './operation';

/** The part of a JSON Schema that is shown. */
export interface Schema extends Json {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: unknown[];
}

/** Renders the Markdown of the description. */
export const marked = new Marked({ gfm: true });

const LIMITS = [
  ['default', 'default'],
  ['minimum', 'at least'],
  ['maximum', 'at most'],
  ['minLength', 'characters at least'],
  ['maxLength', 'characters at most'],
  ['maxItems', 'entries at most'],
  ['pattern', 'pattern'],
] as const;

/** A table of rows. */
export function table(heads: readonly string[], rows: readonly string[]): string {
  const head = heads.map((name) => `<th scope="col">${name}</th>`).join(' ');
  return `<table><thead><tr>${head}</tr></thead><tbody>\n${rows.join('\n')}</tbody></table>`;
}

/** The members of a schema as a table; those of its members follow with their paths. */
export function membersTable(schema: Schema): string {
  const alternatives = alternativesOf(schema);
  if (alternatives.some(({ properties }) => properties !== undefined)) {
    const tables = alternatives.map((one) => `<li>${inline(one.description ?? '')}${membersTable(one)}</li>`);
    return `<p>One of:</p><ol>${tables.join('')}</ol>`;
  }
  const rows = rowsOf(schema, '');
  return rows.length === 0 ? `<p>${formOf(schema)}</p>` : table(['member', 'type', 'meaning'], rows);
}

function rowsOf(schema: Schema, path: string): string[] {
  const { items } = schema;
  if (items) {
    const about = items.description === undefined ? [] : [rowOf(`${path}[]`, items, '')];
    return [...about, ...rowsOf(items, `${path}[]`)];
  }
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const full = path === '' ? name : `${path}.${name}`;
    const needed = schema.required?.includes(name) ? '' : ' <span class="quiet">optional</span>';
    return [rowOf(full, member, needed), ...rowsOf(member, full)];
  });
  return [...members, ...alternativesOf(schema).flatMap((one) => rowsOf(one, path))];
}

function rowOf(path: string, schema: Schema, needed: string): string {
  return (
    `<tr><td><code>${escaped(path)}</code></td> <td>${formOf(schema)}${needed}</td> ` +
    `<td>${inline(schema.description ?? '')}</td></tr>`
  );
}

const alternativesOf = ({ anyOf, oneOf, properties }: Schema): Schema[] =>
  properties === undefined ? (anyOf ?? oneOf ?? []) : [];

/** The form of a value in one line. */
export function formOf(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return `<a href="#schema-${name}">${escaped(name)}</a>`;
  }
  if (schema.const !== undefined) return `<code>${escaped(JSON.stringify(schema.const))}</code>`;
  if (schema.enum !== undefined)
    return schema.enum.map((value) => `<code>${escaped(String(value))}</code>`).join(', ');
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) return alternatives.map((one) => formOf(one)).join(' or ');
  const type = [schema.type ?? 'any'].flat().join(' or ');
  const of = schema.items ? ` of ${formOf(schema.items)}` : '';
  const limits = LIMITS.flatMap(([name, text]) => {
    const value = schema[name];
    return value === undefined || Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER
      ? []
      : [`${text} ${escaped(JSON.stringify(value))}`];
  });
  const bounds = limits.length > 0 ? ` <span class="quiet">(${limits.join(', ')})</span>` : '';
  return `${escaped(type)}${of}${bounds}`;
}

/** A line of Markdown as HTML. */
export const inline = (text: string): string => marked.parseInline(text, { async: false });

/** Text for HTML. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
