import { setTimeout as sleep } from 'node:timers/promises';
import { systemTime } from '../service/base/time';
import { createDocumentLoader } from '../service/issuance/document-loader';
import { createSigningPool } from '../service/issuance/signing-pool';
import full from '../test/fixtures/bill-of-lading-full.json';
import { largeDocument } from '../test/helpers/credentials/large-document';
import { createPlainSign } from '../test/helpers/credentials/plain-signing';
import { attachmentOf, bodyWith, preparationOf, settingsOf } from '../test/helpers/credentials/preparations';
import { createTestIssuer } from '../test/helpers/credentials/test-issuer';
import { CONTEXT_URL, credentialWith } from '../test/helpers/credentials/unchecked-issuer';
import { peakMegabytes } from '../test/helpers/processes/process-memory';
import { compare, timeOf, type Size } from './measure';
import { onNewChain, whileProbed, withService, type ProbedService } from './processes';

const CREATED = '2026-01-31T00:00:00Z';
/** Packages, and millions of base64 characters in an attachment. */
const DOCUMENTS = [
  [3, 0],
  [30, 0],
  [300, 0],
  [3, 1],
  [3, 5],
  [3, 20],
  [3, 40],
] as const;
const LARGE = 4;
const IDLE_MS = 3_000;

/**
 * How the time of a document grows with it, against the plain loop of the libraries' READMEs; and how the
 * service answers others, and how much memory it takes, while four of the largest are issued.
 */
export async function largeBodies(size: Size): Promise<void> {
  const issuer = await createTestIssuer();
  const plain = await createPlainSign(issuer.keyPair, createDocumentLoader(CONTEXT_URL));
  const stays = new AbortController().signal;
  const pool = await createSigningPool(settingsOf(issuer), { time: systemTime });
  await onNewChain((local) =>
    withService(local, {}, async (service) => {
      for (const [packages, megabytes] of DOCUMENTS) {
        const subject = subjectOf(packages, megabytes);
        const body = bodyWith(subject);
        await compare(`${packages} packages, ${megabytes} MB`, size, {
          'plain loop, only signing': async () => ({
            ms: await timeOf(() => plain(credentialWith(subject), CREATED)),
          }),
          'signing threads': async () => ({ ms: await timeOf(() => pool.run(preparationOf(body), stays)) }),
          'POST /create': async () => ({
            ms: await timeOf(() => post(service, Buffer.from(body))),
            ...memoryOf(service),
          }),
        });
      }
      await pool.stop();
      const megabytes = size.of(40);
      const owner = await local.account(1);
      // Made beforehand, because this takes processor time.
      const bodies = Array.from({ length: LARGE }, () => largeDocument(owner, megabytes));
      await compare(`GET / every 10 ms, ${LARGE} documents of ${megabytes} MB`, size, {
        'nothing is issued': () => whileProbed(service, () => sleep(IDLE_MS)),
        'they are issued': async () => ({
          ...(await whileProbed(service, () => Promise.all(bodies.map((body) => post(service, body))))),
          ...memoryOf(service),
        }),
      });
    }),
  );
}

const memoryOf = ({ pid }: ProbedService) => ({
  'memory of the service, the most so far, MB': peakMegabytes(pid) ?? NaN,
});

/** The fixture's Bill of Lading with so many packages, and an attachment. */
function subjectOf(packages: number, megabytes: number) {
  const [first] = full.credentialSubject.packages;
  return {
    ...full.credentialSubject,
    packages: Array.from({ length: packages }, (_, index) => ({ ...first, packagesWeight: `${index} KG` })),
    ...(megabytes > 0 && { attachments: [attachmentOf(megabytes)] }),
  };
}

/** Repeats the request while the service answers that it is busy. */
async function post({ url }: ProbedService, body: Buffer): Promise<void> {
  for (;;) {
    const headers = { 'Content-Type': 'application/json' };
    const response = await fetch(`${url}/create/BILL_OF_LADING`, { method: 'POST', headers, body });
    await response.arrayBuffer();
    if (response.status === 200) return;
    if (response.status !== 503) throw new Error(`POST answered ${response.status}`);
    await sleep(Number(response.headers.get('Retry-After')) * 1_000);
  }
}
