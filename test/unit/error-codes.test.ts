import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ERROR_CODES, ServiceError, type ErrorCode } from '../../service/base/errors';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { errorCodeRows, listedCodes, readDocument } from '../helpers/pages/markdown';

const FOLDERS = ['service', 'deploy', 'devnet', 'cli', 'evidence'];

/** The source code of all folders that give codes. */
function sources(): string {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(PROJECT_ROOT, folder, name), 'utf8')),
  );
  return files.join('\n');
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

  it('has only codes that the source uses', () => {
    const words = new Set(sources().match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b/g));
    expect(Object.keys(ERROR_CODES).filter((code) => !words.has(code))).to.deep.equal([]);
  });
});

describe('an error', () => {
  it('is retryable as its code is, unless its throw says otherwise', () => {
    const retryable = (code: ErrorCode, options = {}): boolean =>
      new ServiceError(code, 'no', options).retryable;
    expect(retryable('DATABASE_LOCKED')).to.equal(true);
    expect(retryable('DATABASE_NEWER')).to.equal(false);
    expect(retryable('TRANSACTION_REJECTED')).to.equal(false);
    expect(retryable('TRANSACTION_REJECTED', { retryable: true })).to.equal(true);
  });
});
