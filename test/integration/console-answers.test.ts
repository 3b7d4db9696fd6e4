import { expect } from 'chai';
import { BILL_OF_LADING } from '../../devnet/bill-of-lading';
import { freePort } from '../../devnet/place';
import { CallerLeftError } from '../../service/base/errors';
import { TRUSTVC_BILL_OF_LADING_CONTEXT_URL } from '../../service/base/published-files';
import { systemTime, newDeferred } from '../../service/base/time';
import { createAnswers, type AnswersParts } from '../../service/answers/answers';
import { createCheckingPool, type CheckingPool } from '../../service/answers/checking-pool';
import type { IssuingProgress, VerifiedView } from '../../service/answers/views';
import { networkOfChain } from '../../service/chain/networks';
import type { SignedCredential } from '../../service/issuance/sign';
import { DEPLOYER_KEY } from '../helpers/chain/local-setup';
import { startRpcProxy } from '../helpers/chain/rpc-proxy';
import type { TokenState } from '../../service/registry/read-token-state';
import type { Facts, Overview } from '../../service/console/views';
import type { Validation } from '../../service/validation/problems';
import { eventually } from '../helpers/eventually';
import { API, openConsolePage, type ConsolePage } from '../helpers/processes/console-page';
import { create } from '../helpers/processes/create-call';
import { owned } from '../helpers/resources';
import {
  ADMIN_API_KEY,
  startSubscribedService,
  type SubscribedService,
} from '../helpers/processes/subscribed-service';

const UNKNOWN = 'ab'.repeat(32);
/** Text that a page must show as text. */
const HOSTILE = `<script>alert(1)</script>\u202e\u0007${'x'.repeat(10_000)}`;

