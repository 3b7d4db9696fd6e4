import { RequestFailure } from '../requests/request';
import type { TokenQuestion } from '../requests/api';

/** The token that a credential, or an answer of POST /create, names, and the id that decrypts its remarks. */
export function tokenOfFile(file: unknown): TokenQuestion {
  const credential = membersOf(membersOf(file).signedW3CDocument ?? file);
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
