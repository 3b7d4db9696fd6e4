import { setTimeout as sleep } from 'node:timers/promises';
import { toQuantity } from 'ethers';
import { check } from '../evidence/evidence';
import { TitleEscrow__factory } from '../typechain-types';
import { mintDirectly } from '../test/helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { collected } from '../test/helpers/evidence-files';
import { compare, type Size } from './measure';
import { whileProbed, withService, type ProbedService } from './processes';

const BLOCK = 100;
const ESCROW = TitleEscrow__factory.createInterface();

/**
 * Evidence of a token with many operations: the times to collect and to check it. First the operations fill
 * blocks, then each has a block of its own, amid transactions of others.
 */
export async function evidence(size: Size): Promise<void> {
  const operations = size.of(1_000);
  await measure(operations, (calls) => chunks(calls, BLOCK));
  await measure(operations, (calls, others) => calls.map((call) => [call, ...others]));
  await measureOthers(size);
}

const ADMIN_API_KEY = 'key-of-the-bench';
const FULL_BLOCK = 1_300;
const EVENTS = 4;
const AT_ONCE = 4;
const IDLE_MS = 3_000;

/** How long others wait for their answers while the service collects evidence from full blocks. */
async function measureOthers(size: Size): Promise<void> {
  await using local = await createLocalSetup({ program: 'anvil' });
  const [, beneficiary = '', one = ''] = local.accounts;
  const { tokenId, escrow } = await mintDirectly(local, beneficiary);
  const calls = nominations(EVENTS, { beneficiary, escrow, nominees: local.accounts.slice(2, 4) });
  await mineInBlocks(
    local,
    calls.map((call, index) => [call, ...transfers(size.of(FULL_BLOCK), one, index * size.of(FULL_BLOCK))]),
  );
  await withService(local, { ADMIN_API_KEY }, async (service) => {
    const collect = () => evidenceOf(service, tokenId);
    await compare(`GET / every 10 ms; evidence of ${EVENTS} events in full blocks`, size, {
      'nothing is collected': () => whileProbed(service, () => sleep(IDLE_MS)),
      'one is collected': () => whileProbed(service, collect),
      [`${AT_ONCE} at once`]: () =>
        whileProbed(service, () => Promise.all(Array.from({ length: AT_ONCE }, collect))),
    });
  });
}

/** Repeats the request while the service answers that it is busy. */
async function evidenceOf({ url }: ProbedService, tokenId: bigint): Promise<void> {
  for (;;) {
    const headers = { authorization: `Bearer ${ADMIN_API_KEY}` };
    const answer = await fetch(`${url}/tokens/${tokenId}/evidence`, { headers });
    const text = await answer.text();
    if (answer.status === 200) return;
    if (answer.status !== 503) throw new Error(`the evidence was answered ${answer.status}: ${text}`);
    await sleep(Number(answer.headers.get('Retry-After')) * 1_000);
  }
}

type Call = Record<'from' | 'to' | 'gas', string> & { data?: string; nonce?: string };

/** @param inBlocks distributes the operations over blocks. `others`: transactions of another account. */
async function measure(
  operations: number,
  inBlocks: (calls: Call[], others: Call[]) => Call[][],
): Promise<void> {
  await using local = await createLocalSetup({ program: 'anvil' });
  const [, beneficiary = '', one = '', other = ''] = local.accounts;
  const { tokenId, escrow } = await mintDirectly(local, beneficiary);
  // One account's transactions keep their order within a block.
  const calls = nominations(operations, { beneficiary, escrow, nominees: [one, other] });
  const mined = inBlocks(calls, transfers(BLOCK, other));
  await mineInBlocks(local, mined);
  const [file, collecting] = await timed(() => collected(local, tokenId));
  const text = JSON.stringify(file);
  const [{ report }, checking] = await timed(() => check(JSON.parse(text)));
  const unproven = report.statements.filter(({ status, isMinor }) => status !== 'proven' && !isMinor);
  if (unproven.length > 0) throw new Error(`not proven: ${unproven[0]?.says}`);
  const megabytes = (text.length / 1e6).toFixed(1);
  console.log(`${operations} operations in ${mined.length} blocks of ${mined[0]?.length} transactions:`);
  console.log(`collected in ${collecting} s, checked in ${checking} s, ${megabytes} MB`);
}

/** Operations of a token. Each nominates another one than the one before. */
function nominations(
  count: number,
  { beneficiary, escrow, nominees }: { beneficiary: string; escrow: string; nominees: readonly string[] },
): Call[] {
  return Array.from({ length: count }, (_, index) => {
    const data = ESCROW.encodeFunctionData('nominate', [nominees[index % nominees.length] ?? '', '0x01']);
    return { from: beneficiary, to: escrow, data, gas: toQuantity(150_000) };
  });
}

/** Transactions of an account with itself. Without their nonces, the node takes some of many for the same. */
function transfers(count: number, account: string, firstNonce?: number): Call[] {
  return Array.from({ length: count }, (_, index) => ({
    ...{ from: account, to: account, gas: '0x5208' },
    ...(firstNonce !== undefined && { nonce: toQuantity(firstNonce + index) }),
  }));
}

async function mineInBlocks({ client, node }: LocalSetup, blocks: readonly Call[][]): Promise<void> {
  await client.send('evm_setAutomine', [false]);
  for (const calls of blocks) {
    const method = 'eth_sendTransaction';
    const batch = calls.map((call, id) => ({ jsonrpc: '2.0', id, method, params: [call] }));
    const headers = { 'Content-Type': 'application/json' };
    const response = await fetch(node.url, { method: 'POST', headers, body: JSON.stringify(batch) });
    const refused = ((await response.json()) as { error?: object }[]).find(({ error }) => error);
    if (refused) throw new Error(JSON.stringify(refused.error));
    await client.send('evm_mine', []);
  }
  await client.send('evm_setAutomine', [true]);
}

function chunks<T>(list: readonly T[], size: number): T[][] {
  const count = Math.ceil(list.length / size);
  return Array.from({ length: count }, (_, index) => list.slice(index * size, (index + 1) * size));
}

async function timed<T>(work: () => Promise<T>): Promise<[T, string]> {
  const from = performance.now();
  const done = await work();
  return [done, ((performance.now() - from) / 1_000).toFixed(1)];
}
