import { getAddress, isError } from 'ethers';
import { isReverted } from '../chain/refusals';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../errors';
import { readBackwards } from '../token/read-backwards';
import { registryInterface } from '../chain/registry-topics';
import { judgeReceipts, mintTopics, type MintReceipt, type SoughtToken } from './judge-receipts';

/** Asks a node for the receipts of transactions; those that it does not have are left out. */
export async function receiptsOf(client: RpcClient, hashes: readonly string[]): Promise<MintReceipt[]> {
  const answers = await Promise.all(
    hashes.map(
      async (hash) => (await client.send('eth_getTransactionReceipt', [hash])) as MintReceipt | null,
    ),
  );
  return answers.filter((receipt) => receipt !== null);
}

/**
 * Looks on the chain whether a token was made, by whichever transaction.
 *
 * @param hashes of the transactions that are known: mostly it was one of them.
 * @returns the hash of the transaction that made it; undefined when there is no such token, or no registry.
 * @throws ChainError MINT_NOT_CONFIRMED (retryable) when the token is there and its log is not, as with a node that is behind; whatever the node answers.
 */
export async function findMint(
  client: RpcClient,
  token: SoughtToken,
  hashes: readonly string[],
): Promise<string | undefined> {
  const verdict = judgeReceipts(await receiptsOf(client, hashes), token);
  if (verdict.state === 'mined') return verdict.hash;
  if (!(await exists(client, token))) return undefined;
  const hash = await readHash(client, token);
  if (hash !== undefined) return hash;
  const message = `Token ${token.tokenId} exists, but the node does not tell which transaction made it.`;
  throw new ChainError('MINT_NOT_CONFIRMED', message, { retryable: true });
}

async function exists(client: RpcClient, { registryAddress, tokenId }: SoughtToken): Promise<boolean> {
  const data = registryInterface.encodeFunctionData('ownerOf', [`0x${tokenId}`]);
  try {
    return (await client.call({ to: registryAddress, data })) !== '0x';
  } catch (cause) {
    if (isReverted(cause)) return false;
    throw cause;
  }
}

/** From the newest block back to the registry's first: what is looked for was sent not long ago. */
async function readHash(client: RpcClient, token: SoughtToken): Promise<string | undefined> {
  const [fromBlock, toBlock] = await Promise.all([genesisOf(client, token), client.getBlockNumber()]);
  let hash: string | undefined;
  await readBackwards(
    { fromBlock, toBlock },
    (first, last) => mintsOf(client, token, first, last),
    ([found]) => {
      hash = found;
      return found !== undefined;
    },
  );
  return hash;
}

async function mintsOf(
  client: RpcClient,
  { registryAddress, tokenId }: SoughtToken,
  fromBlock: number,
  toBlock: number,
): Promise<string[]> {
  const [transfer, from, id] = mintTopics(tokenId);
  const filter = { address: getAddress(registryAddress), topics: [transfer, from, null, id] as string[] };
  const logs = await client.getLogs({ ...filter, fromBlock, toBlock });
  return logs.map(({ transactionHash }) => transactionHash);
}

/** The registry's first block. */
async function genesisOf(client: RpcClient, { registryAddress }: SoughtToken): Promise<number> {
  const data = registryInterface.encodeFunctionData('genesis');
  try {
    return Number(await client.call({ to: registryAddress, data }));
  } catch (cause) {
    if (isError(cause, 'CALL_EXCEPTION')) return 0;
    throw cause;
  }
}
