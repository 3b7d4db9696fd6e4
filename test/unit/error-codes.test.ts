import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { errorCodeRows, listedCodes, readDocument } from '../helpers/pages/markdown';

const FOLDERS = ['service', 'deploy', 'devnet', 'cli/operating'];
/**
 * Error classes of service/base/errors.ts and their subclasses, some of which have one code only. Errors of
 * libraries are not listed.
 */
const MADE =
  /(?:new (?:(?:Service|Configuration|Request|Signing|Signer|Chain|Http)Error|Refusal)|super)\(\s*(?:\d+,\s*)?'([A-Z_]+)'/g;

/** The codes of all errors that the source code creates. */
function thrownCodes(): string[] {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(PROJECT_ROOT, folder, name), 'utf8')),
  );
  return [...new Set(files.flatMap((text) => [...text.matchAll(MADE)].map(([, code = '']) => code)))];
}

describe('docs/error-codes.md', () => {
  const rows = errorCodeRows();
  const listed = listedCodes();

  it('has every code that docs/http-api.md explains', () => {
    const { section } = readDocument('docs/http-api.md');
    const text = section('Errors').text + section('Sending again').text;
    const named = new Set(text.match(/\b[A-Z]+(?:_[A-Z]+)+\b|\b(?:BUSY|INTERNAL)\b/g));
    expect(named).to.have.property('size').greaterThan(15);
    expect([...named].filter((code) => !listed.has(code))).to.deep.equal([]);
  });

  it('lists a 500 as retryable only if docs/http-api.md names its code', () => {
    const named = readDocument('docs/http-api.md').section('Errors').text;
    const again = rows.flatMap((row) => {
      const [, codes = '', status = '', retryable = ''] = row.split('|').map((cell) => cell.trim());
      return status.startsWith('500') && retryable === 'yes' ? codes.split(', ') : [];
    });
    expect(again).to.include.members(['RPC_UNREACHABLE', 'DATABASE_LOCKED']);
    expect(again.filter((code) => !new RegExp(`\\b${code}\\b`).test(named))).to.deep.equal([]);
  });

  it('has the code of every error that is thrown', () => {
    const thrown = thrownCodes();
    expect(thrown.length).to.be.greaterThan(50);
    expect(thrown.filter((code) => !listed.has(code))).to.deep.equal([]);
  });
});