describe('the console of an issuer', () => {
  let api: SubscribedService;
  let accounts: string[];
  let page: ConsolePage;
  let issued: { document: SignedCredential; tokenId: string; transactionHash: string };

  before(async () => {
    // The check of a credential finds the issuer at the port of the service.
    const port = String(await freePort(0));
    const settings = { PORT: port, DOMAIN: `localhost:${port}`, WALLET_PRIVATE_KEY: DEPLOYER_KEY };
    api = await startSubscribedService('SQLite', settings);
    ({ accounts } = api.local);
    page = openConsolePage(api.service.url);
    await page.logIn(ADMIN_API_KEY);
    const [, owner] = accounts;
    const body = { credentialSubject: BILL_OF_LADING, owner, holder: owner };
    const created = await create(api.service.url, body);
    const { signedW3CDocument: document, txHash: transactionHash } = created.body;
    issued = { document, transactionHash, tokenId: String(document.credentialStatus.tokenId) };
  });

  const ask = async <Body>(path: string, body: unknown): Promise<Body> => {
    const answer = await page.call<Body>('POST', path, body);
    expect([answer.status, answer.code], JSON.stringify(answer.body)).to.deep.equal([200, null]);
    return answer.body;
  };
  const get = async <Body>(path: string): Promise<Body> => (await page.call<Body>('GET', path)).body;

  it('tells what does not change', async () => {
    const facts = await get<Facts>(`${API}/facts`);
    expect(facts).to.deep.include({ canIssue: true, confirmations: 0 });
    expect(facts.network).to.deep.equal({ name: 'localhost', isLocal: true });
    expect(facts.accounts).to.deep.equal(accounts);
    expect(facts.terms.slice(0, 3)).to.deep.equal(['billOfLadingName', 'scac', 'blNumber']);
    expect(facts.terms).to.include('packages').and.not.include('packagesWeight');
  });

  it('shows the wallet, and that all is well', async () => {
    const overview = (): Promise<Overview> => get(`${API}/overview`);
    const wallet = await eventually('the balance is read', async () => (await overview()).issuing?.wallet);
    expect(wallet.mintsAffordable).to.be.greaterThan(20);
    expect(wallet).to.include({ currency: 'ETH' });
    expect((await overview()).problems).to.deep.equal([]);
  });

  it('issues a document without waiting, and tells how far it is', async () => {
    const body = { credentialSubject: BILL_OF_LADING, owner: accounts[1], holder: accounts[1] };
    const headers = { Prefer: 'respond-async', 'Idempotency-Key': 'once' };
    const answer = await page.call<{ tokenId: string }>('POST', '/create/BILL_OF_LADING', body, headers);
    expect(answer.status).to.equal(202);
    const { tokenId } = answer.body;
    const progress = (): Promise<IssuingProgress> => get(`${API}/documents/${tokenId}/progress`);
    await eventually('it is final', async () => (await progress()).state === 'final');
    const { txHash, confirmedBlocks, failure } = await progress();
    expect(txHash).to.match(/^0x[0-9a-f]{64}$/);
    expect({ confirmedBlocks, failure }).to.deep.equal({ confirmedBlocks: 0, failure: null });
    const document = await page.call('GET', `/documents/${tokenId}`);
    expect(document.body).to.have.nested.property('signedW3CDocument.credentialStatus.tokenId', tokenId);
    const codeFor = async (id: string) => (await page.call('GET', `${API}/documents/${id}/progress`)).code;
    expect([await codeFor(UNKNOWN), await codeFor('x')]).to.deep.equal([
      'DOCUMENT_UNKNOWN',
      'TOKEN_ID_INVALID',
    ]);
  });

  it('ends the reading of a history whose caller leaves', async () => {
    const asked = newDeferred<undefined>();
    await using proxy = await startRpcProxy(api.local.node.url, async (method) => {
      if (method !== 'eth_getLogs') return 'none';
      asked.resolve(undefined);
      return new Promise(() => undefined);
    });
    const answers = createAnswers({
      config: {
        network: networkOfChain(31337),
        rpcUrls: [proxy.url],
        registries: [],
        followedOf: () => expect.fail('the node is known'),
        tokenRegistryAddress: api.local.registryAddress,
      },
      db: {} as AnswersParts['db'],
      feedOf: () => undefined,
      targetOf: () => undefined,
      scope: undefined,
      checking: {} as CheckingPool,
      time: systemTime,
    });
    const leaving = new AbortController();
    const answer = answers
      .token({ tokenId: BigInt(`0x${issued.tokenId}`), seesDeliveries: true }, leaving.signal)
      .catch((error: unknown) => error);
    await asked.promise;
    leaving.abort(new CallerLeftError());
    expect(await answer).to.be.instanceOf(CallerLeftError);
    await eventually('the node is not asked any more', () => proxy.waiting() === 0);
  });

  it('ends a check whose caller leaves, and goes on with the next', async () => {
    const rules = { allowPrivate: true, allowLoopback: true };
    const contextUrl = TRUSTVC_BILL_OF_LADING_CONTEXT_URL;
    await using pool = owned(
      'the checking pool',
      createCheckingPool({ time: systemTime, contextUrl, rules }),
      'stop',
    );
    const bytes = (): Uint8Array<ArrayBuffer> =>
      new TextEncoder().encode(JSON.stringify({ verifiableCredential: issued.document }));
    const callers = [new AbortController(), new AbortController()];
    const waiting = newDeferred<TokenState>();
    const [first, second] = callers.map(({ signal }) =>
      pool
        .verify(bytes(), signal, () => {
          for (const caller of callers) caller.abort(new CallerLeftError());
          return waiting.promise;
        })
        .catch((error: unknown) => error),
    );
    expect(await first).to.be.instanceOf(CallerLeftError);
    expect(await second).to.be.instanceOf(CallerLeftError);
    const lost = (): Promise<TokenState> => Promise.reject(new Error('the node is away'));
    const parts = await pool.verify(bytes(), new AbortController().signal, lost);
    const view = JSON.parse(Buffer.concat(parts).toString()) as VerifiedView;
    expect(view.documentIntegrity.outcome).to.equal('valid');
  });

  it('verifies a credential, and names what it looked up', async () => {
    const { document } = issued;
    const verify = (verifiableCredential: object): Promise<VerifiedView> =>
      ask('/credentials/verify', { verifiableCredential });
    const valid = await verify({ signedW3CDocument: document, txHash: issued.transactionHash });
    expect(valid).to.include({ verified: true, outcome: 'valid' });
    expect(valid.issuerIdentity.issuer).to.equal(document.issuer);
    expect(valid.documentStatus.tokenId).to.equal(issued.tokenId);
    expect(valid.shown).to.have.property('credentialSubject');
    const host = api.settings.DOMAIN;
    expect(valid.lookedUp).to.deep.equal([
      `https://${host}/.well-known/did.json`,
      `http://${host}/.well-known/did.json`,
      api.local.node.url.replace(/\/$/, ''),
    ]);
    const subject = { ...(document.credentialSubject as object), blNumber: HOSTILE };
    const tampered = await verify({ ...document, credentialSubject: subject });
    expect(tampered).to.include({ verified: false, outcome: 'invalid' });
    expect(tampered.documentIntegrity.outcome).to.equal('invalid');
    expect(tampered.issuerIdentity.outcome).to.equal('valid');
  });

  it('answers rubbish with a code, and goes on', async () => {
    const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
    const bodies = [
      '',
      '{',
      '[]',
      '"x"',
      '{}',
      '{"__proto__":1}',
      '\u0000',
      deep,
      JSON.stringify({ type: HOSTILE }),
    ];
    for (const path of ['/credentials/verify', '/credentials/derive', `${API}/validate`])
      for (const body of bodies) {
        const { status, code, body: answer } = await page.call<object>('POST', path, body);
        const asked = `${path} ${body.slice(0, 50)}`;
        if (path === `${API}/validate` && status === 200) expect(answer, asked).to.have.property('problems');
        else expect([400, typeof code, 'error' in answer], asked).to.deep.equal([status, 'string', true]);
      }
    const text = await page.call('POST', '/credentials/verify', '{}', { 'Content-Type': 'text/plain' });
    expect(text.code).to.equal('CONTENT_TYPE_WRONG');
    const after = await ask<VerifiedView>('/credentials/verify', { verifiableCredential: issued.document });
    expect(after.verified).to.equal(true);
  });

  it('checks a request as it is typed, and says what would be refused', async () => {
    const right = { owner: accounts[1], holder: accounts[2], remarks: 'é'.repeat(60) };
    const validate = (body: object): Promise<Validation> => ask(`${API}/validate`, body);
    const none = { problems: [], remarkBytes: 120, mostRemarkBytes: 120 };
    expect(await validate({ ...right, credentialSubject: BILL_OF_LADING })).to.deep.equal(none);
    const subject = { ...BILL_OF_LADING, blNumber: HOSTILE, vessel: 5, voyage: 'x', links: 'a _:b' };
    const { problems, remarkBytes } = await validate({
      owner: '0x1',
      holder: '0x0000000000000000000000000000000000000000',
      remarks: 'é'.repeat(61),
      credentialSubject: subject,
    });
    expect(remarkBytes).to.equal(122);
    const told = problems.map(({ pointer, code, isRefused }) => `${pointer} ${code} ${isRefused}`);
    expect(told).to.have.members([
      '/owner REQUEST_FIELD_INVALID true',
      '/holder REQUEST_FIELD_INVALID true',
      '/remarks REMARK_TOO_LONG true',
      '/credentialSubject/vessel VALUE_TYPE_WRONG false',
      '/credentialSubject/voyage TERM_UNKNOWN true',
      '/credentialSubject/links TEXT_NOT_PROTECTED true',
    ]);
    for (const { message } of problems) expect(message).to.match(/^[A-Z"]/);
    const untyped = await validate({ ...right, credentialSubject: { scac: 'A', blNumber: 'B' } });
    expect(untyped.problems).to.deep.include({
      pointer: '/credentialSubject/type',
      code: 'TYPE_NOT_BILL_OF_LADING',
      message: 'Missing type BillOfLading',
      isRefused: true,
    });
  });

  it('says of a request exactly that it is refused', async () => {
    const right = { owner: accounts[1], holder: accounts[1] };
    const subjects: object[] = [
      { ...BILL_OF_LADING, foo: 1 },
      { ...BILL_OF_LADING, name: 'x', vessel: 5 },
      { type: ['BillOfLading'] },
      {},
      { id: 'urn:x:1', type: [] },
      { scac: 'A' },
      { ...BILL_OF_LADING, links: '_:x' },
      { ...BILL_OF_LADING, packages: [{ weight: '1' }] },
      { ...BILL_OF_LADING, type: ['BillOfLading', 'Other'] },
    ];
    for (const credentialSubject of subjects) {
      const body = { ...right, credentialSubject };
      const { problems } = await ask<Validation>(`${API}/validate`, body);
      const { status } = await page.call('POST', '/create/BILL_OF_LADING', body);
      const isRefused = problems.some((problem) => problem.isRefused);
      expect(isRefused, JSON.stringify({ credentialSubject, problems })).to.equal(status !== 200);
    }
  });
});
