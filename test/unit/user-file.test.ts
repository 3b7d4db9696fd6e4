import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import type { ServiceError } from '../../service/base/errors';
import { findJsonError } from '../../service/base/json';
import { readJsonInput } from '../../cli/files/user-file';
import { errorOf } from '../helpers/error-of';
import { seededRandom } from '../helpers/seeded-random';
import { temporaryFolder } from '../helpers/temporary-folder';

/** The error of reading a file. */
const refusal = (path: string): Promise<ServiceError> => errorOf(readJsonInput(path));

describe('a JSON file that a user names', () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'x.json');

  it('is read with a byte order mark, by an absolute or a relative path', async () => {
    writeFileSync(file, '\ufeff{"a": "提单"}');
    expect(await readJsonInput(file)).to.deep.equal({ a: '提单' });
    expect(await readJsonInput(relative(process.cwd(), file))).to.deep.equal({ a: '提单' });
  });

  it('may have 6 MB, in which a syntax error is located too', async () => {
    const text = JSON.stringify({ a: 'x'.repeat(6 * 1024 * 1024) });
    writeFileSync(file, text);
    expect(await readJsonInput(file)).to.have.property('a');
    writeFileSync(file, `${text.slice(0, -1)},}`);
    expect((await refusal(file)).message).to.match(/line 1, column 6291465: a name in double quotes/);
  });

  it('is refused with different codes if it is missing or a folder', async () => {
    const missing = await refusal(join(folder.path, 'missing.json'));
    expect(missing.code).to.equal('FILE_NOT_FOUND');
    expect(missing.message).to.contain(join(folder.path, 'missing.json'));
    expect(await refusal(join(file, 'in-a-file'))).to.have.property('code', 'FILE_NOT_FOUND');
    expect(await refusal(folder.path)).to.have.property('code', 'FILE_UNREADABLE');
  });

  it('is refused with the place of a name that one object repeats', async () => {
    writeFileSync(file, '{"a": {"b": 1}, "b": {"a": 1},\n "c": [{"a": 1}, {"a": 2}], "__proto__": 1}');
    expect(await readJsonInput(file)).to.have.property('a');
    for (const [text, place] of [
      ['{"vessel": "A",\n "vessel": "B"}', '"/vessel" occurs twice'],
      ['[{"a": {"__proto__": 1, "__proto__": 2}}]', '"/0/a/__proto__" occurs twice'],
      ['{"a": 1, "\\u0061": 2}', '"/a" occurs twice'],
      ['{"a": [{"]": "{,["}, {"b/c": {}, "d": [[]], "b/c": "\\""}]}', '"/a/1/b~1c" occurs twice'],
    ] as const) {
      writeFileSync(file, text);
      const { code, message } = await refusal(file);
      expect(code, text).to.equal('FILE_AMBIGUOUS');
      expect(message).to.contain(place);
    }
  });

  it('is refused with the place, or the encoding, if it is not JSON in UTF-8', async () => {
    for (const [bytes, problem] of [
      [Buffer.from('{"a":\n "K\xf6ln"}', 'latin1'), /: line 2, column 4: it is not text in UTF-8\.$/],
      [Buffer.from('{"\ufffd":"é').subarray(0, -1), /: line 1, column 7: it is not text in UTF-8\.$/],
      [Buffer.from('\ufeff{"a":1}', 'utf16le'), /: it is in UTF-16; write it in UTF-8\.$/],
      [Buffer.from('{"a":1}', 'utf16le'), /: it is in UTF-16/],
      [Buffer.from('\ufeff{"a":1,}'), /: line 1, column 8: a name in double quotes is expected\.$/],
      [' \n', /: it is empty\.$/],
      [`${'['.repeat(100_000)}x`, /: it has too many levels\.$/],
    ] as const) {
      writeFileSync(file, bytes);
      expect((await refusal(file)).message).to.match(problem);
    }
  });
});

describe('the place of a JSON syntax error', () => {
  for (const [text, line, column, problem] of [
    ['{\n  "a": 1,\n}', 3, 1, 'a name in double quotes is expected'],
    ['{"a" 1}', 1, 6, 'a colon is expected'],
    ['{"a": 1 "b"}', 1, 9, 'a comma or a closing bracket is expected'],
    ['[1,]', 1, 4, 'a value is expected'],
    ["{'a': 1}", 1, 2, 'this is not a JSON value'],
    ['{"a": undefined}', 1, 7, 'this is not a JSON value'],
    ['{"a": "x\ny"}', 1, 7, 'this string is not closed on its line'],
    ['{"a": "x\ty"}', 1, 7, 'a control character in a string must be escaped'],
    ['{"a": "\\x"}', 1, 7, 'this string has an escape sequence that JSON does not have'],
    ['{"a": [1', 1, 9, 'a comma or ] is expected'],
    ['{"a": {"b": 1', 1, 14, 'a comma or } is expected'],
    ['{"a": 1e}', 1, 7, 'this number is not complete'],
    ['{} {}', 1, 4, 'nothing more is expected'],
    ['// x\n{}', 1, 1, 'JSON has no comments'],
  ] as const) {
    it(`is found in ${JSON.stringify(text)}`, () => {
      expect(findJsonError(text)).to.equal(`line ${line}, column ${column}: ${problem}`);
    });
  }

  it('exists exactly when JSON.parse refuses the text', () => {
    const random = seededRandom(4);
    const pieces = '{ } [ ] , : "a" "\\u00e9" "\\q 1 -0.5e3 01 true nul null " \n \t x'.split(' ');
    let valid = 0;
    for (let round = 0; round < 2_000; round++) {
      const text = Array.from({ length: 1 + random.below(7) }, () => random.pick(pieces)).join('');
      const isFine = findJsonError(text) === undefined;
      valid += Number(isFine);
      if (isFine) expect(() => JSON.parse(text) as unknown, text).not.to.throw();
      else expect(() => JSON.parse(text) as unknown, text).to.throw();
    }
    expect(valid).to.be.greaterThan(10);
  });

  it('is not searched for in nesting that exceeds the stack', () => {
    expect(findJsonError(`${'['.repeat(100_000)}x`)).to.equal(undefined);
  });
});
