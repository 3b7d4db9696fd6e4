import { isAddress } from 'ethers';
import * as z from 'zod';
import { RequestError } from '../base/errors';

/** A token's chain, registry and id. `registry` is written as in the credential. */
export interface TokenLocation {
  chainId: number;
  registry: string;
  tokenId: bigint;
}

const statusSchema = z.object({
  type: z.literal('TransferableRecords', 'must be "TransferableRecords"'),
  tokenNetwork: z.object({ chainId: z.union([z.string().regex(/^[1-9]\d{0,14}$/), z.int().positive()]) }),
  tokenRegistry: z
    .string()
    .refine(isPlainAddress, 'must be an address: 0x and 40 hexadecimal digits, with a valid checksum'),
  tokenId: z.string().regex(/^(0x)?[0-9a-fA-F]{1,64}$/, 'must be at most 64 hexadecimal digits'),
});

/** ethers accepts other forms of addresses too, and resolves names with ENS when it uses them. */
export function isPlainAddress(text: string): boolean {
  return text.startsWith('0x') && isAddress(text);
}

/**
 * The token that a credential's `credentialStatus` names (docs/specification.md 3.3).
 *
 * @throws RequestError CREDENTIAL_STATUS_INVALID naming the field.
 */
export function tokenLocationOf(credential: Record<string, unknown>): TokenLocation {
  const { credentialStatus } = credential;
  const parsed = statusSchema.safeParse(credentialStatus);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const pointer = ['', 'credentialStatus', ...(issue?.path ?? [])].join('/');
    throw new RequestError('CREDENTIAL_STATUS_INVALID', `${pointer} ${issue?.message ?? 'is wrong'}.`);
  }
  const { tokenNetwork, tokenRegistry, tokenId } = parsed.data;
  return {
    chainId: Number(tokenNetwork.chainId),
    registry: tokenRegistry,
    tokenId: BigInt(`0x${tokenId.replace(/^0x/, '')}`),
  };
}
