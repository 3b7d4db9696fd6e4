import { setTimeout as sleep } from 'node:timers/promises';
import { isError, keccak256, type TransactionRequest, type TransactionResponse, type Wallet } from 'ethers';
import { ChainError, messageOf } from '../errors';
import type { RpcClient } from './rpc-client';

/** Sends transactions of one wallet on one chain, one after the other, each with the nonce that follows. */
export interface NonceLane {
  /**
   * Signs and submits; resolves once the node has taken the transaction (it need not be mined yet).
   *
   * @param transaction everything but the nonce.
   */
  submit(transaction: TransactionRequest): Promise<TransactionResponse>;
}

const SUBMISSIONS = 5;
const RESUBMIT_DELAY_MS = 200;

/** ethers' codes for a refusal by the node. */
const ANSWERS = ['NONCE_EXPIRED', 'REPLACEMENT_UNDERPRICED', 'INSUFFICIENT_FUNDS', 'CALL_EXCEPTION'] as const;

/**
 * The lane is a queue: a node that mines at once rejects nonces that arrive out of order, so the next transaction is submitted
 * only when the node has acknowledged the one before. What waits for a receipt does not hold the lane.
 */
export function createNonceLane(wallet: Wallet, client: RpcClient): NonceLane {
  let last: Promise<unknown> = Promise.resolve();
  return {
    submit(transaction) {
      const turn = last.then(() => submitNext(wallet, client, transaction));
      last = turn.catch(() => undefined);
      return turn;
    },
  };
}

async function submitNext(
  wallet: Wallet,
  client: RpcClient,
  transaction: TransactionRequest,
): Promise<TransactionResponse> {
  for (let submission = 1; ; submission++) {
    // The node is asked each time: its count includes what others sent with this wallet, and is right again after a restart.
    const nonce = await client.getTransactionCount(wallet.address, 'pending');
    const raw = await wallet.signTransaction({ ...transaction, nonce });
    try {
      return await broadcast(client, raw);
    } catch (cause) {
      if (!isNonceTaken(cause) || submission === SUBMISSIONS) throw submissionFailed(cause);
      await sleep(RESUBMIT_DELAY_MS);
    }
  }
}

/**
 * Broadcasts one signed transaction. A connection that breaks leaves open whether the node has it: the very same bytes are sent
 * again, which cannot mint twice, and a node that already has them is success.
 */
async function broadcast(client: RpcClient, raw: string): Promise<TransactionResponse> {
  const hash = keccak256(raw);
  for (let submission = 1; ; submission++) {
    try {
      return await client.broadcastTransaction(raw);
    } catch (cause) {
      const known = await client.getTransaction(hash).catch(() => null);
      if (known) return known;
      if (isAnswer(cause) || submission === SUBMISSIONS) throw cause;
      await sleep(RESUBMIT_DELAY_MS);
    }
  }
}

/** Whether the node itself refused, as opposed to a connection that failed. ethers puts the node's own error in `error` or `info.error`. */
function isAnswer(thrown: unknown): boolean {
  return ANSWERS.some((code) => isError(thrown, code)) || nodeErrorOf(thrown) !== undefined;
}

/** Somebody else used the nonce between our asking and our sending, or the node's count was behind. */
function isNonceTaken(thrown: unknown): boolean {
  if (isError(thrown, 'NONCE_EXPIRED') || isError(thrown, 'REPLACEMENT_UNDERPRICED')) return true;
  return /nonce too (low|high)/i.test(nodeErrorOf(thrown) ?? '');
}

function nodeErrorOf(thrown: unknown): string | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  const { error, info } = thrown as { error?: unknown; info?: { error?: unknown } };
  const nodeError = error ?? info?.error;
  if (typeof nodeError !== 'object' || nodeError === null || !('message' in nodeError)) return undefined;
  return String(nodeError.message);
}

function submissionFailed(cause: unknown): ChainError {
  const message = `The transaction was not accepted: ${nodeErrorOf(cause) ?? messageOf(cause)}`;
  return new ChainError('TRANSACTION_REJECTED', message, {
    cause,
    retryable: !isAnswer(cause) || isNonceTaken(cause),
  });
}
