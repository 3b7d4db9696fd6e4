import { expect } from 'chai';
import { CallerLeftError, codeOf, SignerError } from '../../service/base/errors';
import { RemoteSigner } from '../../service/keys/signer-state';
import { errorOf } from '../helpers/error-of';
import { VirtualTime } from '../helpers/virtual-time';

const wrong = (): Promise<never> => Promise.reject(new SignerError('SIGNER_ANSWER_WRONG', 'It lies.'));
const refused = (): Promise<never> => Promise.reject(new SignerError('SIGNER_REFUSED', 'It is locked.'));
const away = (): Promise<never> => Promise.reject(new SignerError('SIGNER_UNREACHABLE', 'It is away.'));

const KEY = { key: 'wallet', at: 'there' } as const;

describe('the state of a remote signer', () => {
  const SIGNATURES = {
    wrong: { code: 'SIGNER_ANSWER_WRONG', answer: wrong, check: 'fails' },
    refused: { code: 'SIGNER_REFUSED', answer: refused, check: 'succeeds' },
    missing: { code: 'SIGNER_UNREACHABLE', answer: away, check: 'succeeds' },
  } as const;
  for (const [what, { code, answer, check }] of Object.entries(SIGNATURES))
    it(`is failing for half a minute after a ${what} signature, and a check ${check}`, async () => {
      const time = new VirtualTime();
      const since = time.now();
      const signer = new RemoteSigner(time, KEY, async () => undefined);
      const checked = (): Promise<unknown> => signer.check().then(() => 'up', codeOf);
      expect(codeOf(await errorOf(signer.follow(answer())))).to.equal(code);
      await time.pass(29_999);
      expect(await checked()).to.equal(check === 'fails' ? code : 'up');
      expect(signer.report()).to.include({ state: 'failing', since, code });
      await time.pass(1);
      expect(await checked()).to.equal('up');
      expect(signer.report()).to.include({ state: 'up', code: undefined });
    });

  it('is up after a check when the clock was set back by an hour since a wrong signature', async () => {
    let now = 3_600_000;
    const time = Object.assign(new VirtualTime(), { now: () => now });
    const signer = new RemoteSigner(time, KEY, async () => undefined);
    await errorOf(signer.follow(wrong()));
    now = 0;
    await signer.check();
    expect(signer.report()).to.include({ state: 'up', code: undefined });
  });

  it('is failing with a wrong answer when a check cannot read the answer', async () => {
    const unread = new TypeError('Cannot convert object to primitive value');
    const signer = new RemoteSigner(new VirtualTime(), KEY, () => Promise.reject(unread));
    expect(codeOf(await errorOf(signer.check()))).to.equal('SIGNER_ANSWER_WRONG');
    expect(signer.report()).to.include({ state: 'failing', code: 'SIGNER_ANSWER_WRONG', wrongAnswers: 1 });
  });

  it('is up after a signature, whatever failed before', async () => {
    const signer = new RemoteSigner(new VirtualTime(), { ...KEY, key: 'issuer' }, async () => undefined);
    for (const answer of [wrong, refused, away]) {
      await errorOf(signer.follow(answer()));
      await signer.follow(Promise.resolve());
      await signer.check();
      expect(signer.report()).to.include({ state: 'up', code: undefined, wrongAnswers: 1 });
    }
  });
});

describe('waiting for a remote signer', () => {
  let checks: number;
  let answer: () => Promise<void>;
  let time: VirtualTime;
  const stays = (): AbortSignal => new AbortController().signal;
  const newSigner = (): RemoteSigner => new RemoteSigner(time, KEY, () => (checks++, answer()));

  beforeEach(() => {
    checks = 0;
    time = new VirtualTime();
    answer = async () => undefined;
  });

  it('asks once for all callers, and again when the answer is a second old', async () => {
    const signer = newSigner();
    expect(await signer.failure()).to.equal(undefined);
    await Promise.all(Array.from({ length: 50 }, () => signer.ready(stays())));
    expect(checks).to.equal(1);
    await time.pass(999);
    await signer.ready(stays());
    expect(checks).to.equal(1);
    await time.pass(1);
    await signer.ready(stays());
    expect(checks).to.equal(2);
  });

  it('ends when the signer is back', async () => {
    answer = away;
    const signer = newSigner();
    let isReady = false;
    const waits = signer.ready(stays()).then(() => (isReady = true));
    expect(await signer.failure()).to.equal('SIGNER_UNREACHABLE');
    await time.pass(10_000);
    expect(isReady).to.equal(false);
    answer = async () => undefined;
    await time.settled(waits);
  });

  it('fails after a minute with the failure of the signer, and when a check hangs', async () => {
    for (const [how, code] of [
      [refused, 'SIGNER_REFUSED'],
      [() => new Promise<never>(() => undefined), 'SIGNER_UNREACHABLE'],
    ] as const) {
      answer = how;
      const begun = time.now();
      const failed = await time.settled(errorOf(newSigner().ready(stays())));
      expect([codeOf(failed), time.now() - begun]).to.deep.equal([code, 60_000]);
    }
  });

  it('ends at once with a wrong answer: waiting does not bring the signer back', async () => {
    answer = wrong;
    expect(codeOf(await errorOf(newSigner().ready(stays())))).to.equal('SIGNER_ANSWER_WRONG');
    expect(checks).to.equal(1);
  });

  it('ends for a caller who leaves, at once', async () => {
    for (const one of [away, () => new Promise<never>(() => undefined)]) {
      answer = one;
      const caller = new AbortController();
      const waits = errorOf(newSigner().ready(caller.signal));
      await time.pass(500);
      expect(checks).to.be.greaterThan(0);
      caller.abort(new CallerLeftError());
      expect(await waits).to.be.instanceOf(CallerLeftError);
    }
  });

  it('refuses at once when a thousand callers wait', async () => {
    answer = away;
    const signer = newSigner();
    const callers = Array.from({ length: 1_000 }, () => new AbortController());
    const waits = callers.map(({ signal }) => errorOf(signer.ready(signal)));
    expect(codeOf(await errorOf(signer.ready(stays())))).to.equal('SIGNER_UNREACHABLE');
    for (const caller of callers) caller.abort(new CallerLeftError());
    await Promise.all(waits);
  });
});
