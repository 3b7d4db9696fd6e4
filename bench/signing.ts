import { availableParallelism } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UnsignedCredential } from '../service/issuance/credential';
import { createDocumentLoader } from '../service/issuance/document-loader';
import { createCredentialSigner } from '../service/issuance/sign';
import { createSigningPool, type SigningPool } from '../service/issuance/signing-pool';
import { createPlainSign, type PlainSign } from '../test/helpers/credentials/plain-signing';
import { bodyWith, preparationOf, settingsOf } from '../test/helpers/credentials/preparations';
import { createTestIssuer, type TestIssuer } from '../test/helpers/credentials/test-issuer';
import { CONTEXT_URL, credentialWith } from '../test/helpers/credentials/unchecked-issuer';
import { GROWING_DOCUMENTS, requestBodyOf, subjectOf } from './growing-documents';
import { median } from './median';

const CREATED = new Date('2026-01-31T00:00:00Z');
/** Rounds that do not count: they compile code and process contexts. */
const WARM_UP = 50;
const SINGLE_ROUNDS = 200;
const RATE_ROUNDS = 7;
const PLAIN_PER_ROUND = 100;
const POOL_PER_ROUND = 500;
/** More documents than threads, so that a free thread has the next one at once. */
const AT_ONCE = 4 * availableParallelism();
const GROWTH_ROUNDS = 5;

/**
 * Compares signing with the plain loop of the libraries' READMEs, on one thread and on all, and measures how
 * its cost grows with the document. The two take turns, so that other load of the machine affects both.
 */
export async function run(): Promise<void> {
  const issuer = await createTestIssuer();
  const plain = await createPlainSign(issuer.keyPair, createDocumentLoader(CONTEXT_URL));
  await compareSingle(issuer, plain);
  const pool = await createSigningPool(settingsOf(issuer));
  try {
    await compareRates(plain, pool);
    await measureGrowth(pool);
  } finally {
    await pool.destroy();
  }
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function compareSingle(issuer: TestIssuer, plain: PlainSign): Promise<void> {
  const sign = await createCredentialSigner(issuer.keyPair, createDocumentLoader(CONTEXT_URL));
  const times = { plain: [] as number[], ours: [] as number[] };
  for (let round = 0; round < WARM_UP + SINGLE_ROUNDS; round++) {
    const credential = (): UnsignedCredential => credentialWith(subjectOf(3));
    const first = await timeOf(() => plain(credential(), CREATED.toISOString()));
    const second = await timeOf(() => sign(credential(), CREATED));
    if (round < WARM_UP) continue;
    times.plain.push(first);
    times.ours.push(second);
  }
  const [ours, theirs] = [median(times.ours), median(times.plain)];
  console.log(`one signature, 3 packages, warm, medians of ${SINGLE_ROUNDS} rounds:`);
  console.log(
    `  plain ${theirs.toFixed(2)} ms, ours ${ours.toFixed(2)} ms: ${(ours / theirs).toFixed(2)} of it`,
  );
}

async function compareRates(plain: PlainSign, pool: SigningPool): Promise<void> {
  const body = bodyWith(subjectOf(3));
  const rates = { plain: [] as number[], pool: [] as number[] };
  for (let round = 0; round <= RATE_ROUNDS; round++) {
    const first = await timeOf(() => signInTurn(plain, PLAIN_PER_ROUND));
    const second = await timeOf(() => prepareAll(pool, body, POOL_PER_ROUND));
    if (round === 0) continue;
    rates.plain.push((PLAIN_PER_ROUND / first) * 1000);
    rates.pool.push((POOL_PER_ROUND / second) * 1000);
  }
  const ratios = rates.pool.map((rate, round) => rate / (rates.plain[round] ?? NaN));
  const spread = `${Math.min(...ratios).toFixed(1)} to ${Math.max(...ratios).toFixed(1)}`;
  console.log(`signatures a second, 3 packages, medians of ${RATE_ROUNDS} rounds:`);
  console.log(
    `  plain loop ${median(rates.plain).toFixed(0)}, pool of ${availableParallelism()} threads ` +
      `${median(rates.pool).toFixed(0)}: ${median(ratios).toFixed(1)} times as many (${spread})`,
  );
}

async function signInTurn(plain: PlainSign, count: number): Promise<void> {
  for (let index = 0; index < count; index++)
    await plain(credentialWith(subjectOf(3)), CREATED.toISOString());
}

/** The pool does more for each document: it also parses, checks and serialises it. */
async function prepareAll(pool: SigningPool, body: string, count: number): Promise<void> {
  let left = count;
  const one = async (): Promise<void> => {
    while (left > 0) await pool.prepare(preparationOf(body, left--));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

/** The last entry is the service's worst case: as many large documents as it accepts at once. */
const GROWTH = [
  // The baseline: how long this thread waits for a processor anyway.
  { name: 'none: a second of waiting', atOnce: 0, packages: 0, megabytes: 0 },
  ...GROWING_DOCUMENTS.map((document) => ({ ...document, atOnce: 1 })),
  { name: '3 packages, 40 MB, 2 at once', atOnce: 2, packages: 3, megabytes: 40 },
];

async function measureGrowth(pool: SigningPool): Promise<void> {
  console.log(`growth, medians of ${GROWTH_ROUNDS} rounds; blocks and memory the most of all rounds:`);
  console.log('| document | time | longest block of the event loop | resident memory |');
  console.log('| --- | ---: | ---: | ---: |');
  for (const { atOnce, ...document } of GROWTH) {
    const body = requestBodyOf(document);
    const times: number[] = [];
    let [block, memory] = [0, 0];
    for (let round = 0; round <= GROWTH_ROUNDS; round++) {
      const preparations = Array.from({ length: atOnce }, (_, number) => preparationOf(body, number));
      const observed = await observe(() =>
        atOnce === 0 ? sleep(1000) : Promise.all(preparations.map((each) => pool.prepare(each))),
      );
      if (round === 0) continue;
      times.push(observed.milliseconds);
      [block, memory] = [Math.max(block, observed.block), Math.max(memory, observed.megabytes)];
    }
    const time = median(times).toFixed(1);
    console.log(`| ${document.name} | ${time} ms | ${block.toFixed(0)} ms | ${memory.toFixed(0)} MB |`);
  }
}

/**
 * Measures the duration, the longest time that this thread was blocked, and the peak memory of the process.
 */
async function observe(
  work: () => Promise<unknown>,
): Promise<{ milliseconds: number; block: number; megabytes: number }> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  let bytes = 0;
  const sampling = setInterval(() => (bytes = Math.max(bytes, process.memoryUsage.rss())), 10);
  delay.enable();
  const milliseconds = await timeOf(work);
  delay.disable();
  clearInterval(sampling);
  bytes = Math.max(bytes, process.memoryUsage.rss());
  return { milliseconds, block: delay.count === 0 ? 0 : delay.max / 1e6, megabytes: bytes / 2 ** 20 };
}
