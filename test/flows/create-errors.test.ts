import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { readSettings } from '../../service/config';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/create-call';
import { startService, type RunningService } from '../helpers/running-service';
import { createWorld, type World } from '../helpers/world';

describe('failures of POST /create/{documentId}', () => {
  let world: World;
  let service: RunningService;
  let valid: { credentialSubject: object; owner: string; holder: string };

  before(async () => {
    world = await createWorld();
    service = await startService(world.settings);
    valid = { ...minimal, owner: await world.account(1), holder: await world.account(2) };
  });

  after(async () => {
    await service?.stop();
    await world?.stop();
  });

  /** The log line of one failed request, as an operator would look for it. */
  const failureOf = (running: RunningService, answer: CreateAnswer): Record<string, unknown> => {
    const line = running.log.find((entry) => entry.requestId === answer.requestId && 'error' in entry);
    return { code: line?.code, ...(line?.error as object) };
  };

  /** Expects the document's error answer, the reason in the log, and an untouched chain. */
  async function refused(body: unknown, code: string, message: RegExp, documentId?: string): Promise<void> {
    const block = await world.client.getBlockNumber();
    const answer = await create(service.url, body, documentId === undefined ? {} : { documentId });
    expect(answer.status).to.equal(500);
    expect(answer.body).to.deep.equal({ error: { message: 'Internal server error' } });
    const failure = failureOf(service, answer);
    expect(failure.code).to.equal(code);
    expect(`${String(failure.message)} ${String(failure.remedy)}`).to.match(message);
    expect(await world.client.getBlockNumber()).to.equal(block);
  }

  it('refuses a document type that is not supported', () =>
    refused(valid, 'DOCUMENT_NOT_SUPPORTED', /"BILL_OF_LADDING".*BILL_OF_LADING/, 'BILL_OF_LADDING'));

  const account = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
  const badFields: [string, object, RegExp][] = [
    ['a missing owner', { owner: undefined }, /^\/owner must be an account address, but it is missing/],
    ['an owner that is a number', { owner: 7 }, /^\/owner must be an account address, but it is a number/],
    ['an owner that is no address', { owner: 'Alice' }, /^\/owner must be .*40 hexadecimal digits/],
    ['an owner without 0x', { owner: account.slice(2) }, /^\/owner must be/],
    [
      'an owner with a bad checksum',
      { owner: account.replace('C51', 'c51') },
      /^\/owner has a wrong checksum/,
    ],
    ['the zero address as owner', { owner: `0x${'0'.repeat(40)}` }, /^\/owner is the zero address/],
    ['a missing holder', { holder: undefined }, /^\/holder must be an account address, but it is missing/],
    ['a holder that is an object', { holder: {} }, /^\/holder must be .* a object/],
    ['the zero address as holder', { holder: `0x${'0'.repeat(40)}` }, /^\/holder is the zero address/],
    [
      'a missing credentialSubject',
      { credentialSubject: undefined },
      /^\/credentialSubject must be an object, but it is missing/,
    ],
    ['a credentialSubject that is a string', { credentialSubject: 'x' }, /^\/credentialSubject .* a string/],
    ['a credentialSubject that is an array', { credentialSubject: [{}] }, /^\/credentialSubject .* an array/],
    ['remarks that are not a string', { remarks: 12 }, /^\/remarks must be a string, but it is a number/],
  ];
  for (const [what, change, message] of badFields) {
    it(`refuses ${what} and logs the field`, () =>
      refused({ ...valid, ...change }, 'REQUEST_FIELD_INVALID', message));
  }

  it('refuses a term that no context defines and logs the term', () => {
    const credentialSubject = { ...minimal.credentialSubject, vesel: 'Ever Given' };
    return refused({ ...valid, credentialSubject }, 'SUBJECT_TERM_UNDEFINED', /"vesel"/);
  });

  it('refuses a subject without a type', () =>
    refused({ ...valid, credentialSubject: { blNumber: '1' } }, 'SUBJECT_TERM_UNDEFINED', /"blNumber"/));

  /** Expects what is said of a mint that the registry would refuse: the message, and its reason beside it. */
  async function refusedByRegistry(body: object, reason: string, remedy: RegExp): Promise<void> {
    await refused(body, 'MINT_SIMULATION_FAILED', remedy);
    const line = service.log.findLast((entry) => entry.code === 'MINT_SIMULATION_FAILED');
    expect(line).to.include({ level: 'error', msg: 'Failed to mint token', reason });
    expect(line?.error).to.include({ message: 'Failed to mint token', reason });
  }

  for (const [what, length] of [
    ['of more than 120 bytes', 121],
    ['that no node would look at', 1_001],
    ['of a megabyte', 1_000_000],
  ] as const)
    it(`refuses a remark ${what} as the simulated mint does`, () =>
      refusedByRegistry({ ...valid, remarks: 'x'.repeat(length) }, 'RemarkLengthExceeded', /120 bytes/));

  it('takes a remark of exactly 120 bytes', async () => {
    expect((await create(service.url, { ...valid, remarks: 'x'.repeat(120) })).status).to.equal(200);
  });

  it('fails when the registry is paused, and issues again when it is not', async () => {
    const registry = TradeTrustTokenStandard__factory.connect(
      world.registryAddress,
      await world.client.getSigner(0),
    );
    await (await registry.pause('0x')).wait();
    await refusedByRegistry(valid, 'EnforcedPause', /must unpause it/);
    await (await registry.unpause('0x')).wait();
    expect((await create(service.url, valid)).status).to.equal(200);
  });

  it('fails when the node does not answer', async () => {
    const lonely = await startService({
      ...world.settings,
      RPC_URL: 'http://127.0.0.1:9',
      DATA_DIR: `${world.folder}/lonely`,
    });
    try {
      const answer = await create(lonely.url, valid);
      expect(answer.status).to.equal(500);
      expect(failureOf(lonely, answer)).to.include({ code: 'RPC_UNREACHABLE', retryable: true });
    } finally {
      await lonely.stop();
    }
  });

  for (const name of ['WALLET_PRIVATE_KEY', 'DID_KEY_PAIRS', 'TOKEN_REGISTRY_ADDRESS']) {
    it(`fails when ${name} is not configured, and the log names it`, async () => {
      const envFile = `${world.folder}/without.env`;
      const all = readSettings(world.settings).settings;
      const { WALLET_PRIVATE_KEY, ...settings } = world.settings;
      const generated = ['DID_KEY_PAIRS', 'TOKEN_REGISTRY_ADDRESS'].filter((kept) => kept !== name);
      writeFileSync(envFile, generated.map((kept) => `${kept}='${all[kept]}'\n`).join(''));
      const partial = await startService({
        ...settings,
        ...(name !== 'WALLET_PRIVATE_KEY' && WALLET_PRIVATE_KEY && { WALLET_PRIVATE_KEY }),
        ENV_FILE: envFile,
        DATA_DIR: `${world.folder}/${name}`,
      });
      try {
        const answer = await create(partial.url, valid);
        expect(answer.status).to.equal(500);
        expect(answer.body).to.deep.equal({ error: { message: 'Internal server error' } });
        expect(failureOf(partial, answer)).to.include({ code: 'NOT_CONFIGURED' });
        expect(failureOf(partial, answer).message).to.contain(name);
      } finally {
        await partial.stop();
      }
    });
  }

  it('returns a stack when NODE_ENV is development, and only then', async () => {
    const settings = { ...world.settings, NODE_ENV: 'development', DATA_DIR: `${world.folder}/development` };
    const development = await startService(settings);
    try {
      const { status, body } = await create(development.url, { ...valid, owner: 'Alice' });
      expect(status).to.equal(500);
      expect(body.error?.message).to.equal('Internal server error');
      expect(body.error?.stack).to.match(/\/owner must be an account address[^]*at /);
    } finally {
      await development.stop();
    }
  });
});
