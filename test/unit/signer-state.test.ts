import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { CallerLeftError, codeOf, SignerError } from '../../service/base/errors';
import { createReadiness, SignerState } from '../../service/keys/signer-state';
import { errorOf } from '../helpers/error-of';
import { VirtualTime } from '../helpers/virtual-time';

const wrong = (): Promise<never> => Promise.reject(new SignerError('SIGNER_ANSWER_WRONG', 'It lies.'));
const refused = (): Promise<never> => Promise.reject(new SignerError('SIGNER_REFUSED', 'It is locked.'));
const away = (): Promise<never> => Promise.reject(new SignerError('SIGNER_UNREACHABLE', 'It is away.'));

describe('the state of a remote signer', () => {
  const SIGNATURES = {
    wrong: { code: 'SIGNER_ANSWER_WRONG', answer: wrong, check: 'fails' },
    refused: { code: 'SIGNER_REFUSED', answer: refused, check: 'succeeds' },
    missing: { code: 'SIGNER_UNREACHABLE', answer: away, check: 'succeeds' },
  } as const;
  for (const [what, { code, answer, check }] of Object.entries(SIGNATURES))
    it(`is failing for half a minute after a ${what} signature, and a check ${check}`, async () => {
      let now = 1_000;
      const state = new SignerState({ now: () => now }, { key: 'wallet', at: 'there' }, undefined);
      const checked = (): Promise<unknown> => state.ofCheck(Promise.resolve()).then(() => 'up', codeOf);
      expect(codeOf(await errorOf(state.ofSignature(answer())))).to.equal(code);
      now += 29_999;
      expect(await checked()).to.equal(check === 'fails' ? code : 'up');
      expect(state.report()).to.include({ state: 'failing', since: 1_000, code });
      now += 1;
      expect(await checked()).to.equal('up');
      expect(state.report()).to.include({ state: 'up', code: undefined });
    });

  it('is up after a check when the clock was set back by an hour since a wrong signature', async () => {
    let now = 3_600_000;
    const state = new SignerState({ now: () => now }, { key: 'wallet', at: 'there' }, undefined);
    await errorOf(state.ofSignature(wrong()));
    now = 0;
    await state.ofCheck(Promise.resolve());
    expect(state.report()).to.include({ state: 'up', code: undefined });
  });

  it('is failing with a wrong answer when a check cannot read the answer', async () => {
    const state = new SignerState(systemTime, { key: 'wallet', at: 'there' }, undefined);
    const unread = Promise.reject(new TypeError('Cannot convert object to primitive value'));
    expect(codeOf(await errorOf(state.ofCheck(unread)))).to.equal('SIGNER_ANSWER_WRONG');
    expect(state.report()).to.include({ state: 'failing', code: 'SIGNER_ANSWER_WRONG', wrongAnswers: 1 });
  });

  it('is up after a signature, whatever failed before', async () => {
    const state = new SignerState(systemTime, { key: 'issuer', at: 'there' }, undefined);
    for (const answer of [wrong, refused, away]) {
      await errorOf(state.ofSignature(answer()));
      await state.ofSignature(Promise.resolve());
      await state.ofCheck(Promise.resolve());
      expect(state.report()).to.include({ state: 'up', code: undefined, wrongAnswers: 1 });
    }
  });
});

describe('waiting for a remote signer', () => {
  let checks: number;
  let answer: () => Promise<void>;
  let time: VirtualTime;
  const stays = (): AbortSignal => new AbortController().signal;
  const readiness = () => {
    const state = new SignerState(time, { key: 'wallet', at: 'there' }, undefined);
    const check = (): Promise<void> => (checks++, state.ofCheck(answer()));
    return createReadiness(time, { check, report: () => state.report() });
  };

  beforeEach(() => {
    checks = 0;
    time = new VirtualTime();
    answer = async () => undefined;
  });

  it('asks once for all callers, and again when the answer is a second old', async () => {
    const { ready, failure } = readiness();
    expect(await failure()).to.equal(undefined);
    await Promise.all(Array.from({ length: 50 }, () => ready(stays())));
    expect(checks).to.equal(1);
    await time.pass(999);
    await ready(stays());
    expect(checks).to.equal(1);
    await time.pass(1);
    await ready(stays());
    expect(checks).to.equal(2);
  });

  it('ends when the signer is back', async () => {
    answer = away;
    const { ready, failure } = readiness();
    let isReady = false;
    const waits = ready(stays()).then(() => (isReady = true));
    expect(await failure()).to.equal('SIGNER_UNREACHABLE');
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
      const failed = await time.settled(errorOf(readiness().ready(stays())));
      expect([codeOf(failed), time.now() - begun]).to.deep.equal([code, 60_000]);
    }
  });

  it('ends at once with a wrong answer: waiting does not bring the signer back', async () => {
    answer = wrong;
    expect(codeOf(await errorOf(readiness().ready(stays())))).to.equal('SIGNER_ANSWER_WRONG');
    expect(checks).to.equal(1);
  });

  it('ends for a caller who leaves, at once', async () => {
    for (const one of [away, () => new Promise<never>(() => undefined)]) {
      answer = one;
      const caller = new AbortController();
      const waits = errorOf(readiness().ready(caller.signal));
      await time.pass(500);
      expect(checks).to.be.greaterThan(0);
      caller.abort(new CallerLeftError());
      expect(await waits).to.be.instanceOf(CallerLeftError);
    }
  });

  it('refuses at once when a thousand callers wait', async () => {
    answer = away;
    const { ready } = readiness();
    const callers = Array.from({ length: 1_000 }, () => new AbortController());
    const waits = callers.map(({ signal }) => errorOf(ready(signal)));
    expect(codeOf(await errorOf(ready(stays())))).to.equal('SIGNER_UNREACHABLE');
    for (const caller of callers) caller.abort(new CallerLeftError());
    await Promise.all(waits);
  });
});
