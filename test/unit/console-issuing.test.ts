import { expect } from 'chai';
import { EMPTY_PACKAGE, type Draft } from '../../console/issuing/draft';
import { createIssuing, NOTHING } from '../../console/issuing/issuing-state';
import { RequestFailure } from '../../console/requests/request';
import { newDeferred } from '../../service/base/time';
import type { Validation } from '../../service/validation/problems';

type IssuingApi = Parameters<ReturnType<typeof createIssuing>['sendAgain']>[0];

const DRAFT: Draft = {
  terms: { blNumber: 'BL-1' },
  packages: [EMPTY_PACKAGE],
  attachments: [],
  owner: '',
  holder: '',
  remarks: '',
};
const FINE: Validation = { problems: [], remarkBytes: 0, mostRemarkBytes: 120 };
const LOST = new RequestFailure(0, 'CONNECTION_LOST', 'The service did not answer.');
const FILE = { filename: 'a', mimeType: 'text/plain', data: 'QQ==' };

/** A form whose requests get `answers` in turn; then the document is accepted. */
function startForm({ answers = [] as Error[], validate = () => Promise.resolve(FINE) } = {}) {
  const keys: string[] = [];
  const form = { now: NOTHING, keys };
  const api: IssuingApi = {
    validate,
    issue: (_json, key) => {
      keys.push(key);
      const failure = answers.shift();
      if (failure) return Promise.reject(failure);
      return Promise.resolve({ status: 202, headers: new Headers(), body: { tokenId: 'ab' } });
    },
  };
  let made = 0;
  const issuing = createIssuing(
    (now) => (form.now = now),
    () => `key ${++made}`,
  );
  return { ...issuing, api, form };
}

describe('issuing in the console', () => {
  it('sends a document once, however often it is asked to while it is checked', async () => {
    const { issue, api, form } = startForm();
    await Promise.all([issue(api, DRAFT), issue(api, DRAFT)]);
    await issue(api, DRAFT);
    expect(form.keys).to.deep.equal(['key 1']);
    expect(form.now.submission?.tokenId).to.equal('ab');
  });

  it('sends nothing if the document was changed while it was checked', async () => {
    const checking = newDeferred<Validation>();
    const { issue, change, api, form } = startForm({ validate: () => checking.promise });
    const issued = issue(api, DRAFT);
    change((now) => ({ ...now, remarks: 'other' }), DRAFT);
    checking.resolve(FINE);
    await issued;
    expect([form.keys, form.now.isChecking, form.now.draft?.remarks]).to.deep.equal([[], false, 'other']);
  });

  it('keeps the key of an uncertain document until its bytes change', async () => {
    const { issue, sendAgain, edit, change, api, form } = startForm({ answers: [LOST, LOST, LOST] });
    await issue(api, DRAFT);
    await sendAgain(api);
    edit();
    await issue(api, DRAFT);
    edit();
    change((now) => ({ ...now, remarks: 'other' }), DRAFT);
    await issue(api, { ...DRAFT, remarks: 'other' });
    expect(form.keys).to.deep.equal(['key 1', 'key 1', 'key 1', 'key 2']);
  });

  it('stays uncertain after a refusal that is not about the document', async () => {
    const refusals = [
      new RequestFailure(403, 'KEY_READ_ONLY', ''),
      new RequestFailure(404, 'HTTP_404', ''),
      new RequestFailure(422, 'IDEMPOTENCY_KEY_REUSED', ''),
    ];
    const { issue, sendAgain, api, form } = startForm({ answers: [LOST, ...refusals] });
    await issue(api, DRAFT);
    for (const { code } of refusals) {
      await sendAgain(api);
      expect(form.now.submission?.failure?.code).to.equal(code);
    }
    await sendAgain(api);
    expect(new Set(form.keys).size).to.equal(1);
    expect(form.now.submission?.tokenId).to.equal('ab');
  });

  it('returns to the form with the problem of a refused document, until the form changes', async () => {
    const refusal = new RequestFailure(400, 'REQUEST_FIELD_INVALID', '/owner is missing.');
    const { issue, change, api, form } = startForm({ answers: [refusal] });
    await issue(api, DRAFT);
    expect(form.now).to.deep.include({ submission: undefined, isTried: true });
    expect(form.now.refusal?.pointer).to.equal('/owner');
    change((now) => now, DRAFT);
    expect(form.now.refusal).to.equal(undefined);
    await issue(api, DRAFT);
    expect(form.keys).to.deep.equal(['key 1', 'key 2']);
  });

  it('sends a document whose texts are too long for the check, and none with a problem', async () => {
    const long = startForm({ validate: () => Promise.reject(new RequestFailure(413, 'BODY_TOO_LARGE', '')) });
    await long.issue(long.api, DRAFT);
    expect(long.form.keys).to.have.length(1);
    const problems = [{ pointer: '/owner', code: 'X', message: '', isRefused: true }];
    const wrong = startForm({ validate: () => Promise.resolve({ ...FINE, problems }) });
    await wrong.issue(wrong.api, DRAFT);
    expect(wrong.form.keys).to.deep.equal([]);
    expect(wrong.form.now.validation?.problems).to.deep.equal(problems);
  });

  it('sends nothing before all files are read, and keeps what was typed meanwhile', async () => {
    const { attach, change, issue, api, form } = startForm();
    const reading = newDeferred<typeof FILE>();
    const attached = attach([{ size: 1 }], () => reading.promise, DRAFT);
    await issue(api, DRAFT);
    expect(form.keys).to.deep.equal([]);
    change((now) => ({ ...now, remarks: 'typed' }), DRAFT);
    reading.resolve(FILE);
    await attached;
    expect(form.now.draft).to.deep.equal({ ...DRAFT, remarks: 'typed', attachments: [FILE] });
  });

  it('reads no files that are too large', async () => {
    const { attach, form } = startForm();
    const read = (): never => expect.fail('read');
    await attach([{ size: 40 * 1024 * 1024 }], read, DRAFT);
    expect(form.now.failure?.code).to.equal('FILE_TOO_LARGE');
  });

  it('sends nothing after a new form was begun, and shows nothing of the old one', async () => {
    const checking = newDeferred<Validation>();
    const { issue, restart, api, form } = startForm({ validate: () => checking.promise });
    const issued = issue(api, DRAFT);
    restart();
    checking.resolve(FINE);
    await issued;
    expect(form.keys).to.deep.equal([]);
    expect(form.now).to.deep.equal(NOTHING);
  });
});
