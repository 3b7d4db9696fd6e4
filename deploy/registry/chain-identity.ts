import { createHash } from 'node:crypto';

/** Sends one JSON-RPC request. */
export type RpcRequest = (method: string, params?: unknown[]) => Promise<unknown>;

/**
 * Identifies the chain of a node. Local nodes share one chain id, and every start or reset begins another
 * chain: `fingerprint` tells these chains apart.
 */
export interface ChainIdentity {
  readonly chainId: number;
  readonly fingerprint: string;
}

/** Asks the node for its chain id, the hash of block 0 and, from Hardhat nodes, the instance's id. */
export async function readChainIdentity(request: RpcRequest): Promise<ChainIdentity> {
  const chainId = Number(await request('eth_chainId'));
  const genesis = (await request('eth_getBlockByNumber', ['0x0', false])) as { hash?: string } | null;
  const parts = [chainId, genesis?.hash ?? '', await instanceIdOf(request)];
  const fingerprint = createHash('sha256').update(parts.join(' ')).digest('hex').slice(0, 12);
  return { chainId, fingerprint };
}

/** `hardhat_reset` keeps block 0 but changes the instance's id. Other nodes do not support the method. */
async function instanceIdOf(request: RpcRequest): Promise<string> {
  const metadata = await request('hardhat_metadata').catch(() => undefined);
  return (metadata as { instanceId?: string } | undefined)?.instanceId ?? '';
}
