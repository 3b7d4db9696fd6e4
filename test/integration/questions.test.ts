import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { check } from '../../evidence/evidence';
import { createClient, type components } from '../../client/create-client';
import { BILL_OF_LADING, MINT_EVENTS } from '../../devnet/bill-of-lading';
import { OPERATIONS } from '../../client/description/openapi';
import type { SignedCredential } from '../../service/issuance/sign';
import { DEPLOYER_KEY } from '../helpers/chain/local-setup';
import { FOREIGN_DOCUMENTS } from '../helpers/credentials/foreign-documents';
import { eventually } from '../helpers/eventually';
import { openConsolePage } from '../helpers/processes/console-page';
import { create, type ApiAnswer } from '../helpers/processes/create-call';
import {
  ADMIN_API_KEY,
  startSubscribedService,
  type SubscribedService,
} from '../helpers/processes/subscribed-service';
import type { Answer, RecordingReceiver } from '../helpers/receiver/recording-receiver';

type Schemas = components['schemas'];

const API_KEY = 'the-key-of-the-carrier-0123456789';
const CONSOLE_READ_KEY = 'the-read-key-of-the-console-0123456789';
const KEYS = {
  none: {},
  issuer: { authorization: `Bearer ${API_KEY}` },
  admin: { authorization: `Bearer ${ADMIN_API_KEY}` },
  wrong: { authorization: 'Bearer wrong' },
};
/** Nobody listens there, and `fetch` does not refuse the port. */
const SILENT = 'localhost:2';
const UNKNOWN_EVENT = '0b3a5a0e-0b7e-5b0e-8f4e-3f2e9b8f8a3c';
const refuse: Answer = (_delivery, response) => void response.writeHead(500).end();

/** The statuses of a wrong key: the second, if another one from the same address was wrong a moment ago. */
const REFUSED = [401, 429];

