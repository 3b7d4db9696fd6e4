import { collect, type EvidenceFile, type EvidenceOptions } from '../../../service/evidence/evidence';

/** Collects the evidence of a token from the node of a setup, as `tdoc evidence` does. */
export async function collected(
  { node, registryAddress: registry }: { node: { url: string }; registryAddress: string },
  tokenId: bigint,
  options: EvidenceOptions = {},
): Promise<EvidenceFile> {
  const location = { chainId: 31337, registry, tokenId };
  return collect(location, { rpcUrls: [node.url], ...options });
}
