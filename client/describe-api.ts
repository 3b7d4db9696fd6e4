import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import { format, resolveConfig } from 'prettier';
import { PROJECT_ROOT } from '../service/base/project-root';
import { ERROR_CODES, OPERATIONS, openApi } from './description/openapi';
import { referencePage } from './description/reference-page';

/** The texts that are made from the description of the API, by the files that they are written to. */
const TEXTS: Readonly<Record<string, () => Promise<string>>> = {
  /** In git, for readers and other programs. A test compares it with the description. */
  'docs/openapi.json': () => formatted('docs/openapi.json', JSON.stringify(openApi())),
  'docs/error-codes.md': () => formatted('docs/error-codes.md', explainedPage()),
  /** Made by the build: the service answers them. */
  'dist/api/openapi.json': async () => JSON.stringify(openApi()),
  'dist/api/reference.html': async () => referencePage(openApi()),
  /** Made by the build. */
  'client/api-types.ts': async () => {
    // A member of a request that has a default may be left out.
    const ast = await openapiTS(openApi() as never, { defaultNonNullable: false });
    return `${COMMENT_HEADER}${astToString(ast)}\n${keysOfPaths()}\n`;
  },
};

/** The text of one of the files; undefined if there is none. */
export async function describedText(path: string): Promise<string | undefined> {
  return TEXTS[path]?.();
}

async function formatted(path: string, text: string): Promise<string> {
  const filepath = join(PROJECT_ROOT, path);
  return format(text, { ...(await resolveConfig(filepath)), filepath });
}

/**
 * The page of the error codes. The first row of each code that the API describes gets the text of the
 * description; a later row is that of the commands, and has words of its own. Links in a cell stay while its
 * text does.
 */
function explainedPage(): string {
  const unexplained = new Map(Object.entries(ERROR_CODES));
  const lines = readFileSync(join(PROJECT_ROOT, 'docs/error-codes.md'), 'utf8').split('\n');
  const explained = lines.map((line) => {
    const cells = line.split(/(?<!\\)\|/);
    const codes = cells[1]?.split(',').map((code) => code.trim()) ?? [];
    const texts = codes.map((code) => unexplained.get(code)).find((known) => known !== undefined);
    if (texts === undefined) return line;
    for (const code of codes) unexplained.delete(code);
    for (const [at, text] of [
      [-3, texts.why],
      [-2, texts.remedy ?? ''],
    ] as const)
      if (withoutLinks(cells.at(at)) !== text) cells[cells.length + at] = text;
    return cells.join('|');
  });
  const missing = [...unexplained.keys()].join(', ');
  if (missing !== '') throw new Error(`docs/error-codes.md has no row for ${missing}: add one.`);
  return explained.join('\n');
}

function withoutLinks(cell = ''): string {
  return cell.trim().replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
}

/** The keys that open each path, the more powerful first, so that the client sends no key to others. */
function keysOfPaths(): string {
  const keys = { anyone: [], 'issuer if set': ['apiKey'], issuer: ['apiKey'], admin: ['adminApiKey'] };
  const all = { ...keys, 'any key': ['adminApiKey', 'apiKey'] };
  const entries = OPERATIONS.map(({ path, access }) => [path, all[access]] as const);
  const ofPaths = Object.fromEntries(entries.filter(([, names]) => names.length > 0));
  const type = "Readonly<Record<string, readonly ('apiKey' | 'adminApiKey')[] | undefined>>";
  return `/** The keys that open a path. */
export const KEYS_OF_PATH: ${type} = ${JSON.stringify(ofPaths)};`;
}

/** Writes the files that the arguments name. */
async function main(): Promise<void> {
  for (const path of process.argv.slice(2)) {
    const text = await describedText(path);
    if (text === undefined) throw new Error(`${path} is not one of ${Object.keys(TEXTS).join(', ')}`);
    const file = join(PROJECT_ROOT, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

if (require.main === module) void main();
