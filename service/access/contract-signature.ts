import { AbiCoder, concat, toQuantity, zeroPadBytes } from 'ethers';
import { UnavailableError } from '../base/errors';
import type { Time } from '../base/time';
import { connectNode } from '../chain/chain';
import { isNotImplemented } from '../chain/node-errors';
import { createChainCheck } from '../chain/reach-node';
import { callContract } from '../chain/read-state';
import type { FollowedRegistry } from '../config/followed-registries';

/** The selector of `isValidSignature(bytes32,bytes)`, and its answer for a signature of the account's own. */
const VALID = '0x1626ba7e';
/** The answer in the ABI. A longer one is none: contracts without the function may answer anything. */
const YES = zeroPadBytes(VALID, 32);

/** Wallets of several owners take 10,000 for each. It bounds the answer too: 500 kB of memory cost that. */
const MOST_GAS = toQuantity(500_000);
const ANSWER_WITHIN_MS = 5_000;
const RETRY_AFTER_MS = 10_000;

/**
 * Whether a contract account calls a signature its own (EIP-1271). Every node of its chain is asked. Those
 * that answer must say the same, and be two if there are two.
 *
 * @throws UnavailableError LOGIN_UNDECIDED
 */
export async function isSignedByContract(
  time: Time,
  { network, rpcUrls }: Pick<FollowedRegistry, 'network' | 'rpcUrls'>,
  { address: to, digest, signature }: { address: string; digest: string; signature: string },
): Promise<boolean> {
  const data = concat([VALID, AbiCoder.defaultAbiCoder().encode(['bytes32', 'bytes'], [digest, signature])]);
  const asked = rpcUrls.map(async (url) => {
    const node = connectNode(url, network, time, 'single', ANSWER_WITHIN_MS);
    try {
      await createChainCheck(node, url, network)();
      return (await callContract(node, { to, data, gas: MOST_GAS })) === YES;
    } catch (error) {
      if (isNotImplemented(error)) return false;
      throw error;
    } finally {
      node.close();
    }
  });
  const answers = (await Promise.allSettled(asked)).flatMap((one) => ('value' in one ? [one.value] : []));
  const [first] = answers;
  if (first !== undefined && answers.length >= Math.min(rpcUrls.length, 2) && !answers.includes(!first))
    return first;
  const message = 'The nodes of the chain do not say together whose signature it is. Send it again later.';
  throw new UnavailableError('LOGIN_UNDECIDED', message, { retryAfterMs: RETRY_AFTER_MS });
}
