import { createHmac, webcrypto } from 'node:crypto';
import type { StatementKey } from '../../../service/issuance/statement-key';

/** The key that statements are signed with while nothing is random. */
export interface FixedRandomness {
  statementKey: StatementKey;
  restore(): void;
}

/**
 * Takes chance out of signing, for the libraries and for what calls them: the HMAC key is all sevens, the
 * statements' key always the same, and the same data has always the same signature, which ECDSA's have not.
 */
export async function fixRandomness(): Promise<FixedRandomness> {
  const { subtle } = webcrypto;
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  const pair = await subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const publicKey = compressed(new Uint8Array(await subtle.exportKey('raw', pair.publicKey)));
  const restores = [
    replace(webcrypto, 'getRandomValues', (bytes: Uint8Array) => bytes.fill(7)),
    // The library takes members away from what it is given.
    replace(subtle, 'generateKey', async () => ({
      publicKey: pair.publicKey,
      privateKey: pair.privateKey,
    })),
    replace(subtle, 'sign', async (_: unknown, key: unknown, data: Uint8Array) =>
      standIn(data, key === pair.privateKey ? 'statements' : 'issuer'),
    ),
  ];
  return {
    statementKey: { publicKey, sign: (data) => standIn(data, 'statements') },
    restore: () => restores.forEach((restore) => restore()),
  };
}

/** For a signature: 64 bytes that depend on the data and on whose key it is. */
function standIn(data: Uint8Array, key: string): Uint8Array {
  const half = createHmac('sha256', key).update(data).digest();
  return Uint8Array.from([...half, ...half]);
}

/** A Multikey's bytes: P-256, whether y is odd, and x. */
function compressed(point: Uint8Array): Uint8Array {
  return Uint8Array.from([0x80, 0x24, 2 + ((point[64] ?? 0) % 2), ...point.subarray(1, 33)]);
}

/** The original is the prototype's. */
function replace(target: object, name: string, value: unknown): () => void {
  Object.defineProperty(target, name, { value, configurable: true });
  return () => Reflect.deleteProperty(target, name);
}
