import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PROJECT_ROOT } from '../../service/base/project-root';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { askTdoc } from '../helpers/processes/command-answer';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { temporaryFolder } from '../helpers/temporary-folder';

describe('npx tdoc validate', () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'x.json');

  it('exits with 0 for a valid file, whose path is relative to the working directory', async () => {
    const cwd = join(PROJECT_ROOT, 'test/fixtures');
    const { code, stdout } = await askTdocInProcess(
      ['validate', '../fixtures/bill-of-lading-minimal.json'],
      {},
      { cwd },
    );
    expect(stdout).to.match(/^taken for the body of a POST \/create.*\nvalid\n$/);
    expect(code).to.equal(0);
  });

  it('exits with 1 for an invalid file, and prints every problem with its JSON pointer', async () => {
    const credentialSubject = { type: ['BillOfLading'], vessel: 5, 'a\nb': 1 };
    writeFileSync(
      file,
      JSON.stringify({ '@context': [], type: ['VerifiableCredential'], credentialSubject }),
    );
    const { code, stdout } = await askTdocInProcess(['validate', file], {});
    expect(stdout.trimEnd().split('\n')).to.have.members([
      'taken for a credential: its credentialSubject was checked',
      '/credentialSubject/scac  Missing required BillOfLading fields [REQUIRED_FIELD_MISSING]',
      '/credentialSubject/blNumber  Missing required BillOfLading fields [REQUIRED_FIELD_MISSING]',
      '/credentialSubject/vessel  Must be a string [VALUE_TYPE_WRONG]',
      '/credentialSubject/a\\u000ab  "a\\nb" is not a term that a Bill of Lading has here [TERM_UNKNOWN]',
      'not valid: 4 problems',
    ]);
    expect(code).to.equal(1);
  });

  it('takes the terms of --context, and names the faults of one that cannot be used', async () => {
    const context = join(folder.path, 'own.json');
    const id = 'https://carrier.example/terms#';
    const write = (seals: object): void => {
      const terms = { scac: `${id}scac`, blNumber: `${id}no`, sealNo: `${id}sealNo`, seals };
      const own = { BillOfLading: { '@id': `${id}Bill`, '@context': terms } };
      writeFileSync(context, JSON.stringify({ '@context': own }));
    };
    const seals = [{ sealNo: 'B' }];
    const credentialSubject = { type: ['BillOfLading'], scac: 'A', blNumber: '1', sealNo: 'A', seals };
    writeFileSync(file, JSON.stringify({ credentialSubject }));
    write({ '@id': `${id}seals`, '@context': { sealNo: `${id}sealNo` } });
    const valid = await askTdocInProcess(['validate', file, '--context', context], {});
    expect([valid.code, valid.stdout.split('\n')[1]]).to.deep.equal([0, 'valid']);
    write({ '@id': `${id}seals` });
    const nested = await askTdocInProcess(['validate', file, '--context', context], {});
    expect(nested.stdout).to.match(
      /^\/credentialSubject\/seals\/0\/sealNo {2}Is the term "sealNo", which .* "BillOfLading" only; /m,
    );
    write({ '@id': `${id}seals`, '@container': '@index' });
    const unusable = await askTdocInProcess(['validate', file, '--context', context], {});
    expect(unusable.code).to.equal(1);
    expect(unusable.stdout).to.match(
      /own\.json \/@context\/BillOfLading\/@context\/seals has the container @index .*\[CONTEXT_UNUSABLE\]/,
    );
  });

  it('reads standard input, and answers in JSON after --json', async () => {
    const input = JSON.stringify({ ...minimal.credentialSubject, blNumber: '' });
    const { code, stdout } = await askTdoc(['validate', '-', '--json'], {}, { input });
    expect(JSON.parse(stdout)).to.deep.equal({
      valid: false,
      takenFor: 'credentialSubject',
      count: 1,
      problems: [
        {
          pointer: '/blNumber',
          code: 'REQUIRED_FIELD_MISSING',
          message: 'Missing required BillOfLading fields',
        },
      ],
    });
    expect(code).to.equal(1);
  });

  it('shows the first hundred problems, without the middle of a long name', async () => {
    const vessel = Array.from({ length: 5_000 }, () => '_:');
    const subject = { ...minimal.credentialSubject, vessel, ['n'.repeat(1_000_000)]: 1 };
    writeFileSync(file, JSON.stringify(subject));
    const { stdout } = await askTdocInProcess(['validate', file, '--json'], {});
    const { count, problems } = JSON.parse(stdout) as { count: number; problems: object[] };
    expect([count, problems.length]).to.deep.equal([5_002, 100]);
    expect(stdout.length).to.be.below(100_000);
    const lines = await askTdocInProcess(['validate', file], {});
    expect(lines.stdout).to.match(/\nnot valid: 5002 problems, of which 100 are shown\n$/);
  });

  it('exits with 2 when it cannot read JSON from the file, and explains why without a stack', async () => {
    writeFileSync(file, '{\n  "scac": "A",\n}');
    const notJson = await askTdocInProcess(['validate', file], {});
    expect(notJson.stderr).to.match(/x\.json is not JSON: line 3, column 1: .* \[FILE_NOT_JSON\]\n$/);
    expect(notJson.stderr + notJson.stdout).not.to.match(/\n +at /);
    expect(notJson.code).to.equal(2);
    const missing = await askTdocInProcess(['validate', join(folder.path, 'missing.json')], {});
    expect(missing.stderr).to.contain('FILE_NOT_FOUND');
    expect(missing.code).to.equal(2);
  });
});
