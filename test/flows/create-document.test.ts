import { expect } from 'chai';
import { tokenIdOf, validUntilOf } from '../../service/issuance/credential';
import { TitleEscrow__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { readDocument } from '../helpers/pages/markdown';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { tokenIdAsUint256 } from '../helpers/token-id';

describe('POST /create/{documentId}', () => {
  let local: LocalSetup;
  let service: RunningService;
  let owner: string;
  let holder: string;
  let valid: { credentialSubject: object; owner: string; holder: string };

  before(async () => {
    local = await createLocalSetup();
    service = await startService(local.settings);
    [owner, holder] = [await local.account(1), await local.account(2)];
    valid = { ...minimal, owner, holder };
  });

  it('answers as docs/specification.md says, with the token of owner and holder minted', async () => {
    const lower = { owner: owner.toLowerCase(), holder: holder.toLowerCase() };
    const options = { documentId: 'Bill_of_Lading' };
    const { status, body, text } = await create(service.url, { ...minimal, ...lower }, options);
    expect(status, text).to.equal(200);
    const credential = body.signedW3CDocument;
    expect(Object.keys(body)).to.deep.equal(['signedW3CDocument', 'txHash']);
    expect(Object.keys(credential)).to.deep.equal([
      '@context',
      'type',
      'credentialStatus',
      'renderMethod',
      'credentialSubject',
      'validFrom',
      'validUntil',
      'issuer',
      'id',
      'proof',
    ]);
    expect(credential['@context']).to.deep.equal([
      'https://www.w3.org/ns/credentials/v2',
      'https://w3id.org/security/data-integrity/v2',
      'https://trustvc.io/context/transferable-records-context.json',
      'https://trustvc.io/context/render-method-context-v2.json',
      'https://trustvc.io/context/attachments-context.json',
      'https://localhost:3000/contexts/bill-of-lading-v1.json',
    ]);
    expect(credential.type).to.deep.equal(['VerifiableCredential']);
    expect(credential.id).to.match(
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(credential.credentialStatus).to.deep.equal({
      type: 'TransferableRecords',
      tokenNetwork: { chain: 'ETH', chainId: '31337' },
      tokenRegistry: local.registryAddress,
      tokenId: tokenIdOf(credential.id),
    });
    expect(credential.renderMethod).to.deep.equal([
      {
        id: 'https://generic-templates.tradetrust.io',
        type: 'EMBEDDED_RENDERER',
        templateName: 'BILL_OF_LADING',
      },
    ]);
    expect(credential.credentialSubject).to.deep.equal(minimal.credentialSubject);
    expect(credential.issuer).to.equal('did:web:localhost%3A3000');
    expect(credential.validFrom).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(credential.validUntil).to.equal(validUntilOf(new Date(credential.validFrom)).toISOString());
    const { created, proofValue, ...proof } = credential.proof;
    expect(created).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(proofValue).to.match(/^u/);
    expect(proof).to.deep.equal({
      type: 'DataIntegrityProof',
      cryptosuite: 'ecdsa-sd-2023',
      proofPurpose: 'assertionMethod',
      verificationMethod: 'did:web:localhost%3A3000#keys-1',
    });

    const shown = readDocument('docs/http-api.md').code('A request and its answer', 'json');
    const membersOf = (json: string): string[] =>
      [...json.matchAll(/"([^"]+)":/g)].map(([, name = '']) => name);
    expect(membersOf(text)).to.deep.equal(membersOf(shown));

    const tokenId = tokenIdAsUint256(credential.credentialStatus.tokenId);
    const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, local.client);
    const escrow = TitleEscrow__factory.connect(await registry.ownerOf(tokenId), local.client);
    expect([await escrow.beneficiary(), await escrow.holder(), await escrow.remark()]).to.deep.equal([
      owner,
      holder,
      '0x',
    ]);
    expect((await local.client.getTransactionReceipt(body.txHash))?.status).to.equal(1);
  });

  /** The error of a failed request in the log, found by its request id. */
  const failureOf = (running: RunningService, answer: CreateAnswer): Record<string, unknown> => {
    const line = running.log.find((entry) => entry.requestId === answer.requestId && 'error' in entry);
    return { code: line?.code, ...(line?.error as object) };
  };

  /** Expects an answer with only the error code, the reason in the log, and no new block. */
  async function refused(
    body: unknown,
    code: string,
    message: RegExp,
    options: Parameters<typeof create>[2] = {},
  ): Promise<void> {
    const block = await local.client.getBlockNumber();
    const answer = await create(service.url, body, options);
    expect([answer.status, answer.errorCode]).to.deep.equal([500, code]);
    expect(answer.body).to.deep.equal({ error: { message: 'Internal server error' } });
    const failure = failureOf(service, answer);
    expect(failure.code).to.equal(code);
    expect(`${String(failure.message)} ${String(failure.remedy)}`).to.match(message);
    expect(await local.client.getBlockNumber()).to.equal(block);
  }

  it('refuses an unsupported document type before it checks anything else', async () => {
    const documentId = 'INVOICE';
    for (const [body, headers] of [
      [valid, {}],
      [{ owner: 7 }, {}],
      ['{', {}],
      ['x', { 'Content-Type': 'text/plain' }],
      [valid, { 'Idempotency-Key': 'two words' }],
    ] as const)
      await refused(body, 'DOCUMENT_NOT_SUPPORTED', /"INVOICE".*BILL_OF_LADING/, { documentId, headers });
  });

  /** Makes a body large enough to be parsed in a thread. */
  const large = { credentialSubject: { ...minimal.credentialSubject, vessel: 'x'.repeat(70_000) } };

  it('answers 400 with a remedy to an invalid field, in small and large bodies', async () => {
    const block = await local.client.getBlockNumber();
    const message = '/owner is not an address. Give the address of an account: 0x and 40 hexadecimal digits.';
    for (const subject of [minimal, large]) {
      const answer = await create(service.url, { ...valid, ...subject, owner: 'Alice' });
      expect([answer.status, answer.errorCode]).to.deep.equal([400, 'REQUEST_FIELD_INVALID']);
      expect(answer.body).to.deep.equal({ error: { message } });
      const line = service.log.find((entry) => entry.requestId === answer.requestId && 'code' in entry);
      expect(line).to.include({ level: 'warn', code: 'REQUEST_FIELD_INVALID', msg: message });
    }
    expect(await local.client.getBlockNumber()).to.equal(block);
  });

  it('refuses a term that no context defines and logs the term', () => {
    const credentialSubject = { ...minimal.credentialSubject, vesel: 'Ever Given' };
    return refused({ ...valid, credentialSubject }, 'SUBJECT_TERM_UNDEFINED', /"vesel"/);
  });

  for (const [what, length] of [
    ['of more than 120 bytes', 121],
    ['that is too long to be simulated', 1_001],
  ] as const)
    it(`refuses a remark ${what} for the same reason as the registry`, async () => {
      await refused({ ...valid, remarks: 'x'.repeat(length) }, 'REMARK_TOO_LONG', /120 bytes/);
      const failure = { message: 'Failed to mint token', reason: 'RemarkLengthExceeded' };
      const line = service.log.findLast(({ code }) => code === 'REMARK_TOO_LONG');
      expect(line).to.include({ level: 'error', msg: failure.message, reason: failure.reason });
      expect(line?.error).to.include(failure);
    });

  it('accepts a remark of exactly 120 bytes', async () => {
    expect((await create(service.url, { ...valid, remarks: 'x'.repeat(120) })).status).to.equal(200);
  });

  it('answers 500 when the node is down, but still 400 to invalid fields', async () => {
    await using lonely = await startService({
      ...local.settings,
      RPC_URL: 'http://127.0.0.1:9',
      DATA_DIR: `${local.folder}/lonely`,
    });
    const answer = await create(lonely.url, valid);
    expect([answer.status, answer.errorCode]).to.deep.equal([500, 'RPC_UNREACHABLE']);
    expect(failureOf(lonely, answer)).to.include({ code: 'RPC_UNREACHABLE', retryable: true });
    // The fields are checked before the node is asked.
    for (const subject of [minimal, large]) {
      const mistaken = await create(lonely.url, { ...valid, ...subject, owner: 'Alice' });
      expect(mistaken.errorCode).to.equal('REQUEST_FIELD_INVALID');
    }
  });

  it('fails when settings are missing, and logs their names; health has no issuing', async () => {
    const missing = { WALLET_PRIVATE_KEY: '', TOKEN_REGISTRY_ADDRESS: '', DID_KEY_PAIRS: '', DOMAIN: '' };
    const DATA_DIR = `${local.folder}/partial`;
    await using partial = await startService({ ...local.settings, ...missing, DATA_DIR });
    const answer = await create(partial.url, { ...valid, owner: 'Alice' });
    expect([answer.status, answer.errorCode]).to.deep.equal([500, 'NOT_CONFIGURED']);
    expect(answer.body).to.deep.equal({ error: { message: 'Internal server error' } });
    expect(failureOf(partial, answer)).to.include({ code: 'NOT_CONFIGURED' });
    for (const name of Object.keys(missing)) expect(failureOf(partial, answer).message).to.contain(name);
    const health = await healthOf(partial.url);
    expect(health).to.include({ status: 'ok' }).and.not.to.have.property('issuing');
    for (const metric of ['etr_mints', 'etr_signing_busy'])
      expect(await metricOf(partial.url, metric)).to.equal(undefined);
  });
});
