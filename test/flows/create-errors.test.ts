import { expect } from 'chai';
import { missingForIssuing } from '../../service/config/warnings';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

describe('POST /create/{documentId}, when a request fails', () => {
  let local: LocalSetup;
  let service: RunningService;
  let valid: { credentialSubject: object; owner: string; holder: string };

  before(async () => {
    local = await createLocalSetup();
    service = await startService(local.settings);
    valid = { ...minimal, owner: await local.account(1), holder: await local.account(2) };
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

  /** Expects the log line about a mint that the registry would refuse: the message, and its reason. */
  async function refusedByRegistry(
    body: object,
    reason: string,
    remedy: RegExp,
    code = 'MINT_SIMULATION_FAILED',
  ): Promise<void> {
    await refused(body, code, remedy);
    const line = service.log.findLast((entry) => entry.code === code);
    expect(line).to.include({ level: 'error', msg: 'Failed to mint token', reason });
    expect(line?.error).to.include({ message: 'Failed to mint token', reason });
  }

  for (const [what, length] of [
    ['of more than 120 bytes', 121],
    ['that is too long to be simulated', 1_001],
  ] as const)
    it(`refuses a remark ${what} for the same reason as the registry`, () =>
      refusedByRegistry(
        { ...valid, remarks: 'x'.repeat(length) },
        'RemarkLengthExceeded',
        /120 bytes/,
        'REMARK_TOO_LONG',
      ));

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
    const missing = { WALLET_PRIVATE_KEY: '', TOKEN_REGISTRY_ADDRESS: '' };
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

describe('the settings that issuing needs', () => {
  const all = {
    tokenRegistryAddress: '0x1',
    walletKey: {},
    issuerKey: {},
    billOfLadingContextUrl: 'https://carrier.example/v1.json',
  };

  for (const [setting, name] of [
    ['tokenRegistryAddress', 'TOKEN_REGISTRY_ADDRESS'],
    ['walletKey', 'WALLET_PRIVATE_KEY'],
    ['issuerKey', 'DID_KEY_PAIRS'],
    ['billOfLadingContextUrl', 'DOMAIN'],
  ] as const)
    it(`have ${name} among them`, () => {
      expect(missingForIssuing({ ...all, [setting]: undefined })).to.deep.equal([name]);
    });
});
