import { networkOfChain } from '../../../service/chain/networks';
import { createRpcClient } from '../../../service/chain/rpc-client';
import { collectEvidence, type CollectionOptions } from '../../../service/evidence/collect-evidence';
import type { EvidenceFile } from '../../../service/evidence/evidence-file';
import { createRegistryFinder } from '../../../service/registry/registry-contracts';

/** Collects the evidence of a token from the node of a setup, as `tdoc evidence` does. */
export async function collected(
  { node, registryAddress }: { node: { url: string }; registryAddress: string },
  tokenId: bigint,
  options: CollectionOptions = {},
): Promise<EvidenceFile> {
  const network = networkOfChain(31337);
  const client = createRpcClient(node.url, network);
  const bulkClient = createRpcClient(node.url, network, 'bulk');
  try {
    const registry = await createRegistryFinder(client, registryAddress)();
    const clock = { now: () => Date.parse('2026-01-02T03:04:05Z') };
    const sources = { client, bulkClient, network, registry, clock, software: 'a test' };
    return await collectEvidence(sources, tokenId, options);
  } finally {
    client.destroy();
    bulkClient.destroy();
  }
}
