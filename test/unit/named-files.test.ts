import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { readDocument } from '../helpers/pages/markdown';

const FOLDERS = [
  ...[
    'bench',
    'cli',
    'client',
    'console',
    'contexts',
    'contracts',
    'deploy',
    'devnet',
    'docs',
    'evidence',
    'examples',
  ],
  ...['receiver', 'service', 'test'],
];

/** Named, but not files of this project. */
const FOREIGN = new Map([
  ['RegistryAccess.sol', 'of the package @tradetrust-tt/token-registry'],
  ['TitleEscrow.sol', 'of the package @tradetrust-tt/token-registry'],
  ['TradeTrustTokenStandard.sol', 'of the package @tradetrust-tt/token-registry'],
  ['act.cjs', "the reader's: a program of docs/holders.md"],
  ['contexts/bill-of-lading-v2.json', "the reader's: a next version, made by the steps of docs/contexts.md"],
  ['contexts/trade-bill-of-lading-v1.json', "the reader's: a context of docs/contexts.md"],
  ['published-keys.mjs', "the reader's: a module of docs/webhooks.md"],
  ['receiver.mjs', "the reader's: a program of the API's description"],
  ['report.mjs', "the reader's: a program of docs/reports"],
  ['tenants/a.did.json', "the reader's: a setting of docs/tenants.md"],
  ['tenants/a.service.config.json', "the reader's: a setting of docs/tenants.md"],
  ['verify.mjs', "the reader's: a program of docs/webhooks.md"],
]);

/** A source or a page, with or without its folders, or a JSON file with them: no URL, no pattern. */
const NAME = /(?<![\w$./@{}…*<:-])(?:(?:[\w.-]+\/)*[\w-][\w.-]*\.(?:tsx?|cjs|mjs|sol|md)|(?:[\w.-]+\/)+[\w.-]+\.json)\b(?![\w/(-])/g; // prettier-ignore

const COMMENT = /\/\*[\s\S]*?\*\/|(?<![:'"`\w/])\/\/[^\n]*/g;

const isSource = (file: string): boolean => /\.(tsx?|sol|mjs|cjs)$/.test(file);
const read = (file: string): string => readFileSync(join(PROJECT_ROOT, file), 'utf8');

describe('comments and pages', () => {
  const files = [
    ...readdirSync(PROJECT_ROOT),
    ...FOLDERS.flatMap((folder) =>
      readdirSync(join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
        join(folder, name),
      ),
    ),
  ].filter((file) => statSync(join(PROJECT_ROOT, file)).isFile());

  it('name only files that exist', () => {
    const texts = files.flatMap((file) =>
      isSource(file)
        ? (read(file).match(COMMENT) ?? []).map((text) => ({ file, text }))
        : file.endsWith('.md')
          ? [{ file, text: read(file) }]
          : [],
    );
    const named = texts.flatMap(({ file, text }) =>
      (text.match(NAME) ?? []).map((name) => ({ file, name: name.replace(/^(\.\.?\/)+/, '') })),
    );
    const isMissing = (name: string): boolean => !files.some((file) => `/${file}`.endsWith(`/${name}`));
    const missing = named.filter(({ name }) => isMissing(name));
    expect(named.map(({ name }) => name)).to.include.members(['transport.ts', 'docs/specification.md']);
    expect(missing.filter(({ name }) => !FOREIGN.has(name))).to.deep.equal([]);
    expect(missing.map(({ name }) => name)).to.include.members([...FOREIGN.keys()]);
  });

  it('find a name of the code in the file that they give for it', () => {
    const pages = files.filter((file) => file.endsWith('.md') && !file.includes('/reports/'));
    const named = pages.flatMap((page) =>
      [...read(page).matchAll(/((?:`\w+`(?:,| and)? )+)in\s+`([\w/-]+\.ts)`/g)].flatMap(
        ([, names = '', file = '']) => (names.match(/\w+(?=`)/g) ?? []).map((name) => ({ page, name, file })),
      ),
    );
    expect(named.map(({ name }) => name)).to.include.members(['LEAST_ATTEMPTS', 'issuerKeyOf']);
    const has = (file: string, name: string): boolean =>
      files.some((one) => `/${one}`.endsWith(`/${file}`) && new RegExp(`\\b${name}\\b`).test(read(one)));
    expect(named.filter(({ file, name }) => !has(file, name))).to.deep.equal([]);
  });

  it('name only headings that the pages have', () => {
    const named = files
      .filter(isSource)
      .flatMap((file) => [...read(file).matchAll(/(docs\/[\w-]+\.md), "([^"]+)"/g)]);
    expect(named).to.have.length.greaterThan(3);
    for (const [, page = '', heading = ''] of named) readDocument(page).section(heading);
  });
});
