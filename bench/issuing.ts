import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toQuantity } from 'ethers';
import type { LocalSetup } from '../test/helpers/chain/local-setup';
import { startRpcProxy } from '../test/helpers/chain/rpc-proxy';
import { createSoftHsm, hasSoftHsm, moveKeys } from '../test/helpers/keys/soft-hsm';
import { compare, percentile, rateOf, timeOf, type Figures, type Size } from './measure';
import { gasOfMint, presign, sendMints } from './mints';
import { onNewChain, withReceiver, withService, type CountingReceiver } from './processes';

const EVENTS_OF_A_MINT = 5;
const DOCUMENTS = 500;
const AT_ONCE = 20;
/** The first documents of a service compile code and process contexts. */
const WARM_UP = 60;

/** The cost of a document that is mined at once, with the five events of its mint. */
export function cost(size: Size): Promise<void> {
  const count = size.of(DOCUMENTS);
  return withReceiver((receiver) =>
    compare(`${count} documents, ${AT_ONCE} at once, each mined at once on a new chain`, size, {
      'presigned mints': () =>
        onNewChain(async (local) => ({
          'a second': await sendMints(local, await presign(local, count), 1),
        })),
      'documents, with a webhook': () =>
        onNewChain((local) => documents(local, count, AT_ONCE, { WEBHOOK_URL: receiver.url }, receiver)),
      'documents, no webhook': () => onNewChain((local) => documents(local, count, AT_ONCE)),
      ...(hasSoftHsm && {
        'documents, no webhook, keys in SoftHSM2': () =>
          onNewChain(async (local) => {
            const hsm = createSoftHsm();
            const { settings } = moveKeys(hsm, local);
            return documents(local, count, AT_ONCE, settings);
          }),
      }),
      // A proxy counts, and takes time itself: no rate.
      'documents, counting requests': () =>
        onNewChain(async (local) => {
          const proxy = await startRpcProxy(local.node.url);
          const settings = { WEBHOOK_URL: receiver.url, RPC_URL: proxy.url };
          const counted = (): number[] => [proxy.sizes.length, proxy.calls.length];
          let before = counted();
          await documents(local, count, AT_ONCE, settings, receiver, () => (before = counted()));
          const [requests = NaN, calls = NaN] = counted().map((all, kind) => all - (before[kind] ?? NaN));
          await proxy.close();
          return { 'requests to the node, each': requests / count, 'calls to the node, each': calls / count };
        }),
    }),
  );
}

const BLOCK_EVERY_MS = 2_000;
const BLOCK_GAS = 30_000_000;
/** In blocks full of mints. */
const CALLERS = 2.5;
const MINTS = 12;

/** How full a chain's blocks of 30M gas are kept with a block every two seconds. */
export async function fullBlocks(size: Size): Promise<void> {
  const inBlock = BLOCK_GAS / Number(await onNewChain(gasOfMint));
  const callers = Math.ceil(CALLERS * inBlock);
  const count = Math.max(size.of(Math.ceil(MINTS * inBlock)), 2 * callers);
  const onBlocks =
    (prepare: (local: LocalSetup) => Promise<() => Promise<Figures>>) => (): Promise<Figures> =>
      onNewChain(async (local) => {
        const { client } = local;
        const issue = await prepare(local);
        const from = await client.getBlockNumber();
        await client.send('evm_setBlockGasLimit', [toQuantity(BLOCK_GAS)]);
        await client.send('evm_setAutomine', [false]);
        await client.send('evm_setIntervalMining', [BLOCK_EVERY_MS]);
        return { ...(await issue()), ...(await fillingOf(local, from + 1)) };
      });
  return withReceiver((receiver) =>
    compare(`${count} mints, a block of 30M gas every ${BLOCK_EVERY_MS / 1_000} s`, size, {
      'presigned mints': onBlocks(async (local) => {
        const mints = await presign(local, count);
        return async () => ({ 'a second': await sendMints(local, mints, AT_ONCE) });
      }),
      [`documents, ${callers} at once`]: onBlocks(async (local) => () => {
        return documents(local, count, callers, { WEBHOOK_URL: receiver.url }, receiver);
      }),
    }),
  );
}

/** The gas of a mint, and the median share that a block with mints used, without the first and the last. */
async function fillingOf({ client }: LocalSetup, from: number): Promise<Figures> {
  const head = await client.getBlockNumber();
  const shares: number[] = [];
  const ofMints: number[] = [];
  for (let number = from; number <= head; number++) {
    const block = await client.getBlock(number);
    if (!block || block.gasUsed === 0n) continue;
    shares.push(Number(block.gasUsed) / Number(block.gasLimit));
    ofMints.push(Number(block.gasUsed) / block.transactions.length);
  }
  return {
    'share of the gas of a block': percentile(shares.slice(1, -1), 0.5),
    'gas of a mint': percentile(ofMints, 0.5),
  };
}

/** Issues documents with a service of its own, and waits for their events. */
async function documents(
  local: LocalSetup,
  count: number,
  atOnce: number,
  settings: Record<string, string> = {},
  receiver?: CountingReceiver,
  onWarm: () => unknown = () => undefined,
): Promise<Figures> {
  // Not in memory, where the tests have their databases: what is written is counted.
  const DATA_DIR = mkdtempSync(join(tmpdir(), 'tds-bench-'));
  try {
    return await withService(local, { ...settings, DATA_DIR }, async ({ cost: spent, issue }) => {
      await receiver?.reset();
      await rateOf(WARM_UP, atOnce, issue);
      await receiver?.received(WARM_UP * EVENTS_OF_A_MINT);
      await receiver?.reset();
      onWarm();
      const before = await spent();
      const rate = await rateOf(count, atOnce, issue);
      const lagMs = await timeOf(async () => receiver?.received(count * EVENTS_OF_A_MINT));
      const after = await spent();
      return {
        'a second': rate,
        'processor of the service, ms each': (after.cpuMs - before.cpuMs) / count,
        'commits, each': (after.commits - before.commits) / count,
        'statements, each': (after.statements - before.statements) / count,
        'KiB written, each': (after.writtenKib - before.writtenKib) / count,
        ...(receiver && { 'from the last answer to the last event, ms': lagMs }),
      };
    });
  } finally {
    rmSync(DATA_DIR, { recursive: true });
  }
}
