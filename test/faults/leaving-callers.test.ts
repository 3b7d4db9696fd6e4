import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
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

describe('callers that leave', () => {
  let local: LocalSetup;
  let owner: string;
  let service: ServiceProcess;

  before(async () => {
    local = await createLocalSetup();
    owner = await local.account(1);
    service = await startServiceProcess(local.settings);
  });

  /** A body with so many short values, which take long to sign. */
  const bodyOf = (numbers: number): string => {
    const voyageNo = Array.from({ length: numbers }, (_, number) => number);
    const credentialSubject = { ...minimal.credentialSubject, ...(numbers > 0 && { voyageNo }) };
    return JSON.stringify({ credentialSubject, owner, holder: owner });
  };

  /** Sends a request and disconnects before the answer. */
  async function abandon(numbers: number): Promise<void> {
    const request = httpRequest(`${service.url}/create/BILL_OF_LADING`, {
      method: 'POST',
      agent: false,
      headers: { 'Content-Type': 'application/json' },
    });
    request.on('error', () => undefined).end(bodyOf(numbers));
    await sleep(PATIENCE_MS);
    request.destroy();
  }

  const linesOfLeaving = (): Record<string, unknown>[] =>
    service
      .output()
      .split('\n')
      .filter((line) => line.includes('CALLER_LEFT'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it(`delay no other caller and get no tokens: ${ABANDONED} documents of ${NUMBERS} values`, async () => {
    await Promise.all(Array.from({ length: ABANDONED }, () => abandon(NUMBERS)));
    const late = sleep(NEXT_WITHIN_MS, undefined, { ref: false }).then(() =>
      Promise.reject(new Error('the next document waits for those that nobody waits for')),
    );
    const next = await Promise.race([create(service.url, bodyOf(0)), late]);
    expect(next.status, next.text).to.equal(200);
    await eventually('all are said to have left', () => linesOfLeaving().length === ABANDONED);
    for (const line of linesOfLeaving()) {
      expect(line).to.include({ level: 'info' });
      expect(line).not.to.have.any.keys('error', 'stack');
    }
    expect(service.output()).not.to.contain('"level":"error"');

    const { tokenId } = next.body.signedW3CDocument.credentialStatus;
    expect(await service.end('SIGTERM')).to.equal(0);
    expect([...(await mintedTokens(local, 0)).keys()], 'on chain').to.deep.equal([tokenId]);
    const { DATA_DIR = '' } = local.settings;
    await using database = await openState({ settings: { DATA_DIR } });
    const kept = await database.db.selectFrom('issuances').select('token_id').execute();
    expect(kept, 'in the journal').to.deep.equal([{ token_id: tokenId }]);
    expect(await database.db.selectFrom('loose_documents').selectAll().execute()).to.deep.equal([]);
  });
});
