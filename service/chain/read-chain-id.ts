import { isError, type JsonRpcProvider } from 'ethers';
import { ChainError, codeOf } from '../base/errors';
import { printableUrl, secretMasker, secretPartsOf } from '../base/mask-secrets';
import type { Network } from './networks';
import { nodeErrorOf } from './refusals';
import { AnswerTooLargeError } from './rpc-answer';

/**
 * Asks a node for its chain id.
 *
 * @throws ChainError RPC_UNREACHABLE (retryable) when there is no answer, or not one of a node;
 *   RPC_KEY_REFUSED (retryable), naming the setting with the key.
 */
export async function readChainId(
  client: Pick<JsonRpcProvider, 'send'>,
  url: string,
  network: Network,
): Promise<number> {
  const node = printableUrl(url);
  const chainId = await client.send('eth_chainId', []).then(Number, (cause: unknown) => {
    if (cause instanceof AnswerTooLargeError) throw cause;
    const status = isError(cause, 'SERVER_ERROR') ? cause.response?.statusCode : undefined;
    if (status === 401 || status === 403) throw keyRefused(status, url, network, cause);
    throw unreachable(
      `The node at ${node} ${status === undefined ? answerOf(cause, url) : problemOf(status)}.`,
      cause,
    );
  });
  if (Number.isSafeInteger(chainId) && chainId > 0) return chainId;
  throw unreachable(`The node at ${node} does not report its chain id.`);
}

const LONGEST_REASON = 200;

/** Describes a failure without an HTTP status. */
function answerOf(cause: unknown, url: string): string {
  const reason = nodeErrorOf(cause);
  const mask = secretMasker(secretPartsOf(url));
  if (reason !== undefined) return `answers with an error: ${mask(reason).slice(0, LONGEST_REASON)}`;
  return codeOf(cause) === 'ANSWER_MALFORMED' ? 'answers, but not like a node' : 'does not answer';
}

/** Describes a failure by its HTTP status. */
function problemOf(status: number): string {
  if (status === 402) return 'answers 402: its provider requires payment, or the quota is used up';
  if (status === 429) return 'answers 429: too many requests, or the quota is used up';
  return `answers ${status}, not like a node`;
}

function unreachable(message: string, cause?: unknown): ChainError {
  return new ChainError('RPC_UNREACHABLE', message, { cause, retryable: true });
}

/**
 * The provider does not know the key, or does not allow it to read this chain. This is retryable, because the
 * operator may be about to allow it.
 */
function keyRefused(status: number, url: string, network: Network, cause: unknown): ChainError {
  const remedy = remedyFor(url, network);
  const message = `The node at ${printableUrl(url)} refuses the key (status ${status}). ${remedy}`;
  return new ChainError('RPC_KEY_REFUSED', message, { cause, remedy, retryable: true });
}

function remedyFor(url: string, { name, rpcKey, rpcUrl }: Network): string {
  if (!url.startsWith(rpcUrl.split('{key}')[0] ?? rpcUrl)) return 'Check the key in RPC_URL.';
  if (rpcKey === undefined) return 'It required no key until now: set RPC_URL to another node.';
  return `Check ${rpcKey}, and that it is allowed to use ${name}.`;
}
