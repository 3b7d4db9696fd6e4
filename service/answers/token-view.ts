import { decryptRemark } from '../issuance/remarks';
import { tokenIdHexOf } from '../registry/token-id-forms';
import { possibleOperations } from '../token/possible-operations';
import type { TokenHistory } from '../token/read-token-history';
import type { TokenLocation } from '../token/token-location';
import type { RemarkView, TokenView } from './views';

/** @param credentialId decrypts the remarks. Undefined: unknown. */
export function tokenView(
  { chainId, registry, tokenId }: TokenLocation,
  { state, endorsements, accountsWithCode, isWhole }: TokenHistory,
  { network, credentialId }: { network: string; credentialId: string | undefined },
): TokenView {
  return {
    network,
    chainId,
    registry,
    tokenId: tokenId.toString(),
    tokenIdHex: tokenIdHexOf(tokenId),
    isWhole,
    endorsements: endorsements.map(({ timestamp, remark, ...rest }) => ({
      time: timeOf(timestamp),
      ...rest,
      ...remarkView(remark, credentialId),
    })),
    accountsWithCode,
    state,
    next: possibleOperations(state),
  };
}

/** Formats a block's time, given in seconds, as ISO 8601 in UTC. */
export function timeOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().replace('.000Z', 'Z');
}

export function remarkView(remark: string, credentialId: string | undefined): RemarkView {
  const decrypted = decryptRemark(remark, credentialId);
  const needsCredential = credentialId === undefined && decrypted.kind === 'undecipherable';
  return needsCredential ? { remark } : { remark, decrypted };
}
