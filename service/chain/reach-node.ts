import { isError } from 'ethers';
import { ChainError, ConfigurationError, ServiceError } from '../base/errors';
import { printableUrl, secretMasker, secretPartsOf } from '../base/mask-secrets';
import { NETWORKS, type Network } from './networks';
import type { Rpc } from './node';
import {
  AnswerTooLargeError,
  isKeyRefused,
  isRangeRefused,
  isThrottled,
  nodeErrorOf,
  problemOf,
} from './node-errors';

/**
 * Creates a check of the node's chain id. A correct answer is remembered.
 *
 * @throws ConfigurationError CHAIN_ID_MISMATCH when the node belongs to another chain than NET: signing or
 *   reading there would put documents on the wrong chain. Also every error of readChainId.
 */
export function createChainCheck(
  node: Pick<Rpc, 'send'>,
  url: string,
  network: Network,
): () => Promise<void> {
  let checked = false;
  return async () => {
    if (checked) return;
    const chainId = await readChainId(node, url, network);
    if (chainId !== network.chainId) throw wrongChain(chainId, url, network);
    checked = true;
  };
}

/** The error for a node of another chain than NET. */
export function wrongChain(chainId: number, url: string, network: Network): ConfigurationError {
  const actual = NETWORKS.find((known) => known.chainId === chainId);
  const message =
    `NET is ${network.name} (chain id ${network.chainId}), but the node at ${printableUrl(url)} is of ` +
    `${actual ? `${actual.name} (chain id ${chainId})` : `chain id ${chainId}`}.`;
  const remedy = `Set NET=${chainId}, or point RPC_URL at a node of ${network.name}.`;
  return new ConfigurationError('CHAIN_ID_MISMATCH', `${message} ${remedy}`, { remedy });
}

/**
 * Asks a node for its chain id.
 *
 * @throws ChainError RPC_UNREACHABLE (retryable) when there is no answer, or not one of a node;
 *   RPC_KEY_REFUSED (retryable), naming the setting with the key.
 */
export async function readChainId(node: Pick<Rpc, 'send'>, url: string, network: Network): Promise<number> {
  const name = printableUrl(url);
  const chainId = await node.send('eth_chainId', []).then(Number, (cause: unknown) => {
    if (cause instanceof AnswerTooLargeError) throw cause;
    const mask = secretMasker(secretPartsOf(url));
    if (isKeyRefused(cause)) throw keyRefused(mask(problemOf(cause)), url, network, cause);
    throw unreachable(`The node at ${name} ${mask(problemOf(cause))}.`, cause);
  });
  if (Number.isSafeInteger(chainId) && chainId > 0) return chainId;
  throw unreachable(`The node at ${name} does not report its chain id.`);
}

function unreachable(message: string, cause?: unknown): ChainError {
  return new ChainError('RPC_UNREACHABLE', message, { cause });
}

/**
 * The provider does not know the key, or does not allow it to read this chain. This is retryable, because the
 * operator may be about to allow it.
 */
function keyRefused(problem: string, url: string, network: Network, cause: unknown): ChainError {
  const remedy = remedyFor(url, network);
  const message = `The node at ${printableUrl(url)} ${problem}. ${remedy}`;
  return new ChainError('RPC_KEY_REFUSED', message, { cause, remedy });
}

function remedyFor(url: string, { name, rpcKey, rpcUrl }: Network): string {
  if (!url.startsWith(rpcUrl.split('{key}')[0] ?? rpcUrl)) return 'Check the key in RPC_URL.';
  if (rpcKey === undefined) return 'It required no key until now: set RPC_URL to another node.';
  return `Check ${rpcKey}, and that it is allowed to use ${name}.`;
}

/** The longest time of an answer. Queries for logs may take longer while the node answers others. */
export const LATE_MS = 3_000;
export const NO_ANSWER = `no answer within ${LATE_MS / 1_000} s`;

/** Whether a node could not be reached, as opposed to an answer that is a refusal. */
export function isFailure(error: unknown): boolean {
  if (isRangeRefused(error) || isThrottled(error)) return false;
  if (isError(error, 'SERVER_ERROR') || isError(error, 'TIMEOUT')) return true;
  if (error instanceof ServiceError || nodeErrorOf(error) !== undefined) return false;
  return !isError(error, 'CALL_EXCEPTION') && !isError(error, 'UNSUPPORTED_OPERATION');
}

/** Why a node is away. */
export function reasonOf(error: unknown): string {
  const isLate = isError(error, 'TIMEOUT') || (error instanceof Error && error.message === NO_ANSWER);
  return isLate ? NO_ANSWER : `it ${problemOf(error)}`;
}
