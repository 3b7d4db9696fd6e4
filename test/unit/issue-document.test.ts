import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { CallerLeftError, ChainError, SignerError, UnavailableError } from '../../service/base/errors';
import { createIssuing, type Issuing, type KeptDocument } from '../../service/issuance/issue-document';
import type { Issuance, SignedDocument } from '../../service/journal/issuance';
import type { RemoteSigner } from '../../service/keys/signer-state';
import { eventually } from '../helpers/eventually';
import { preparedDocument } from '../helpers/database/prepared-documents';

const STEPS = ['issuer signer', 'sign', 'check', 'simulate', 'wallet signer', 'add', 'mint'] as const;
type Step = (typeof STEPS)[number];
const BEFORE_IT_IS_KEPT: Step[] = ['issuer signer', 'sign', 'check', 'simulate', 'wallet signer'];
const KEY = { key: 'key', requestHash: 'hash' };

describe('issuing a document', () => {
  let issuing: Issuing;
  /** Steps that began, in order. */
  let begun: Step[];
  /** Held steps, each with the function that lets it go on. */
  let waiting: { step: Step; goOn: () => void }[];
  /** Steps that wait until the test lets them go on. */
  let held: Set<Step>;
  let kept: Issuance[];
  /** The keys whose signers are away. */
  let away: Set<string>;
  /** The error of the simulation. */
  let refusal: ChainError | undefined;
  /** Whether signing was told that no caller waits any more. */
  let isSigningAbandoned: boolean;

  beforeEach(() => {
    [begun, waiting, held, kept, isSigningAbandoned] = [[], [], new Set(), [], false];
    away = new Set();
    refusal = undefined;
    const take = async (step: Step): Promise<void> => {
      begun.push(step);
      if (held.has(step)) await new Promise<void>((goOn) => waiting.push({ step, goOn }));
    };
    const readinessOf = (key: 'issuer' | 'wallet'): Pick<RemoteSigner, 'ready' | 'failure' | 'follow'> => ({
      async ready(left) {
        await take(`${key} signer`);
        left.throwIfAborted();
        if (away.has(key)) throw new SignerError('SIGNER_UNREACHABLE', 'The signer at its URL is away.');
      },
      failure: async () => (away.has(key) ? 'SIGNER_UNREACHABLE' : undefined),
      follow: (signature) => signature,
    });
    const issuer = {
      signers: { issuer: readinessOf('issuer'), wallet: readinessOf('wallet') },
      time: { ...systemTime, now: () => 0 },
      checkChain: () => take('check'),
      async prepare(_: unknown, left?: AbortSignal) {
        left?.addEventListener('abort', () => (isSigningAbandoned = true));
        await take('sign');
        return preparedDocument(10);
      },
      async simulate() {
        await take('simulate');
        if (refusal) throw refusal;
      },
      journal: {
        async add(prepared: SignedDocument, request?: { requestHash: string }) {
          await take('add');
          const { requestHash } = request ?? {};
          const none = { txHash: undefined, failure: undefined };
          const issuance: Issuance = { ...prepared, ...none, state: 'signed', requestHash, createdAt: 0 };
          kept.push(issuance);
          return issuance;
        },
        findByKey: async () => kept.find(({ requestHash }) => requestHash !== undefined),
        documentOf: async () => ({ length: 10, parts: [new Uint8Array(10)] }),
      },
      queue: {
        async mint({ tokenId }: Issuance) {
          await take('mint');
          return `mint of ${tokenId}`;
        },
      },
    };
    const newUuid = (): string => '01937b4a-0000-7000-8000-000000000000';
    issuing = createIssuing(issuer, newUuid);
  });

  it('accepts a Bill of Lading in upper, lower or mixed case, and no other type', () => {
    for (const written of ['BILL_OF_LADING', 'bill_of_lading', 'Bill_Of_Lading'])
      expect(issuing.acceptedType(written), written).to.equal('BILL_OF_LADING');
    for (const written of ['', 'INVOICE', 'BILL-OF-LADING', 'BILL_OF_LADING '])
      expect(() => issuing.acceptedType(written), written).to.throw('is not supported');
  });

  interface Asked {
    leave: () => void;
    outcome: Promise<Awaited<ReturnType<KeptDocument['minted']>> | Error>;
  }

  function ask(request?: { key: string; requestHash: string }, isMintAwaited = true): Asked {
    const left = new AbortController();
    const outcome = issuing
      .issue({
        documentType: 'BILL_OF_LADING',
        body: new Uint8Array(10),
        idempotent: request,
        isMintAwaited,
        stored: () => undefined,
        left: left.signal,
      })
      .then(({ minted }) => minted())
      .catch((error: unknown) => error as Error);
    return { leave: () => left.abort(new CallerLeftError()), outcome };
  }

  const reached = (step: Step): Promise<() => void> =>
    eventually(`it is at ${step}`, () => {
      const index = waiting.findIndex((each) => each.step === step);
      return index < 0 ? undefined : waiting.splice(index, 1)[0]?.goOn;
    });
  const expectIssued = async ({ outcome }: Asked): Promise<void> => {
    expect(await outcome).to.have.property('txHash', `mint of ${kept[0]?.tokenId}`);
  };

  for (const step of STEPS) {
    const [isKept, outcome] = BEFORE_IT_IS_KEPT.includes(step)
      ? [false, 'stops']
      : [true, 'mints the document anyway'];

    for (const request of [undefined, KEY]) {
      const whose = request ? 'with an Idempotency-Key' : 'without an Idempotency-Key';

      it(`${outcome} when the caller ${whose} leaves at the step ${step}`, async () => {
        held.add(step);
        const caller = ask(request);
        const goOn = await reached(step);
        caller.leave();
        goOn();
        if (isKept) return expectIssued(caller);
        expect(await caller.outcome).to.be.instanceOf(CallerLeftError);
        expect(begun).not.to.include('add');
        // The simulation takes no signal, so it must not begin after the caller left.
        if (STEPS.indexOf(step) < STEPS.indexOf('simulate')) expect(begun).not.to.include('simulate');
      });
    }

    it(`issues once for a second caller with the Idempotency-Key of one who left at ${step}`, async () => {
      held.add(step);
      const first = ask(KEY);
      const goOn = await reached(step);
      first.leave();
      held.clear();
      const second = ask(KEY);
      // An abandoned attempt ends after the second began anew; a stored document goes on for the second.
      if (!isKept) await expectIssued(second);
      goOn();
      await expectIssued(second);
      expect((await first.outcome) instanceof CallerLeftError).to.equal(!isKept);
      expect(kept).to.have.length(1);
    });
  }

  it('goes on while one of several callers with the same Idempotency-Key waits', async () => {
    held.add('sign');
    const callers = [ask(KEY), ask(KEY), ask(KEY)];
    const goOn = await reached('sign');
    for (const { leave } of callers.slice(0, 2)) leave();
    expect(isSigningAbandoned).to.equal(false);
    goOn();
    await expectIssued(callers[2]!);
    expect(begun).to.deep.equal(STEPS);
  });

  it('happens once for callers who arrive while an abandoned attempt ends', async () => {
    held.add('sign');
    const first = ask(KEY);
    const endFirst = await reached('sign');
    first.leave();
    const second = ask(KEY);
    const goOn = await reached('sign');
    endFirst();
    expect(await first.outcome).to.be.instanceOf(CallerLeftError);
    const third = ask(KEY);
    held.clear();
    goOn();
    for (const caller of [second, third]) await expectIssued(caller);
    expect(begun.filter((step) => step === 'sign')).to.have.length(2);
  });

  it('stops when the last of several callers with the same Idempotency-Key leaves', async () => {
    held.add('sign');
    const callers = [ask(KEY), ask(KEY)];
    const goOn = await reached('sign');
    for (const { leave } of callers) leave();
    expect(isSigningAbandoned).to.equal(true);
    goOn();
    for (const { outcome } of callers) expect(await outcome).to.be.instanceOf(CallerLeftError);
    expect(kept).to.be.empty;
  });

  for (const code of ['MINT_SIMULATION_FAILED', 'RPC_UNREACHABLE'] as const)
    it(`stores nothing if the simulation of the mint fails with ${code}`, async () => {
      refusal = new ChainError(code, 'Failed to mint token');
      expect(await ask().outcome).to.equal(refusal);
      expect(begun).not.to.include('add');
    });

  const BEFORE: Record<string, Step[]> = {
    issuer: ['issuer signer'],
    wallet: ['issuer signer', 'sign', 'check', 'simulate', 'wallet signer'],
  };
  for (const [key, steps] of Object.entries(BEFORE))
    it(`stores nothing while the ${key}'s signer is away, and does not say where that is`, async () => {
      away.add(key);
      const refusal = await ask(KEY).outcome;
      expect(refusal).to.be.instanceOf(UnavailableError).and.to.include({ code: 'SIGNER_UNREACHABLE' });
      expect(refusal).to.have.property('message').that.does.not.contain('URL');
      expect(begun).to.deep.equal(steps);
      away.clear();
      await expectIssued(ask(KEY));
      expect(kept).to.have.length(1);
    });

  it("stores what nobody waits for while the wallet's signer is away", async () => {
    away.add('wallet');
    await expectIssued(ask(undefined, false));
    expect(begun).to.deep.equal(STEPS.filter((step) => step !== 'wallet signer'));
    away.add('issuer');
    expect(await ask(undefined, false).outcome).to.be.instanceOf(UnavailableError);
    expect(kept).to.have.length(1);
  });
});
