import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { BILL_OF_LADING } from '../devnet/bill-of-lading';
import { create } from '../test/helpers/processes/create-call';
import { startServiceProcess, type ServiceProcess } from '../test/helpers/processes/service-process';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { ALL_THREADS } from './all-threads';
import { createBareMinter, type BareMinter } from './bare-minter';
import { median } from './median';
import { presign, sendMints } from './presigned-mints';
import { openSigning, type SigningAlone } from './signing-limit';

const AT_ONCE = 20;
const EACH_ROUND = 100;
const ROUNDS = 5;
/** Short, so that the node's speed is the limit: a block has room for some sixty mints. */
const INTERVAL_MS = 50;
/** Time in which the service delivers the events of the last mints, also those of the comparison. */
const REST_MS = 1_000;
const AIM = 0.8;

type Rates = Record<'creates' | 'mints' | 'signatures', number[]>;

/**
 * Measures documents a second over HTTP with twenty concurrent requests. The comparisons are the same node
 * that only takes mints signed beforehand, and signing alone. They take turns. Each mining mode has its own
 * node: a Hardhat node grows with every mint and slows down.
 */
export async function run(): Promise<void> {
  await onNode('automine, mints sent one after the other', 1, async () => undefined);
  await onNode(`a block every ${INTERVAL_MS} ms, mints sent ${AT_ONCE} at once`, AT_ONCE, async (local) => {
    await local.client.send('evm_setAutomine', [false]);
    await local.client.send('evm_setIntervalMining', [INTERVAL_MS]);
  });
}

async function onNode(
  name: string,
  mintsAtOnce: number,
  setMining: (local: LocalSetup) => Promise<void>,
): Promise<void> {
  const local = await createLocalSetup();
  try {
    const minter = await createBareMinter(local.client, local.registryAddress);
    await setMining(local);
    report(name, await measure(local, minter, mintsAtOnce));
  } finally {
    await local.stop();
  }
}

async function measure(local: LocalSetup, minter: BareMinter, mintsAtOnce: number): Promise<Rates> {
  const rates: Rates = { creates: [], mints: [], signatures: [] };
  const owner = await local.account(1);
  const service = await startServiceProcess({ ...local.settings, ...ALL_THREADS });
  const signing = await openSigning(local.settings);
  try {
    // The first round compiles code and processes contexts; it does not count.
    for (let round = 0; round <= ROUNDS; round++) {
      const mints = await presign(minter, EACH_ROUND);
      const measured = await takeTurns(round, {
        creates: () => createAll(service, owner),
        mints: () => sendMints(local.node.url, minter, mints, mintsAtOnce),
        signatures: () => signAll(signing, owner),
      });
      if (round > 0) for (const kind of KINDS) rates[kind].push(measured[kind]);
    }
    return rates;
  } finally {
    await signing.close();
    await service.end('SIGTERM');
  }
}

const KINDS = ['creates', 'mints', 'signatures'] as const;

/** Rates of one round. Each round starts with another kind, so that none always follows the same one. */
async function takeTurns(
  round: number,
  work: Record<keyof Rates, () => Promise<void>>,
): Promise<Record<keyof Rates, number>> {
  const rates = { creates: NaN, mints: NaN, signatures: NaN };
  for (let turn = 0; turn < KINDS.length; turn++) {
    const kind = KINDS[(round + turn) % KINDS.length] ?? 'creates';
    const start = performance.now();
    await work[kind]();
    rates[kind] = (EACH_ROUND / (performance.now() - start)) * 1000;
    await sleep(REST_MS);
  }
  return rates;
}

async function createAll({ url }: ServiceProcess, owner: string): Promise<void> {
  const body = bodyFor(owner);
  await manyAtOnce(async () => {
    const { status } = await create(url, body);
    if (status !== 200) throw new Error(`POST answered ${status}`);
  });
}

function bodyFor(owner: string): string {
  return JSON.stringify({ credentialSubject: BILL_OF_LADING, owner, holder: owner });
}

async function signAll(signing: SigningAlone, owner: string): Promise<void> {
  const body = bodyFor(owner);
  await manyAtOnce(() => signing.sign(body));
}

async function manyAtOnce(work: () => Promise<void>): Promise<void> {
  let left = EACH_ROUND;
  const workOnes = async (): Promise<void> => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, workOnes));
}

function report(name: string, { creates, mints, signatures }: Rates): void {
  const ofMints = creates.map((rate, round) => rate / (mints[round] ?? NaN));
  const ofLower = creates.map(
    (rate, round) => rate / Math.min(mints[round] ?? NaN, signatures[round] ?? NaN),
  );
  console.log(`${name}; ${EACH_ROUND} of each, ${ROUNDS} rounds, medians:`);
  console.log(`  documents created, ${AT_ONCE} at once: ${median(creates).toFixed(0)}/s`);
  console.log(`  mints that the node takes:       ${median(mints).toFixed(0)}/s, ${reached(ofMints)} of it`);
  console.log(`  signing alone:                   ${median(signatures).toFixed(0)}/s`);
  console.log(`  the lower of the two:            ${reached(ofLower)} of it (aim: ${AIM})`);
  const both = mints.map((rate, round) => rateOfBoth(rate, signatures[round] ?? NaN));
  const ofBoth = creates.map((rate, round) => rate / (both[round] ?? NaN));
  console.log(
    `  both, on the same processors:    at most ${median(both).toFixed(0)}/s, ${reached(ofBoth)} of it`,
  );
}

/**
 * The possible rate if nothing but the node and signing cost time: the node uses one processor, signing uses
 * all.
 */
function rateOfBoth(mints: number, signatures: number): number {
  const processors = availableParallelism();
  return processors / (1 / mints + processors / signatures);
}

function reached(ratios: readonly number[]): string {
  const [least, most] = [Math.min(...ratios).toFixed(2), Math.max(...ratios).toFixed(2)];
  return `creating reaches ${median(ratios).toFixed(2)} (${least} to ${most})`;
}
