import { toBeHex } from 'ethers';
import { readBackwards, type LogRange } from '../chain/read-backwards';
import { logsOf, type ChainLog } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ESCROW_TOPICS, REGISTRY_AND_FACTORY_TOPICS } from '../registry/abi';
import { genuineOf, type DecodedLog } from '../registry/decode-log';
import type { RegistryContracts } from '../registry/registry-contracts';
import { titleEscrowAddress } from '../registry/title-escrow-address';

/** The genuine logs of one token, in chain order. */
export interface TokenLogs {
  logs: DecodedLog[];
  /** Whether the logs begin with the mint, which is a token's first log. */
  isWhole: boolean;
}

/**
 * Reads all logs of one token. Nodes index logs by address and topic, so the whole range is requested at once
 * and split only if that is refused. It is read backwards from the newest block: the search ends at the mint,
 * and most tokens that are looked up are young.
 *
 * @throws any error of the node for a single block, and when it cannot be reached.
 */
export async function readTokenLogs(
  client: RpcClient,
  contracts: RegistryContracts,
  tokenId: bigint,
  range: LogRange,
): Promise<TokenLogs> {
  const logs: DecodedLog[] = [];
  const isWhole = await readBackwards(
    range,
    (first, last) => logsOfRange(client, contracts, tokenId, first, last),
    (read) => {
      logs.unshift(...genuineOf(read, contracts).filter((log) => log.tokenId === tokenId));
      return logs.some(({ type }) => type === 'minted');
    },
  );
  return { logs, isWhole };
}

/**
 * Selects logs by the title escrow's address, and by the token's id, which is the last topic of the
 * registry's and the factory's events.
 */
async function logsOfRange(
  client: RpcClient,
  contracts: RegistryContracts,
  tokenId: bigint,
  fromBlock: number,
  toBlock: number,
): Promise<ChainLog[]> {
  const blocks = { fromBlock, toBlock };
  const escrow = titleEscrowAddress(contracts, tokenId);
  const [own, escrows] = await Promise.all([
    logsOf(client, {
      ...blocks,
      address: [contracts.registry, contracts.titleEscrowFactory],
      topics: REGISTRY_AND_FACTORY_TOPICS,
      fourthTopic: toBeHex(tokenId, 32),
    }),
    logsOf(client, { ...blocks, address: [escrow], topics: ESCROW_TOPICS }),
  ]);
  return [...own, ...escrows];
}
