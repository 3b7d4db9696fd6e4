import { createHmac, webcrypto } from 'node:crypto';
import type { StatementKey } from '../../../service/issuance/issuing-cryptosuite';

/** The fixed key that signs statements, and the function that restores the randomness. */
export interface FixedRandomness {
  statementKey: StatementKey;
  restore(): void;
}

/**
 * Makes signing deterministic, for the libraries and their callers: the HMAC key is all sevens, the key of
 * the statements is fixed, and the same data always has the same signature, unlike with ECDSA.
 */
export async function fixRandomness(): Promise<FixedRandomness> {
  const { subtle } = webcrypto;
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  const pair = await subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const publicKey = compressed(new Uint8Array(await subtle.exportKey('raw', pair.publicKey)));
  const restores = [
    replace(webcrypto, 'getRandomValues', (bytes: Uint8Array) => bytes.fill(7)),
    // The library deletes members of its argument.
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

/** A stand-in for a signature: 64 bytes that depend on the data and the key. */
function standIn(data: Uint8Array, key: string): Uint8Array {
  const half = createHmac('sha256', key).update(data).digest();
  return Uint8Array.from([...half, ...half]);
}

/** The bytes of a Multikey: the prefix of P-256, the parity of y, and x. */
function compressed(point: Uint8Array): Uint8Array {
  return Uint8Array.from([0x80, 0x24, 2 + ((point[64] ?? 0) % 2), ...point.subarray(1, 33)]);
}

/** Overrides a method of the prototype; the result removes the override. */
function replace(target: object, name: string, value: unknown): () => void {
  Object.defineProperty(target, name, { value, configurable: true });
  return () => Reflect.deleteProperty(target, name);
}
