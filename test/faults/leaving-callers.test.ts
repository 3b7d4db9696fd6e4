import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { API_KEY, AUTHORIZATION, fetchDocument } from '../helpers/processes/documents-call';
import { openState } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

/** Values of a body below 64 KB, which needs no permit; signing it takes a processor ten seconds and more. */
const NUMBERS = 11_000;
const ABANDONED = 4;
const PATIENCE_MS = 500;
/** Far less than the abandoned documents take, one after the other. */
const NEXT_WITHIN_MS = 20_000;
/** Documents of so many values take longer to sign than the leaving caller waits. */
const SOME_NUMBERS = 3_000;
const MORE_NUMBERS = 6_000;

describe('callers that leave', () => {
  let local: LocalSetup;
  let owner: string;
  let services = 0;
  let dataDir: string;
  let service: ServiceProcess;
  let fromBlock: number;

  before(async () => {
    local = await createLocalSetup();
    owner = await local.account(1);
  });

  after(() => local?.stop());

  beforeEach(async () => {
    dataDir = join(local.folder, `data-${++services}`);
    fromBlock = (await local.client.getBlockNumber()) + 1;
    service = await startServiceProcess({ ...local.settings, API_KEY, DATA_DIR: dataDir });
  });

  afterEach(() => service?.end('SIGKILL'));

  /** A body with so many short values, which take long to sign. */
  const bodyOf = (numbers: number): string => {
    const voyageNo = Array.from({ length: numbers }, (_, number) => number);
    const credentialSubject = { ...minimal.credentialSubject, ...(numbers > 0 && { voyageNo }) };
    return JSON.stringify({ credentialSubject, owner, holder: owner });
  };
  const keyed = (key?: string): Record<string, string> => ({
    ...AUTHORIZATION,
    ...(key !== undefined && { 'Idempotency-Key': key }),
  });
  const issue = (numbers: number, key?: string): Promise<CreateAnswer> =>
    create(service.url, bodyOf(numbers), { headers: keyed(key) });

  /** Sends a request; the function that it returns disconnects the caller. */
  function ask(numbers: number, key?: string): () => void {
    const request = httpRequest(`${service.url}/create/BILL_OF_LADING`, {
      method: 'POST',
      agent: false,
      headers: { ...keyed(key), 'Content-Type': 'application/json' },
    });
    request.on('error', () => undefined).end(bodyOf(numbers));
    return () => request.destroy();
  }

  /** Sends a request and disconnects before the answer. */
  async function abandon(numbers: number, key?: string): Promise<void> {
    const leave = ask(numbers, key);
    await sleep(PATIENCE_MS);
    leave();
  }

  const linesOfLeaving = (): Record<string, unknown>[] =>
    service
      .output()
      .split('\n')
      .filter((line) => line.includes('CALLER_LEFT'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const areNoted = (count: number): Promise<unknown> =>
    eventually(`${count} are said to have left`, () => linesOfLeaving().length === count);

  /** Stops the service; then the chain and the journal have exactly the tokens of these answers. */
  async function expectOnly(...answers: CreateAnswer[]): Promise<void> {
    for (const { status, text } of answers) expect(status, text).to.equal(200);
    const tokens = answers.map(({ body }) => body.signedW3CDocument.credentialStatus.tokenId).sort();
    expect(await service.end('SIGTERM')).to.equal(0);
    expect([...(await mintedTokens(local, fromBlock)).keys()].sort(), 'on chain').to.deep.equal(tokens);
    const database = await openState({ settings: { DATA_DIR: dataDir }, remove: async () => undefined });
    try {
      const kept = await database.db.selectFrom('issuances').select('token_id').execute();
      expect(kept.map(({ token_id }) => token_id).sort(), 'in the journal').to.deep.equal(tokens);
      expect(await database.db.selectFrom('loose_documents').selectAll().execute()).to.deep.equal([]);
    } finally {
      await database.close();
    }
  }

  it(`delay no other caller and get no tokens: ${ABANDONED} documents of ${NUMBERS} values`, async () => {
    await Promise.all(Array.from({ length: ABANDONED }, () => abandon(NUMBERS)));
    const late = sleep(NEXT_WITHIN_MS, undefined, { ref: false }).then(() =>
      Promise.reject(new Error('the next document waits for those that nobody waits for')),
    );
    const next = await Promise.race([issue(0), late]);
    await areNoted(ABANDONED);
    for (const line of linesOfLeaving()) {
      expect(line).to.include({ level: 'info' });
      expect(line).not.to.have.any.keys('error', 'stack');
    }
    expect(service.output()).not.to.contain('"level":"error"');
    await expectOnly(next);
  });

  it('do not disturb another caller that waits with the same Idempotency-Key', async () => {
    const key = randomUUID();
    const leave = ask(SOME_NUMBERS, key);
    await sleep(PATIENCE_MS / 2);
    const stays = issue(SOME_NUMBERS, key);
    await sleep(PATIENCE_MS / 2);
    leave();
    await expectOnly(await stays);
  });

  it('get one document and one token when they return with the same Idempotency-Key', async () => {
    const key = randomUUID();
    await abandon(MORE_NUMBERS, key);
    const answer = await issue(MORE_NUMBERS, key);
    expect((await issue(MORE_NUMBERS, key)).text).to.equal(answer.text);
    await areNoted(1);
    await expectOnly(answer);
  });

  it('get their token if the document was in the journal before they left', async () => {
    await local.client.send('evm_setAutomine', [false]);
    const leave = ask(0);
    const hasPending = async (): Promise<boolean> =>
      ((await local.client.send('eth_pendingTransactions', [])) as unknown[]).length > 0;
    await eventually('the mint is sent', hasPending).finally(() =>
      local.client.send('evm_setAutomine', [true]),
    );
    leave();
    await sleep(PATIENCE_MS);
    await local.client.send('evm_mine', []);
    const [tokenId = ''] = (await mintedTokens(local, fromBlock)).keys();
    await eventually('the document is there', async () => {
      const { status } = await fetchDocument(service.url, tokenId);
      return status === 200;
    });
    await areNoted(1);
  });
});
