import { RequestFailure } from '../requests/request';
import type { TokenQuestion } from '../requests/api';

/** The token of a credential, alone or in an answer of the service, and the id that decrypts its remarks. */
export function tokenOfFile(file: unknown): TokenQuestion {
  const { signedW3CDocument, verifiableCredential } = membersOf(file);
  const credential = membersOf(signedW3CDocument ?? verifiableCredential ?? file);
  const { tokenNetwork, tokenRegistry, tokenId } = membersOf(credential.credentialStatus);
  const { chainId } = membersOf(tokenNetwork);
  const chain = typeof chainId === 'number' ? String(chainId) : chainId;
  const isNamed = typeof chain === 'string' && typeof tokenRegistry === 'string';
  if (!isNamed || typeof tokenId !== 'string' || !/^(0x)?[0-9a-fA-F]{1,64}$/.test(tokenId)) {
    const message = 'The file names no token: its credentialStatus is missing or wrong. Choose a credential.';
    throw new RequestFailure(0, 'CREDENTIAL_STATUS_INVALID', message);
  }
  return {
    // Digits alone would be read as a decimal number.
    tokenId: tokenId.replace(/^0x/, '').padStart(64, '0'),
    registry: `${chain}:${tokenRegistry}`,
    credentialId: typeof credential.id === 'string' ? credential.id : undefined,
  };
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
