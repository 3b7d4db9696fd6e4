import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import { format, resolveConfig } from 'prettier';
import { ERROR_CODES } from '../service/base/errors';
import { PROJECT_ROOT } from '../service/base/project-root';
import { OPERATIONS, openApi } from './description/openapi';
import { referencePage } from './description/reference-page';

/** The texts that are made from the description of the API, by the files that they are written to. */
const TEXTS: Readonly<Record<string, () => Promise<string>>> = {
  /** In git, for readers and other programs. A test compares it with the description. */
  'docs/openapi.json': () => formatted('docs/openapi.json', JSON.stringify(openApi())),
  'docs/error-codes.md': () => formatted('docs/error-codes.md', errorCodesPage()),
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

/** The page of the error codes: its own text, with the table of the codes. */
function errorCodesPage(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status = [], where, retryable, why, remedy = '' }]) =>
      [code, [...status, ...(where === undefined ? [] : [where])].join(', '), retryable, why, remedy].join(
        ' | ',
      ),
  );
  const head = ['code | status, or where | retryable | why | what to do', '- | - | - | - | -'];
  const table = [...head, ...rows].map((row) => `| ${row} |\n`).join('');
  const page = readFileSync(join(PROJECT_ROOT, 'docs/error-codes.md'), 'utf8');
  return page.replace(/(?:^\|.*\n)+/m, () => table);
}

/** The keys that open each path, the more powerful first, so that the client sends no key to others. */
function keysOfPaths(): string {
  const keys = { anyone: [], 'issuer if set': ['apiKey'], issuer: ['apiKey'], admin: ['key'] };
  const all = { ...keys, 'any key': ['key', 'apiKey'] };
  const entries = OPERATIONS.map(({ path, access }) => [path, all[access]] as const);
  const ofPaths = Object.fromEntries(entries.filter(([, names]) => names.length > 0));
  const type = "Readonly<Record<string, readonly ('apiKey' | 'key')[] | undefined>>";
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
