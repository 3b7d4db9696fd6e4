import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { largeDocument } from '../helpers/credentials/large-document';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { peakMegabytes } from '../helpers/processes/process-memory';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

/** Far more than socket buffers hold: a body is sent to its end only if the service reads it. */
const MEGABYTES = 20;
const DOCUMENTS = 9;
/** One more than by default. */
const PLACES = 3;
/** As many again may be stored and wait for their mints. */
const MOST_AT_ONCE = 2 * PLACES;
const MOST_RESIDENT_MB = 2_048;
/** Far more than a free event loop needs, even on a busy machine. */
const LONGEST_GREETING_MS = 2_000;

interface Answer {
  status: number | undefined;
  retryAfter: string | undefined;
  text: string;
}

/** A request that is under way. */
interface Upload {
  request: ClientRequest;
  /** Whether the service has taken the whole body. */
  isTaken: boolean;
  /** Whether its answer begins, which has the whole document. */
  isAnswered: boolean;
  answered: Promise<Answer>;
}

describe('the service with many large bodies at once', () => {
  let local: LocalSetup;
  let service: ServiceProcess;
  let owner: string;

  before(async () => {
    local = await createLocalSetup();
    owner = await local.account(1);
    service = await startServiceProcess({ ...local.settings, LARGE_BODIES_AT_ONCE: String(PLACES) });
  });

  after(async () => {
    await service?.end('SIGKILL');
    await local?.stop();
  });

  it(`issues all documents, at most ${MOST_AT_ONCE} at once, while answering other requests`, async () => {
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    const bodies = Array.from({ length: DOCUMENTS }, () => largeDocument(owner, MEGABYTES));
    const uploads: Upload[] = [];
    let mostAtOnce = 0;
    const watch = setInterval(() => (mostAtOnce = Math.max(mostAtOnce, inHand(uploads))), 5);
    try {
      await greetUntil(Promise.all(bodies.map((body) => untilIssued(body, uploads))));
    } finally {
      clearInterval(watch);
    }
    expect([...(await mintedTokens(local, fromBlock)).keys()]).to.have.length(DOCUMENTS);
    expect(mostAtOnce, 'bodies in hand at once').to.be.within(1, MOST_AT_ONCE);
    const peak = peakMegabytes(service.pid);
    if (peak !== undefined) expect(peak, 'MB resident at most').to.be.lessThan(MOST_RESIDENT_MB);
  });

  /** The number of bodies that the service has read and not answered. */
  function inHand(uploads: readonly Upload[]): number {
    return uploads.filter(({ isTaken, isAnswered }) => isTaken && !isAnswered).length;
  }

  /** Sends the body until the document is issued; waits for Retry-After after each 503. */
  async function untilIssued(body: Buffer, uploads: Upload[]): Promise<Answer> {
    for (;;) {
      const upload = open(body.length);
      uploads.push(upload);
      upload.request.end(body);
      const answer = await upload.answered;
      if (answer.status === 200) return answer;
      expectBusy(answer);
      await sleep(Number(answer.retryAfter) * 1000);
    }
  }

  function expectBusy({ status, retryAfter, text: body }: Answer): void {
    expect(status, body.slice(0, 200)).to.equal(503);
    expect(retryAfter).to.match(/^[1-9]\d*$/);
    expect(JSON.parse(body)).to.have.nested.property('error.message').that.is.a('string');
  }

  /** Opens a request that declares the length of its body, and sends none of it. */
  function open(length: number): Upload {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': length };
    const url = `${service.url}/create/BILL_OF_LADING`;
    const request = httpRequest(url, { method: 'POST', headers, agent: false });
    const answered = answerOf(request);
    const upload: Upload = { request, isTaken: false, isAnswered: false, answered };
    request.on('finish', () => (upload.isTaken = true));
    request.on('response', () => (upload.isAnswered = true));
    return upload;
  }

  /** Asks for the greeting again and again until `work` is done. */
  async function greetUntil(work: Promise<unknown>): Promise<void> {
    let isOver = false;
    const over = work.finally(() => (isOver = true));
    over.catch(() => undefined);
    while (!isOver) {
      await greet();
      await sleep(50);
    }
    await over;
  }

  async function greet(): Promise<void> {
    const start = performance.now();
    const response = await fetch(service.url);
    await response.arrayBuffer();
    expect(response.status).to.equal(200);
    expect(performance.now() - start, 'milliseconds until the greeting').to.be.lessThan(LONGEST_GREETING_MS);
  }
});

/**
 * Rejects if the connection breaks before the answer is complete. Later errors of the connection are
 * ignored.
 */
function answerOf(request: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request.on('error', reject).on('response', (response: IncomingMessage) => {
      const { statusCode: status, headers } = response;
      const retryAfter = headers['retry-after'];
      text(response).then((body) => resolve({ status, retryAfter, text: body }), reject);
    });
  });
}
