import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { readSettings } from '../../service/config/config';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { BOMB, startRpcProxy, THROUGH } from '../helpers/chain/rpc-proxy';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
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

  after(async () => {
    await service?.stop();
    await local?.stop();
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

  it('refuses an unsupported document type', () =>
    refused(valid, 'DOCUMENT_NOT_SUPPORTED', /"BILL_OF_LADDING".*BILL_OF_LADING/, {
      documentId: 'BILL_OF_LADDING',
    }));

  it('refuses an unsupported document type before it checks anything else', async () => {
    const documentId = 'INVOICE';
    for (const [body, headers] of [
      [{ owner: 7 }, {}],
      ['{', {}],
      ['x', { 'Content-Type': 'text/plain' }],
      [valid, { 'Idempotency-Key': 'two words' }],
    ] as const)
      await refused(body, 'DOCUMENT_NOT_SUPPORTED', /"INVOICE"/, { documentId, headers });
  });

  const account = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
  const GIVE = 'Give the address of an account: 0x and 40 hexadecimal digits.';
  const KNOWN = 'Leave it out, or write one of credentialSubject, owner, holder, remarks.';
  const wrongShapes: [string, object, string][] = [
    ['a missing owner', { owner: undefined }, `/owner must be a string, but it is missing. ${GIVE}`],
    ['an owner that is a number', { owner: 7 }, `/owner must be a string, but it is a number. ${GIVE}`],
    ['an owner that is null', { owner: null }, `/owner must be a string, but it is null. ${GIVE}`],
    ['an owner that is no address', { owner: 'Alice' }, `/owner is not an address. ${GIVE}`],
    ['an owner without 0x', { owner: account.slice(2) }, `/owner is not an address. ${GIVE}`],
    [
      'an owner with a bad checksum',
      { owner: account.replace('C51', 'c51') },
      '/owner has a wrong checksum. Check for a typing error, or write the address in lower case.',
    ],
    [
      'the zero address as owner',
      { owner: `0x${'0'.repeat(40)}` },
      `/owner is the zero address, from which nobody could move the token. ${GIVE}`,
    ],
    ['a missing holder', { holder: undefined }, `/holder must be a string, but it is missing. ${GIVE}`],
    ['a holder that is an object', { holder: {} }, `/holder must be a string, but it is an object. ${GIVE}`],
    [
      'the zero address as holder',
      { holder: `0x${'0'.repeat(40)}` },
      `/holder is the zero address, from which nobody could move the token. ${GIVE}`,
    ],
    [
      'a missing credentialSubject',
      { credentialSubject: undefined },
      '/credentialSubject must be an object, but it is missing. Give the content to sign.',
    ],
    [
      'a credentialSubject that is a string',
      { credentialSubject: 'x' },
      '/credentialSubject must be an object, but it is a string. Give the content to sign.',
    ],
    [
      'a credentialSubject that is an array',
      { credentialSubject: [{}] },
      '/credentialSubject must be an object, but it is an array. Give the content to sign.',
    ],
    [
      'remarks that are not a string',
      { remarks: 12 },
      '/remarks must be a string, but it is a number. Give a text, or leave it out.',
    ],
    ['a misspelt member', { remark: 'shipped' }, `/remark is not a member of the request. ${KNOWN}`],
    [
      'a misspelt member, rather than to the missing one',
      { owner: undefined, Owner: account },
      `/Owner is not a member of the request. ${KNOWN}`,
    ],
    [
      'a member whose name needs escaping',
      { 'a/b~c': 1 },
      `/a~1b~0c is not a member of the request. ${KNOWN}`,
    ],
    [
      'a member with a very long name',
      { ['n'.repeat(20_000)]: 1 },
      `/${'n'.repeat(256)}… is not a member of the request. ${KNOWN}`,
    ],
  ];
  /** Makes a body large enough to be parsed in a thread. */
  const large = { credentialSubject: { ...minimal.credentialSubject, vessel: 'x'.repeat(70_000) } };

  for (const [what, change, message] of wrongShapes)
    it(`answers 400 with a remedy to ${what}, in small and large bodies`, async () => {
      const block = await local.client.getBlockNumber();
      for (const body of [
        { ...valid, ...change },
        { ...valid, ...large, ...change },
      ]) {
        const answer = await create(service.url, body);
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

  it('refuses a subject without a type', () =>
    refused({ ...valid, credentialSubject: { blNumber: '1' } }, 'SUBJECT_TERM_UNDEFINED', /"blNumber"/));

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
    ['of a megabyte', 1_000_000],
  ] as const)
    it(`refuses a remark ${what} for the same reason as the registry`, () =>
      refusedByRegistry(
        { ...valid, remarks: 'x'.repeat(length) },
        'RemarkLengthExceeded',
        /120 bytes/,
        'REMARK_TOO_LONG',
      ));

  it('treats null remarks as no remarks', async () => {
    expect((await create(service.url, { ...valid, remarks: null })).status).to.equal(200);
  });

  it('accepts a remark of exactly 120 bytes', async () => {
    expect((await create(service.url, { ...valid, remarks: 'x'.repeat(120) })).status).to.equal(200);
  });

  it('fails while the registry is paused, and issues again after the unpause', async () => {
    const registry = TradeTrustTokenStandard__factory.connect(
      local.registryAddress,
      await local.client.getSigner(0),
    );
    await (await registry.pause('0x')).wait();
    await refusedByRegistry(valid, 'EnforcedPause', /must unpause it/);
    await (await registry.unpause('0x')).wait();
    expect((await create(service.url, valid)).status).to.equal(200);
  });

  it('answers 500 when the node is down, but still 400 to invalid fields', async () => {
    const lonely = await startService({
      ...local.settings,
      RPC_URL: 'http://127.0.0.1:9',
      DATA_DIR: `${local.folder}/lonely`,
    });
    try {
      const answer = await create(lonely.url, valid);
      expect([answer.status, answer.errorCode]).to.deep.equal([500, 'RPC_UNREACHABLE']);
      expect(failureOf(lonely, answer)).to.include({ code: 'RPC_UNREACHABLE', retryable: true });
      // The fields are checked before the node is asked.
      for (const subject of [minimal, large]) {
        const mistaken = await create(lonely.url, { ...valid, ...subject, owner: 'Alice' });
        expect([mistaken.status, mistaken.errorCode]).to.deep.equal([400, 'REQUEST_FIELD_INVALID']);
      }
    } finally {
      await lonely.stop();
    }
  });

  it('answers 500 that blames the node when its answers are malformed or too large', async () => {
    const proxy = await startRpcProxy(local.node.url);
    const DATA_DIR = `${local.folder}/malformed`;
    const misled = await startService({ ...local.settings, RPC_URL: proxy.url, DATA_DIR });
    try {
      for (const bad of [{ status: 200, body: '[]' }, { result: null }, BOMB]) {
        proxy.answer((method) => (method === 'eth_call' ? bad : 'none'));
        const answer = await create(misled.url, valid);
        expect([answer.status, answer.errorCode]).to.deep.equal([500, 'RPC_UNREACHABLE']);
        expect(failureOf(misled, answer)).to.include({ retryable: true });
      }
      proxy.answer(THROUGH);
      expect((await create(misled.url, valid)).status).to.equal(200);
    } finally {
      await misled.stop();
      await proxy.close();
    }
  });

  for (const name of ['WALLET_PRIVATE_KEY', 'DID_KEY_PAIRS', 'TOKEN_REGISTRY_ADDRESS']) {
    it(`fails when ${name} is not configured, and logs its name`, async () => {
      const envFile = `${local.folder}/without.env`;
      const all = readSettings(local.settings).settings;
      const { WALLET_PRIVATE_KEY, ...settings } = local.settings;
      const generated = ['DID_KEY_PAIRS', 'TOKEN_REGISTRY_ADDRESS'].filter((kept) => kept !== name);
      writeFileSync(envFile, generated.map((kept) => `${kept}='${all[kept]}'\n`).join(''));
      const partial = await startService({
        ...settings,
        ...(name !== 'WALLET_PRIVATE_KEY' && WALLET_PRIVATE_KEY && { WALLET_PRIVATE_KEY }),
        ENV_FILE: envFile,
        DATA_DIR: `${local.folder}/${name}`,
      });
      try {
        const answer = await create(partial.url, { ...valid, owner: 'Alice' });
        expect([answer.status, answer.errorCode]).to.deep.equal([500, 'NOT_CONFIGURED']);
        expect(answer.body).to.deep.equal({ error: { message: 'Internal server error' } });
        expect(failureOf(partial, answer)).to.include({ code: 'NOT_CONFIGURED' });
        expect(failureOf(partial, answer).message).to.contain(name);
      } finally {
        await partial.stop();
      }
    });
  }

  it('returns a stack only when NODE_ENV is development', async () => {
    const settings = { ...local.settings, NODE_ENV: 'development', DATA_DIR: `${local.folder}/development` };
    const development = await startService(settings);
    try {
      const { status, body } = await create(development.url, valid, { documentId: 'INVOICE' });
      expect(status).to.equal(500);
      expect(body.error?.message).to.equal('Internal server error');
      expect(body.error?.stack).to.match(/"INVOICE" is not supported[^]*at /);
    } finally {
      await development.stop();
    }
  });
});
