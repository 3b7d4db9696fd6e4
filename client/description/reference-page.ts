import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Marked } from 'marked';
import { PROJECT_ROOT } from '../../service/base/project-root';
import type { Json } from '../../service/http/description/operation';

// The page of GET /docs. It is plain HTML: it needs no script, prints, and can be read in a terminal.

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
  example?: string;
}

type Content = Record<string, { schema: Schema; examples?: Record<string, { value: unknown }> }>;

interface Answer {
  $ref?: string;
  description: string;
  headers?: Record<string, { $ref?: string; description?: string; schema?: Schema; example?: string }>;
  content?: Content;
}

interface Described {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: (Parameter & { $ref?: string })[];
  requestBody?: { description: string; content: Content };
  responses: Record<string, Answer>;
}

interface Document {
  info: { title: string; version: string; description: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Described>>;
  webhooks: Record<string, { post: Described }>;
  components: Json;
}

const STYLE = readFileSync(join(PROJECT_ROOT, 'client/description/reference.css'), 'utf8');

/** The reference as an HTML page. */
export function referencePage(description: Json): string {
  const api = description as unknown as Document;
  const { title, version, description: introduction } = api.info;
  const places = placesOf(api);
  const chapters = api.tags.map(({ name, description: about }) => {
    const own = places.filter(({ operation }) => operation.tags.includes(name));
    return {
      name,
      about,
      own,
      anchor: name === 'Webhooks' ? 'webhooks' : `tag-${name.replaceAll(' ', '-')}`,
    };
  });
  const contents = chapters.map(({ name, anchor, own }) => {
    const links = own.map((one) => `<li><a href="#${one.anchor}">${escaped(one.operation.summary)}</a></li>`);
    return `<p><a href="#${anchor}">${escaped(name)}</a></p><ul>${links.join('')}</ul>`;
  });
  const resolve: Resolve = (given) => {
    const [kind = '', name = ''] = given.$ref?.split('/').slice(-2) ?? [];
    return (api.components[kind] as Record<string, typeof given> | undefined)?.[name] ?? given;
  };
  const sections = chapters.map(({ name, about, anchor, own }) => {
    const head = `<h2 id="${anchor}">${escaped(name)}</h2>`;
    return `${head}${markdown(about)}${own.map((place) => sectionOf(place, resolve)).join('')}`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>
${STYLE}</style>
</head>
<body>
<nav aria-label="Contents">${contents.join('')}<p><a href="#schemas">Schemas</a></p></nav>
<main>
<h1>${escaped(title)}</h1>
<p class="quiet">Version ${escaped(version)} of the API · <a href="/openapi.json">OpenAPI 3.1</a></p>
${markdown(introduction)}
${sections.join('')}
<h2 id="schemas">Schemas</h2>
${Object.entries(api.components.schemas as Record<string, Schema>)
  .map(schemaSection)
  .join('')}
</main>
</body>
</html>
`;
}

/** Replaces a reference by the component that it names. */
type Resolve = <Referred extends { $ref?: string }>(given: Referred) => Referred;

/** Where each operation and each webhook is. */
function placesOf({ paths, webhooks }: Document) {
  const operations = Object.entries(paths).flatMap(([label, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      return { anchor: `operation-${operation.operationId}`, label, method: method.toUpperCase(), operation };
    }),
  );
  const posts = Object.entries(webhooks).map(([label, { post: operation }]) => {
    return { anchor: `webhook-${label}`, label, method: 'POST', operation };
  });
  return [...operations, ...posts];
}

function schemaSection([name, schema]: [string, Schema]): string {
  const about = schema.description === undefined ? '' : markdown(schema.description);
  return `<section id="schema-${name}"><h3>${escaped(name)}</h3>${about}${membersTable(schema)}</section>`;
}

function sectionOf(place: ReturnType<typeof placesOf>[number], resolve: Resolve): string {
  const { anchor, label, method, operation } = place;
  const { summary, description = '', parameters = [], requestBody, responses } = operation;
  return `<section id="${anchor}">
<h3>${escaped(summary)}</h3>
<p class="path"><b>${method}</b> <code>${escaped(label)}</code></p>
${markdown(description)}
${parametersTable(parameters.map(resolve))}
${requestBody ? `<h4>Body</h4>${markdown(requestBody.description)}${contentOf(requestBody.content)}` : ''}
<h4>Answers</h4>
${Object.entries(responses)
  .map(([status, answer]) => answerOf(status, resolve(answer), resolve))
  .join('')}
</section>`;
}

function parametersTable(parameters: readonly Parameter[]): string {
  if (parameters.length === 0) return '';
  const rows = parameters.map(
    ({ name, in: place, required, description = '', schema, example }) =>
      `<tr><td><code>${escaped(name)}</code></td> <td>${place}${required ? ', needed' : ''}</td> ` +
      `<td>${inline(description)} ${formOf(schema)}${exampleOf(example)}</td></tr>`,
  );
  return `<h4>Parameters</h4>${table(['name', 'in', 'value'], rows)}`;
}

function answerOf(status: string, answer: Answer, resolve: Resolve): string {
  const [summary = '', ...rest] = answer.description.split('\n');
  const rows = Object.entries(answer.headers ?? {}).map(([name, header]) => {
    const { description = '', example } = resolve(header);
    const value = `${inline(description)}${exampleOf(example)}`;
    return `<tr><td><code>${escaped(name)}</code></td> <td>${value}</td></tr>`;
  });
  const headers = rows.length === 0 ? '' : table(['header', 'value'], rows);
  const open = /^2/.test(status) ? ' open' : '';
  return `<details${open}><summary><b>${status}</b> ${inline(summary)}</summary>${markdown(
    rest.join('\n'),
  )}${headers}${contentOf(answer.content ?? {})}</details>`;
}

function contentOf(content: Content): string {
  return Object.entries(content)
    .map(([mediaType, { schema, examples = {} }]) => {
      const shown = Object.entries(examples).map(([name, { value }]) => {
        const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
        return `<p class="quiet">Example: ${escaped(name)}</p><pre tabindex="0">${escaped(text)}</pre>`;
      });
      return `<p><code>${escaped(mediaType)}</code>: ${formOf(schema)}</p>${shown.join('')}`;
    })
    .join('');
}

/** An example of a parameter or a header. */
const exampleOf = (example?: string): string =>
  example === undefined ? '' : ` <span class="quiet">Example:</span> <code>${escaped(example)}</code>`;

const markdown = (text: string): string => marked.parse(text, { async: false });

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
