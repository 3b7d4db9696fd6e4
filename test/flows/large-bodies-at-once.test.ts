import { request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
// eslint-disable-next-line no-restricted-syntax -- real time: the service says when to come again.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { largeDocument } from '../helpers/credentials/large-document';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { peakMegabytes } from '../helpers/processes/process-memory';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

/** Far more than socket buffers hold: a body is sent to its end only if the service reads it. */
const MEGABYTES = 20;
const DOCUMENTS = 4;
/** One less than by default. */
const PLACES = 1;
/** As many again may be stored and wait for their mints. */
const MOST_AT_ONCE = 2 * PLACES;
const MOST_RESIDENT_MB = 1_024;

describe('the service with many large bodies at once', () => {
  let local: LocalSetup;
  let service: ServiceProcess;
  /** The number of bodies that the service has read and not answered. */
  let inHand = 0;
  let mostInHand = 0;

  before(async () => {
    local = await createLocalSetup();
    service = await startServiceProcess({ ...local.settings, LARGE_BODIES_AT_ONCE: String(PLACES) });
  });

  it(`issues all documents, at most ${MOST_AT_ONCE} at once, in bounded memory`, async () => {
    const owner = await local.account(1);
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    const bodies = Array.from({ length: DOCUMENTS }, () => largeDocument(owner, MEGABYTES));
    await Promise.all(bodies.map(untilIssued));
    expect([...(await mintedTokens(local, fromBlock)).keys()]).to.have.length(DOCUMENTS);
    expect(mostInHand, 'bodies in hand at once').to.be.within(1, MOST_AT_ONCE);
    const peak = peakMegabytes(service.pid);
    if (peak !== undefined) expect(peak, 'MB resident at most').to.be.lessThan(MOST_RESIDENT_MB);
  });

  /** Sends the body until the document is issued; waits for Retry-After after each 503. */
  async function untilIssued(body: Buffer): Promise<void> {
    for (;;) {
      const { status, retryAfter, answer } = await post(body);
      if (status === 200) return;
      expect(status, answer.slice(0, 200)).to.equal(503);
      expect(JSON.parse(answer)).to.have.nested.property('error.message').that.is.a('string');
      expect(retryAfter).to.match(/^[1-9]\d*$/);
      await sleep(Number(retryAfter) * 1_000);
    }
  }

  /** Rejects if the connection breaks before the answer begins. */
  function post(
    body: Buffer,
  ): Promise<{ status: number | undefined; retryAfter: string | undefined; answer: string }> {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length };
    const url = `${service.url}/create/BILL_OF_LADING`;
    return new Promise((resolve, reject) => {
      let isTaken = false;
      httpRequest(url, { method: 'POST', headers, agent: false })
        .on('error', reject)
        .on('finish', () => {
          isTaken = true;
          mostInHand = Math.max(mostInHand, ++inHand);
        })
        .on('response', (response) => {
          if (isTaken) inHand--;
          const { statusCode: status, headers } = response;
          const retryAfter = headers['retry-after'];
          text(response).then((answer) => resolve({ status, retryAfter, answer }), reject);
        })
        .end(body);
    });
  }
});