describe('tokens, deliveries, events and credentials of a service', () => {
  let api: SubscribedService;
  let sink: RecordingReceiver;
  let credential: SignedCredential;
  let tokenId: string;
  let txHash: string;

  const call = <Body>(
    who: keyof typeof KEYS,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<ApiAnswer<Body>> => {
    // An empty header is one without a key.
    const key = { authorization: '', ...KEYS[who] };
    return api.call<Body>(method, path, body, { ...key, ...headers });
  };
  const verify = (who: keyof typeof KEYS, body: unknown) =>
    call<Schemas['VerificationResult']>(who, 'POST', '/credentials/verify', body);
  const coded = async (...asked: Parameters<typeof call>): Promise<[number, string | null]> => {
    const { status, code } = await call(...asked);
    return [status, code];
  };

  before(async () => {
    const settings = { API_KEY, CONSOLE_READ_KEY, WALLET_PRIVATE_KEY: DEPLOYER_KEY, DOMAIN: SILENT };
    api = await startSubscribedService('SQLite', settings);
    sink = await api.sink();
    sink.answerWith(refuse);
    await api.subscribe(sink, {
      protocolsettings: { headers: { 'X-Tenant': 'acme-secret' } },
      config: { standardWebhooks: true, retry: { initialDelayMs: 60_000, maxDelayMs: 60_000 } },
    });
    const [owner = ''] = api.local.accounts;
    const body = { credentialSubject: BILL_OF_LADING, owner, holder: owner, remarks: 'Fragile: été' };
    const created = await create(api.service.url, body, { headers: { Authorization: `Bearer ${API_KEY}` } });
    expect(created.status, created.text).to.equal(200);
    ({ signedW3CDocument: credential, txHash } = created.body);
    tokenId = (credential.credentialStatus as { tokenId: string }).tokenId;
    await eventually('all is delivered, or failed', () => api.ofSettings.deliveries.length >= 4);
    await eventually('an attempt failed', async () => {
      const { body: failed } = await call<object[]>('admin', 'GET', '/deliveries?state=failed');
      return failed.length === 1;
    });
  });

  it('need a key: ADMIN_API_KEY for deliveries and events, either for the others', async () => {
    const verification = { verifiableCredential: credential };
    const ofBoth = [
      ['GET', `/tokens/${tokenId}`, undefined],
      ['GET', `/tokens/${tokenId}/evidence`, undefined],
      ['POST', '/credentials/verify', verification],
      ['POST', '/credentials/derive', { ...verification, options: { selectivePointers: [] } }],
    ] as const;
    for (const [method, path, body] of ofBoth) {
      expect(await coded('none', method, path, body), path).to.deep.equal([401, 'API_KEY_WRONG']);
      expect((await call('wrong', method, path, body)).status, path).to.be.oneOf(REFUSED);
      // The tests below use the key of the issuer.
      expect((await call('admin', method, path, body)).status, path).to.be.oneOf([200, 201]);
    }
    for (const path of ['/deliveries', '/events', `/events/${UNKNOWN_EVENT}`])
      for (const who of ['none', 'wrong', 'issuer'] as const) {
        const { status, code, headers, message } = await call(who, 'GET', path);
        if (who === 'none') expect([status, code], path).to.deep.equal([401, 'ADMIN_API_KEY_WRONG']);
        else expect(status, path).to.be.oneOf(REFUSED);
        expect(headers.get('WWW-Authenticate')).to.equal('Bearer');
        expect(message).to.contain('Authorization: Bearer <ADMIN_API_KEY>.');
      }
    const { message } = await call('none', 'GET', `/tokens/${tokenId}`);
    expect(message).to.contain('<API_KEY> or <ADMIN_API_KEY>');
  });

  it('show a token with its endorsement chain and document, and its deliveries to the operator', async () => {
    const { status, headers, body } = await call<Schemas['Token']>('issuer', 'GET', `/tokens/${tokenId}`);
    expect(status).to.equal(200);
    expect(headers.get('Cache-Control')).to.equal('private, no-store');
    expect(body).to.deep.include({
      network: 'localhost',
      chainId: 31337,
      registry: api.local.registryAddress,
      tokenId: BigInt(`0x${tokenId}`).toString(),
      tokenIdHex: tokenId,
      isWhole: true,
    });
    expect(body.state.state).to.equal('in escrow');
    expect(body.issuing).to.include({ tokenId, txHash, blNumber: BILL_OF_LADING.blNumber });
    expect(body.issuing?.state).to.be.oneOf(['mined', 'final']);
    const [minted] = body.endorsements;
    expect(minted).to.include({ operation: 'mint', transactionHash: txHash });
    expect(minted?.events.map(({ type }) => type)).to.deep.equal(
      MINT_EVENTS.map((type) => `com.service.etr.${type}`),
    );
    expect(body.next.map(({ operation }) => operation)).to.include('transferHolder');
    const deliveriesOf = ({ endorsements }: Schemas['Token']): unknown[] =>
      endorsements.flatMap(({ events }) => events.flatMap(({ deliveries }) => deliveries ?? []));
    expect(deliveriesOf(body)).to.deep.equal([]);
    const { body: forOperator } = await call<Schemas['Token']>('admin', 'GET', `/tokens/${tokenId}`);
    expect(deliveriesOf(forOperator)).to.have.length(2 * MINT_EVENTS.length);
    const named = `/tokens/${body.tokenId}?registry=${body.registry.toLowerCase()}&chainId=31337`;
    expect((await call<Schemas['Token']>('issuer', 'GET', named)).body.tokenIdHex).to.equal(tokenId);
    const [account] = api.local.accounts;
    for (const [registry, code] of [
      [account, 'REGISTRY_MISSING'],
      [body.state.titleEscrow, 'REGISTRY_INVALID'],
    ] as const) {
      const answer = await call('issuer', 'GET', `/tokens/1?registry=${registry}`);
      expect([answer.status, answer.code]).to.deep.equal([400, code]);
      expect(answer.message).to.match(/^The parameter registry .*Correct registry, or chainId\.$/);
      expect(answer.message)
        .to.contain(registry)
        .and.not.match(/TOKEN_REGISTRY_ADDRESS|deploy/);
    }
  });

  it('give the evidence of a token as a file, which proves its events', async () => {
    const { headers, body } = await call<object>('issuer', 'GET', `/tokens/${tokenId}/evidence`);
    expect(headers.get('Content-Disposition')).to.equal('attachment; filename="evidence.json"');
    const { report, file } = await check(body);
    expect(file.tokenId).to.equal(tokenId);
    const operations = report.operations.map(({ operation, isProven }) => ({ operation, isProven }));
    expect(operations).to.deep.include({ operation: 'mint', isProven: true });
    expect((await call('issuer', 'GET', '/tokens/1/evidence')).code).to.equal('TOKEN_UNKNOWN');
  });

  it('refuse what names no token, and say why', async () => {
    const address = '0x00000000000000000000000000000000000000aa';
    const cases: [asked: string, status: number, code: string][] = [
      ['x', 400, 'TOKEN_ID_INVALID'],
      [encodeURIComponent(`<script>alert(1)</script>\u202e${'x'.repeat(5_000)}`), 400, 'TOKEN_ID_INVALID'],
      ['9'.repeat(79), 400, 'TOKEN_ID_INVALID'],
      ['1?registry=x', 400, 'QUERY_INVALID'],
      [`1?registry=${address.toUpperCase()}`, 400, 'QUERY_INVALID'],
      [`1?chainId=80002`, 400, 'QUERY_INVALID'],
      [`1?registry=${address}&chainId=0`, 400, 'QUERY_INVALID'],
      [`1?credential=x`, 400, 'QUERY_INVALID'],
      [`1?registry=${address}`, 400, 'REGISTRY_MISSING'],
      [`1?registry=${address}&chainId=999`, 400, 'NETWORK_NOT_CONFIGURED'],
      [`1?registry=${address}&chainId=80002`, 400, 'NETWORK_NOT_CONFIGURED'],
      ['1', 404, 'TOKEN_UNKNOWN'],
    ];
    for (const [asked, status, code] of cases) {
      const answer = await call('issuer', 'GET', `/tokens/${asked}`);
      expect([answer.status, answer.code], asked.slice(0, 200)).to.deep.equal([status, code]);
      expect(answer.message, asked.slice(0, 200)).to.have.length.within(10, 500);
    }
  });

  it('decrypt remarks with the id of the credential in a header that is never logged', async () => {
    const remarkOf = async (headers: Record<string, string>): Promise<unknown> => {
      const path = `/tokens/${tokenId}`;
      const { body } = await call<Schemas['Token']>('issuer', 'GET', path, undefined, headers);
      return body.endorsements[0]?.decrypted;
    };
    expect(await remarkOf({})).to.equal(undefined);
    const encoded = encodeURIComponent(String(credential.id));
    expect(encoded).to.contain('%3A');
    expect(await remarkOf({ 'X-Credential-Id': encoded })).to.include({ text: 'Fragile: été' });
    expect(await remarkOf({ 'X-Credential-Id': '100%' })).not.to.include({ text: 'Fragile: été' });
    api.service.log.length = 0;
    const secret = 'urn:uuid:ffffffff-e52c-7491-a676-2ab8454428ab';
    await remarkOf({ 'X-Credential-Id': secret });
    await call('issuer', 'GET', '/tokens/1', undefined, { 'X-Credential-Id': secret });
    await call('issuer', 'GET', '/tokens/1?registry=x', undefined, { 'X-Credential-Id': secret });
    await call('wrong', 'GET', '/tokens/1', undefined, { 'X-Credential-Id': secret });
    const right = { 'X-Credential-Id': String(credential.id) };
    expect(await remarkOf(right)).to.deep.equal({ kind: 'text', text: 'Fragile: été' });
    const log = JSON.stringify(api.service.log);
    expect(log).to.contain(`/tokens/${tokenId}`);
    expect(log).not.to.contain(secret).and.not.contain(String(credential.id));
  });

  it('list deliveries with every attempt, successes too, page by page', async () => {
    const client = createClient({ url: api.service.url, apiKey: API_KEY, key: ADMIN_API_KEY });
    const all = await client.GET('/deliveries');
    expect(all.data).to.have.length(2 * MINT_EVENTS.length);
    const delivered = all.data?.filter(({ subscription }) => subscription === 'default') ?? [];
    for (const { state, attempts, tokenIdHex } of delivered) {
      expect({ state, tokenIdHex }).to.deep.equal({ state: 'delivered', tokenIdHex: tokenId });
      expect(attempts).to.have.length(1);
      expect(attempts[0]).to.include({ status: 204, error: null });
    }
    const paged: Schemas['FoundDeliveries'] = [];
    for (let path = '/deliveries?limit=3'; path !== '';) {
      const { headers, body } = await call<Schemas['FoundDeliveries']>('admin', 'GET', path);
      paged.push(...body);
      path = /<([^>]*)>; rel="next"/.exec(headers.get('Link') ?? '')?.[1] ?? '';
    }
    expect(paged).to.deep.equal(all.data);
    const found = async (query: string): Promise<Schemas['FoundDeliveries']> =>
      (await call<Schemas['FoundDeliveries']>('admin', 'GET', `/deliveries?${query}`)).body;
    const [failed, ...others] = await found('state=failed');
    expect(others).to.deep.equal([]);
    expect(failed?.attempts).to.have.length(1);
    expect(failed?.attempts[0]).to.include({ attempt: 1, status: 500, error: 'answered 500' });
    expect(await found('state=waiting')).to.have.length(MINT_EVENTS.length - 1);
    expect(await found('state=dead')).to.deep.equal([]);
    expect(await found(`token=${tokenId}`)).to.deep.equal(all.data);
    expect(await found('token=1')).to.deep.equal([]);
    expect(await found(`event=${failed?.id}`)).to.have.length(2);
    expect(await found('event=x')).to.deep.equal([]);
    expect(await found('subscription=default')).to.have.length(MINT_EVENTS.length);
    expect(failed?.type).to.equal('com.service.etr.escrow_created');
    expect(Date.parse(failed?.nextAttemptAt ?? '')).to.be.greaterThan(systemTime.now());
    const long = ['event', 'subscription'].map((name) => `${name}=${'x'.repeat(65)}`);
    const wrong =
      'state=orphaned after=1 after=x after=2147483648.1 limit=0 limit=101 registry=1 token=x x=1';
    for (const query of [...long, ...wrong.split(' '), 'limit=1&limit=2'])
      expect((await call('admin', 'GET', `/deliveries?${query}`)).code, query).to.equal('QUERY_INVALID');
  });

  it('list events, and show one with its body and without secrets', async () => {
    const { body: events } = await call<Schemas['Events']>('admin', 'GET', `/events?token=${tokenId}`);
    expect(events.map(({ type }) => type).reverse()).to.deep.equal(
      MINT_EVENTS.map((type) => `com.service.etr.${type}`),
    );
    const { body: page, headers } = await call<Schemas['Events']>('admin', 'GET', '/events?limit=1');
    expect(page).to.deep.equal(events.slice(0, 1));
    const next = /<([^>]*)>; rel="next"/.exec(headers.get('Link') ?? '')?.[1] ?? '';
    expect((await call<Schemas['Events']>('admin', 'GET', next)).body).to.deep.equal(events.slice(1, 2));
    const [event] = api.ofSettings.deliveries;
    const { body: shown } = await call<Schemas['Event']>('admin', 'GET', `/events/${event?.event.id}`);
    expect(shown.body).to.equal(event?.body.toString());
    expect(shown.deliveries.map(({ headers: sent }) => sent['x-tenant'])).to.have.members([undefined, '•••']);
    const failing = shown.deliveries.find(({ headers: sent }) => sent['x-tenant'] !== undefined);
    expect(failing).to.include({ state: 'failed' });
    expect(failing?.attempts.map(({ attempt, status }) => [attempt, status])).to.deep.equal([[1, 500]]);
    const secret = failing?.headers;
    expect(secret).to.include({ 'X-Service-Signature': '•••', 'webhook-signature': '•••' });
    expect(secret).to.include({ 'webhook-id': event?.event.id });
    expect(secret?.['X-Service-Key-Id']).to.equal(event?.headers['x-service-key-id']);
    expect(JSON.stringify(shown)).not.to.contain('acme-secret');
    for (const id of [UNKNOWN_EVENT, 'x'])
      expect(await coded('admin', 'GET', `/events/${id}`)).to.deep.equal([404, 'EVENT_UNKNOWN']);
    expect(await coded('admin', 'GET', '/events?after=2147483648')).to.deep.equal([400, 'QUERY_INVALID']);
  });

  it('derive a version that verifies as its credential, and name a wrong pointer', async () => {
    const derive = <Body>(selectivePointers: unknown, verifiableCredential: unknown = credential) =>
      call<Body>('issuer', 'POST', '/credentials/derive', {
        verifiableCredential,
        options: { selectivePointers },
      });
    const pointer = '/credentialSubject/blNumber';
    const { status, body } = await derive<Schemas['DerivedCredential']>([pointer]);
    expect(status).to.equal(201);
    const { verifiableCredential: derived } = body;
    expect(derived.credentialSubject).to.deep.include({ blNumber: BILL_OF_LADING.blNumber });
    expect(derived.credentialSubject).not.to.have.property('vessel');
    const verified = await verify('issuer', { verifiableCredential: derived, options: {} });
    expect(verified.status).to.equal(200);
    // Nobody answers at the issuer's domain: that alone cannot be told.
    const { documentIntegrity, documentStatus, issuerIdentity } = verified.body;
    expect([documentStatus.outcome, issuerIdentity.outcome]).to.deep.equal(['valid', 'could not tell']);
    expect(documentIntegrity.outcome).to.equal('could not tell');
    expect(verified.body).to.include({ verified: false, outcome: 'could not tell' });
    expect(documentStatus).to.include({ tokenId });
    const ofAnswer = await verify('issuer', { verifiableCredential: body });
    expect(ofAnswer.body).to.deep.include({ documentIntegrity, documentStatus });
    const cases: [unknown, unknown, string, RegExp][] = [
      [['/credentialSubject/bl'], credential, 'POINTER_MATCHES_NOTHING', /\/bl .*blNumber/],
      [['x'], credential, 'POINTER_INVALID', /"x"/],
      [[pointer], derived, 'CREDENTIAL_ALREADY_DERIVED', /derived/],
      [[pointer], { ...credential, proof: undefined }, 'PROOF_UNSUPPORTED', /proof/],
      [[pointer], {}, 'CREDENTIAL_INVALID', /VerifiableCredential/],
      [[1], credential, 'REQUEST_FIELD_INVALID', /^\/options\/selectivePointers\/0 /],
      ['x', credential, 'REQUEST_FIELD_INVALID', /^\/options\/selectivePointers /],
      [[pointer], 'x', 'REQUEST_FIELD_INVALID', /^\/verifiableCredential /],
      ...FOREIGN_DOCUMENTS.map(({ document, message }) => {
        return [[pointer], document, 'CREDENTIAL_INVALID', message] as [unknown, unknown, string, RegExp];
      }),
    ];
    for (const [pointers, given, code, message] of cases) {
      const answer = await derive(pointers, given);
      expect([answer.status, answer.code], code).to.deep.equal([400, code]);
      expect(answer.message).to.match(message);
    }
  });

  it('tell a context that does not answer from one at an address that is not asked', async () => {
    for (const [context, status, code, problem] of [
      [`https://${SILENT}/context`, 503, 'CONTEXT_UNAVAILABLE', 'ECONNREFUSED'],
      ['https://10.0.0.1/context', 400, 'DERIVATION_FAILED', 'does not connect to addresses of its kind'],
      ['ftp://x.example/context', 400, 'DERIVATION_FAILED', 'is not https://'],
    ] as const) {
      const contexts = [...credential['@context'], context];
      const given = { verifiableCredential: { ...credential, '@context': contexts } };
      const options = { selectivePointers: ['/credentialSubject/blNumber'] };
      const answer = await call('issuer', 'POST', '/credentials/derive', { ...given, options });
      expect([answer.status, answer.code], context).to.deep.equal([status, code]);
      expect(answer.message).to.contain(`The context ${context} `).and.contain(problem);
      const { body } = await verify('issuer', given);
      expect(body.documentIntegrity.outcome).to.equal('could not tell');
      const checks = JSON.stringify(body);
      expect(checks).to.contain(problem);
      expect(checks + answer.message).not.to.match(/sink|ALLOW_PRIVATE_SINKS/);
    }
  });

  it('answer 200 to a credential that is not valid, and 400 to a body of another shape', async () => {
    const changed = { ...credential, credentialSubject: { ...BILL_OF_LADING, blNumber: '2' } };
    const { status, body } = await verify('admin', { verifiableCredential: changed });
    expect([status, body.verified]).to.deep.equal([200, false]);
    for (const [given, code] of [
      [credential, 'REQUEST_FIELD_INVALID'],
      [{ verifiableCredential: credential, options: 1 }, 'REQUEST_FIELD_INVALID'],
      [{ verifiableCredential: credential, proof: 1 }, 'REQUEST_FIELD_INVALID'],
      [{ verifiableCredential: {} }, 'CREDENTIAL_INVALID'],
      ['{', 'BODY_NOT_JSON'],
    ] as const) {
      const answer = await verify('admin', given);
      expect([answer.status, answer.code]).to.deep.equal([400, code]);
    }
  });

  it('are open to a session of the console: a reader looks, verifies and derives', async () => {
    for (const key of [ADMIN_API_KEY, CONSOLE_READ_KEY]) {
      const page = openConsolePage(api.service.url);
      await page.logIn(key);
      const documents = ['/documents', `/documents/${tokenId}`];
      for (const path of [`/tokens/${tokenId}`, '/deliveries', '/events', ...documents])
        expect((await page.call('GET', path)).status, path).to.be.oneOf([200, 202]);
      const { body } = await page.call<Schemas['Token']>('GET', `/tokens/${tokenId}`);
      expect(body.endorsements[0]?.events[0]?.deliveries).to.have.length(2);
      const asked = { verifiableCredential: credential };
      expect((await page.call('POST', '/credentials/verify', asked)).status).to.equal(200);
      const derived = { ...asked, options: { selectivePointers: [''] } };
      expect((await page.call('POST', '/credentials/derive', derived)).status).to.equal(201);
      const foreign = await page.call('POST', '/credentials/verify', asked, { Origin: 'https://x.example' });
      expect(foreign.code).to.equal('CONSOLE_ORIGIN_WRONG');
    }
  });

  // After those above, because these add documents and subscriptions.
  describe('of the examples of the API description', () => {
    /** The example with a sink, or a credential, of this test: the proof of the example is cut short. */
    async function here(example: object): Promise<object> {
      if ('verifiableCredential' in example) return { ...example, verifiableCredential: credential };
      return 'sink' in example ? { ...example, sink: (await api.sink()).url } : example;
    }

    // The nonce of a log-in is made for it.
    const repeatable = OPERATIONS.filter(({ id }) => id !== 'login');
    for (const { id, method, path, answers, access, body } of repeatable)
      for (const [name, example] of Object.entries(body?.examples ?? {}))
        it(`get the described answer of ${id}: ${name}`, async () => {
          const { id: subscription } = await api.subscribe(await api.sink());
          const target = path.replace('{documentId}', 'BILL_OF_LADING').replace('{id}', subscription);
          const who = access === 'admin' ? 'admin' : 'issuer';
          const answer = await call(who, method.toUpperCase(), target, await here(example));
          expect(answer.message).to.equal('');
          expect(Object.keys(answers).map(Number)).to.include(answer.status);
        });

    it('work with the client that is made from it, which sends each path its key', async () => {
      const client = createClient({ url: api.service.url, apiKey: API_KEY, key: ADMIN_API_KEY });
      const credentialSubject = { type: ['BillOfLading' as const], scac: 'MAEU', blNumber: '1' };
      const { error, response } = await client.POST('/create/{documentId}', {
        params: { path: { documentId: 'BILL_OF_LADING' } },
        body: { owner: '0x', holder: '0x', credentialSubject },
      });
      expect(response.status).to.equal(400);
      expect(error?.error.message).to.match(/^\/owner /);
      expect((await client.GET('/documents')).data?.map((one) => one.tokenId)).to.include(tokenId);
    });
  });

  describe('with other settings', () => {
    it('tell the reason of a 500 to a session of the operator, and to nobody else', async () => {
      const registry = await api.local.makeRegistry();
      await api.restart({ RPC_URL: 'http://127.0.0.1:1/', TOKEN_REGISTRY_ADDRESS: registry });
      const path = '/tokens/1';
      const toldTo = async (key: string) => {
        const page = openConsolePage(api.service.url);
        await page.logIn(key);
        return page.call('GET', path);
      };
      const [operator, reader] = [await toldTo(ADMIN_API_KEY), await toldTo(CONSOLE_READ_KEY)];
      expect(operator.message).to.contain('127.0.0.1:1');
      const program = await call('admin', 'GET', path);
      for (const { message } of [reader, program]) expect(message).to.equal('Internal server error');
      for (const { status, code } of [operator, reader, program])
        expect([status, code]).to.deep.equal([500, 'RPC_UNREACHABLE']);
    });

    it('do not exist without a key, nor does the console', async () => {
      await api.restart({ API_KEY: '', ADMIN_API_KEY: '', CONSOLE_READ_KEY: '' });
      const ofConsole = ['/console', '/console/app.js', '/console/api/session', '/console/api/overview'];
      for (const path of ['/tokens/1', '/deliveries', '/events', '/events/x', ...ofConsole])
        expect(await coded('none', 'GET', path), path).to.deep.equal([404, 'NOT_FOUND']);
      for (const path of ['/credentials/verify', '/credentials/derive', '/credentials/issue'])
        expect(await coded('none', 'POST', path, {}), path).to.deep.equal([404, 'NOT_FOUND']);
      await api.restart({ ADMIN_API_KEY: '', CONSOLE_READ_KEY: '' });
      expect((await call('issuer', 'GET', `/tokens/${tokenId}`)).status).to.equal(200);
      expect(await coded('admin', 'GET', '/deliveries')).to.deep.equal([404, 'NOT_FOUND']);
    });
  });
});
