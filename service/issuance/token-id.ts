import { createHash } from 'node:crypto';

/**
 * The token id of a credential: lower-case hex SHA-256 of the UTF-8 bytes of its `id`, 64 characters
 * (docs/specification.md 2.6).
 */
export function tokenIdOf(credentialId: string): string {
  return createHash('sha256').update(credentialId, 'utf8').digest('hex');
}
