import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import { format, resolveConfig } from 'prettier';
import { PROJECT_ROOT } from '../service/base/project-root';
import { openApi } from '../service/http/description/openapi';
import { OPERATIONS } from '../service/http/description/operations';

// Writes what is made from the description of the API. A test compares the files with it.

/** The files, relative to the project, and their texts. */
export async function describedFiles(): Promise<[path: string, text: string][]> {
  const description = openApi();
  // A member of a request that has a default may be left out.
  const ast = await openapiTS(description as never, { defaultNonNullable: false });
  const types = astToString(ast);
  const files: [string, string][] = [
    ['docs/openapi.json', JSON.stringify(description)],
    ['client/api-types.ts', `${COMMENT_HEADER}${types}\n${keyOfPaths()}`],
  ];
  return Promise.all(
    files.map(async ([path, text]): Promise<[string, string]> => {
      const filepath = join(PROJECT_ROOT, path);
      return [path, await format(text, { ...(await resolveConfig(filepath)), filepath })];
    }),
  );
}

/** The key of each path that needs one, so that the client sends no key to others. */
function keyOfPaths(): string {
  const keys = OPERATIONS.filter(({ access }) => access !== 'anyone').map(
    ({ path, access }) => [path, access === 'admin' ? 'adminApiKey' : 'apiKey'] as const,
  );
  const type = "Readonly<Record<string, 'apiKey' | 'adminApiKey' | undefined>>";
  return `/** The key that a path needs. */
export const KEY_OF_PATH: ${type} = ${JSON.stringify(Object.fromEntries(keys))};`;
}

async function main(): Promise<void> {
  for (const [path, text] of await describedFiles()) writeFileSync(join(PROJECT_ROOT, path), text);
}

if (require.main === module) void main();
