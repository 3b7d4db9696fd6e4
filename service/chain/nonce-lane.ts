import { setTimeout as sleep } from 'node:timers/promises';
import { keccak256, type TransactionRequest, type Wallet } from 'ethers';
import { ChainError, messageOf } from '../errors';
import { notConfirmed } from './await-receipt';
import { broadcast, knows } from './broadcast';
import { classifyRefusal, type Refusal } from './classify-refusal';
import { nodeErrorOf } from './refusals';
import type { RpcClient } from './rpc-client';

/** Sends transactions of one wallet on one chain, one after the other, each with the nonce that follows. */
export interface NonceLane {
  /**
   * Signs and submits; resolves with the hash once the node has taken the transaction (it need not be mined yet).
   *
   * @param transaction everything but the nonce.
   * @throws ChainError TRANSACTION_REJECTED when the node refused it; MINT_NOT_CONFIRMED when it may have it.
   */
  submit(transaction: TransactionRequest): Promise<string>;
}

/** The last transaction that the node took. */
interface LastSent {
  nonce: number;
  hash: string;
}

const SUBMISSIONS = 5;
const RESUBMIT_DELAY_MS = 200;

/**
 * The lane is a queue: a node that mines at once rejects nonces that arrive out of order, so the next transaction is submitted
 * only when the node has acknowledged the one before. What waits for a receipt does not hold the lane.
 */
export function createNonceLane(wallet: Wallet, client: RpcClient): NonceLane {
  let tail: Promise<unknown> = Promise.resolve();
  let lastSent: LastSent | undefined;

  async function submitNext(transaction: TransactionRequest): Promise<string> {
    for (let submission = 1; ; submission++) {
      const nonce = await nextNonce(wallet.address, client, lastSent);
      const raw = await wallet.signTransaction({ ...transaction, nonce });
      try {
        const hash = await broadcastUntilAnswered(client, raw);
        lastSent = { nonce, hash };
        return hash;
      } catch (cause) {
        lastSent = undefined;
        if (cause instanceof ChainError) throw cause;
        if (!isNonceTaken(cause) || submission === SUBMISSIONS) throw submissionFailed(cause);
        await sleep(RESUBMIT_DELAY_MS);
      }
    }
  }

  return {
    submit(transaction) {
      const turn = tail.then(() => submitNext(transaction));
      tail = turn.catch(() => undefined);
      return turn;
    },
  };
}

/**
 * The node's count includes what others sent with this wallet, and is right after a restart; our memory is ahead of it when a
 * provider answers from a backend that has not heard of our last transaction. A transaction that the node does not know at all is no
 * reason to leave a gap.
 */
async function nextNonce(
  address: string,
  client: RpcClient,
  lastSent: LastSent | undefined,
): Promise<number> {
  const pending = await client.getTransactionCount(address, 'pending');
  if (lastSent === undefined || pending > lastSent.nonce) return pending;
  return (await knows(client, lastSent.hash).catch(() => false)) ? lastSent.nonce + 1 : pending;
}

/**
 * Broadcasts one signed transaction. A connection that breaks leaves open whether the node has it: the very same bytes are sent
 * again, which cannot mint twice, and a node that already has them is success. If it stays open, nothing else may be sent in
 * its place.
 */
async function broadcastUntilAnswered(client: RpcClient, raw: string): Promise<string> {
  const hash = keccak256(raw);
  let isOpen = false;
  for (let submission = 1; ; submission++) {
    const outcome = await broadcast(client, raw);
    if (outcome.state === 'taken') return hash;
    isOpen ||= outcome.state === 'open';
    if (outcome.state === 'refused' || submission === SUBMISSIONS)
      throw isOpen ? notConfirmed(hash, outcome.cause) : outcome.cause;
    await sleep(RESUBMIT_DELAY_MS);
  }
}

/** Somebody else used the nonce between our asking and our sending, or the node's count was behind. */
function isNonceTaken(thrown: unknown): boolean {
  const taken: Refusal[] = ['nonce too low', 'nonce too high', 'nonce held'];
  return taken.includes(classifyRefusal(thrown));
}

function submissionFailed(cause: unknown): ChainError {
  const message = `The transaction was not accepted: ${nodeErrorOf(cause) ?? messageOf(cause)}`;
  return new ChainError('TRANSACTION_REJECTED', message, { cause, retryable: isNonceTaken(cause) });
}
