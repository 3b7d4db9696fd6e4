import { Transaction } from 'ethers';
import { knows } from '../chain/broadcast';
import type { TransactionFees } from '../chain/fees';
import { receiptsOf } from './find-mint';
import type { MintTransaction, Unfinished } from '../journal/issuance';
import { judgeReceipts } from './judge-receipts';
import { holderOf, pause, putToReady, putToWaiting, raiseFloor, type Lane } from './lane-state';
import { newFlight, type Flight, type Mint, type SignedMint } from './mint';
import { persist, settleMined } from './settle-mint';

/** How many are looked up together. */
const TOGETHER = 8;
const NODE_PAUSE_MS = 1_000;

/**
 * Takes up what an earlier run of the service left: what is mined is noted, what a node has is watched, what no node has is sent again, and what was never
 * sent is sent.
 *
 * @param admit gives the lane's mint of an issuance.
 */
export async function recoverMints(lane: Lane, admit: (unfinished: Unfinished) => Mint): Promise<void> {
  // At once: what is added from now on is of this run, and somebody waits for it.
  const unfinished = (await persist(lane, () => lane.journal.unfinished())) ?? [];
  await untilChainIsRight(lane);
  const mints = unfinished.map((one) => {
    const mint = admit(one);
    mint.transactions.unshift(...one.transactions.map(readTransaction));
    return mint;
  });
  if (mints.length > 0) lane.logger.info({ mints: mints.length }, 'mints of an earlier run are taken up');
  while (mints.length > 0 && !lane.stopping.aborted) {
    const some = mints.slice(0, TOGETHER);
    try {
      const places = await Promise.all(some.map((mint) => lookUp(lane, mint)));
      raiseFloor(lane, await lane.client.getTransactionCount(lane.wallet.address, 'latest'));
      some.forEach((mint, index) => put(lane, mint, places[index]));
      mints.splice(0, some.length);
    } catch (error) {
      lane.logger.warn(
        { error, mints: mints.length },
        'mints of an earlier run wait: the node cannot be asked',
      );
      await pause(lane, NODE_PAUSE_MS);
    }
  }
}

/** A node of another chain knows nothing of the mints, which would be taken for failed. */
async function untilChainIsRight(lane: Lane): Promise<void> {
  let isWrong = false;
  while (!lane.stopping.aborted) {
    try {
      return await lane.checkChain();
    } catch (error) {
      if (!isWrong) lane.logger.warn({ error }, 'nothing is minted: the chain cannot be checked');
      isWrong = true;
      await pause(lane, NODE_PAUSE_MS);
    }
  }
}

/** What it was signed with is in it. Whether it was sent is not known. */
function readTransaction({ tokenId, hash, nonce, raw }: MintTransaction): SignedMint {
  const { gasLimit, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = Transaction.from(raw);
  const fees: TransactionFees =
    maxFeePerGas !== null && maxPriorityFeePerGas !== null
      ? { type: 2, maxFeePerGas, maxPriorityFeePerGas }
      : { type: 0, gasPrice: gasPrice ?? 0n };
  return { tokenId, hash, nonce, raw, gasLimit, fees, mayBeTaken: true };
}

/** What the node knows of a mint: the transaction that made the token, or those that wait to be mined. */
interface Place {
  minedBy: string | undefined;
  known: SignedMint[];
}

async function lookUp(lane: Lane, { issuance, transactions }: Mint): Promise<Place> {
  const hashes = transactions.map(({ hash }) => hash);
  const token = { registryAddress: lane.registryAddress, tokenId: issuance.tokenId };
  const receipts = await receiptsOf(lane.client, hashes);
  const verdict = judgeReceipts(receipts, token);
  if (verdict.state === 'mined') return { minedBy: verdict.hash, known: [] };
  const isMined = new Set(receipts.map(({ transactionHash }) => transactionHash));
  const waiting = transactions.filter(({ hash }) => !isMined.has(hash));
  const areKnown = await Promise.all(waiting.map(({ hash }) => knows(lane.client, hash)));
  return { minedBy: undefined, known: waiting.filter((_, index) => areKnown[index]) };
}

/** Before a mint is signed again it is looked for on the chain: prepare-mints.ts. */
function put(lane: Lane, mint: Mint, place: Place | undefined): void {
  if (place?.minedBy !== undefined) return settleMined(lane, mint, place.minedBy);
  const known = flightOf(mint, place?.known ?? []);
  if (known !== undefined && holderOf(lane, known.nonce) === 'nobody') {
    mint.isNoted = mint.issuance.state === 'submitted';
    lane.inFlight.set(known.nonce, known);
    lane.sleeps.watching.wake();
    return;
  }
  const last = flightOf(mint, mint.transactions.slice(-1));
  if (last !== undefined && last.nonce >= lane.floor && holderOf(lane, last.nonce) === 'nobody')
    putToReady(lane, last);
  else putToWaiting(lane, mint);
}

/** The mint under the nonce of the first of these transactions. */
function flightOf(mint: Mint, transactions: readonly SignedMint[]): Flight | undefined {
  const [first] = transactions;
  if (first === undefined) return undefined;
  const others = transactions.slice(1).filter(({ nonce }) => nonce === first.nonce);
  return newFlight(mint, [first, ...others]);
}
