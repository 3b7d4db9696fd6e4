import { expect } from 'chai';
import { CallerLeftError } from '../../service/base/errors';
import { TRUSTVC_BILL_OF_LADING_CONTEXT_URL } from '../../service/base/published-files';
import { createCheckingPool, type CheckingPool } from '../../service/console/checking-pool';

describe('the threads that check what a page sends', () => {
  let pool: CheckingPool;

  before(() => {
    const rules = { allowPrivate: false, allowLoopback: false };
    pool = createCheckingPool({ contextUrl: TRUSTVC_BILL_OF_LADING_CONTEXT_URL, rules });
  });
  after(() => pool.stop());

  const verify = (credential: object, left: AbortSignal): Promise<unknown> =>
    pool
      .verify(new TextEncoder().encode(JSON.stringify(credential)), left, () => expect.fail())
      .catch((error: unknown) => error);
  const nobody = { '@context': [], type: ['VerifiableCredential'], proof: {} };

  it('end a check whose caller leaves, and go on with the next', async () => {
    const callers = [new AbortController(), new AbortController()];
    const checks = callers.map(({ signal }) => verify(nobody, signal));
    for (const caller of callers) caller.abort(new CallerLeftError());
    for (const outcome of await Promise.all(checks)) expect(outcome).to.be.instanceOf(CallerLeftError);
    const { signal } = new AbortController();
    expect(await verify(nobody, signal)).to.have.property('outcome', 'invalid');
  });
});
