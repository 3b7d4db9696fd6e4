import { didWebUrl } from '../did/did-web-url';
import type { DidResolution, PublishedDidDocument } from '../did/resolve-did-web';
import { isJsonObject, type JsonObject } from '../issuance/credential';
import type { Check, Outcome } from './answer';
import { hasEnded } from './has-ended';
import type { IssuerKey } from './verify-signature';

type PublishedMethod = NonNullable<PublishedDidDocument['verificationMethod']>[number];

/**
 * Findings about an issuer. `key`: the key that the proof names, if it is the issuer's and of a supported
 * kind.
 */
export interface FoundIssuer {
  checks: Check[];
  key: IssuerKey | undefined;
}

/**
 * The issuer's identifier: the value of `issuer`, or its `id`
 * (https://www.w3.org/TR/vc-data-model-2.0/#issuer).
 */
export function issuerOf({ issuer }: JsonObject): string | undefined {
  const id = isJsonObject(issuer) ? issuer.id : issuer;
  return typeof id === 'string' ? id : undefined;
}

/**
 * Checks who issued the credential: the DID document of its issuer must publish the proof's key for this
 * purpose (https://www.w3.org/TR/vc-data-integrity/#retrieve-verification-method).
 *
 * @param now epoch milliseconds.
 */
export async function checkIssuer(
  credential: JsonObject,
  verificationMethod: string | undefined,
  resolve: (did: string) => Promise<DidResolution>,
  now: number,
): Promise<FoundIssuer> {
  const issuer = issuerOf(credential);
  const named = checkName(issuer);
  if (issuer === undefined || named.outcome !== 'valid') return { checks: [named], key: undefined };
  const resolution = await resolve(issuer);
  const resolved = checkResolution(resolution);
  if (resolution.kind !== 'resolved') return { checks: [named, resolved], key: undefined };
  const method = checkMethod(issuer, verificationMethod, resolution.document, now);
  return { checks: [named, resolved, ...method.checks], key: method.key };
}

function checkName(issuer: string | undefined): Check {
  const result = (outcome: Outcome, found: string): Check => ({ check: 'issuer', outcome, found });
  if (issuer === undefined) return result('invalid', 'the credential names no issuer');
  if (!issuer.startsWith('did:web:'))
    return result(
      'could not tell',
      `${issuer} is not a did:web identifier, and no other method is supported`,
    );
  if (didWebUrl(issuer) === undefined)
    return result('invalid', `${issuer} is not a well-formed did:web identifier`);
  return result('valid', issuer);
}

function checkResolution(resolution: DidResolution): Check {
  const check = 'DID document';
  const { kind, url } = resolution;
  if (kind === 'resolved') return { check, outcome: 'valid', found: `found at ${url}` };
  const outcome = kind === 'refused' ? 'invalid' : 'could not tell';
  return { check, outcome, found: `${url} ${resolution.problem}` };
}

function checkMethod(
  issuer: string,
  id: string | undefined,
  document: PublishedDidDocument,
  now: number,
): FoundIssuer {
  if (id === undefined) return noKey('could not tell', 'the proof names none');
  if (id.split('#')[0] !== issuer)
    return noKey('invalid', `${id} does not belong to the issuer: somebody else signed`);
  const asserting = document.assertionMethod ?? [];
  const embedded = asserting.filter((entry) => typeof entry === 'object');
  const isTheMethod = (other: string): boolean => absolute(issuer, other) === id;
  const method = [...(document.verificationMethod ?? []), ...embedded].find((entry) => isTheMethod(entry.id));
  if (!method) return noKey('invalid', `${id} is not in the issuer's DID document`);
  if (method.controller !== issuer)
    return noKey('invalid', `${id} is controlled by ${method.controller}, not by the issuer`);
  if (!asserting.some((entry) => isTheMethod(typeof entry === 'string' ? entry : entry.id)))
    return noKey('invalid', `${id} may not sign credentials: it is not in assertionMethod`);
  const ended = endOf(method, now);
  if (ended !== undefined) return noKey('invalid', `${id} may not be used any more: ${ended}`);
  return usableKey(issuer, id, method);
}

/**
 * 35 bytes that begin with 0x8024, in base58 (https://www.w3.org/TR/cid-1.0/#Multikey). The libraries take
 * time quadratic in the length to decode a key: minutes for the longest that fits into a DID document.
 */
const P256_KEY = /^zDna[1-9A-HJ-NP-Za-km-z]{45}$/;

function usableKey(issuer: string, id: string, { type, publicKeyMultibase }: PublishedMethod): FoundIssuer {
  if (type !== 'Multikey' || typeof publicKeyMultibase !== 'string')
    return noKey('could not tell', `${id} is a key of type ${type}; only Multikey is supported`);
  if (!P256_KEY.test(publicKeyMultibase))
    return noKey('could not tell', `${id} is not a P-256 key, which ecdsa-sd-2023 requires`);
  const found = `${id} is the issuer's, and may sign credentials`;
  return {
    checks: [{ check: 'verification method', outcome: 'valid', found }],
    key: { id, controller: issuer, publicKeyMultibase },
  };
}

function noKey(outcome: Outcome, found: string): FoundIssuer {
  return { checks: [{ check: 'verification method', outcome, found }], key: undefined };
}

/**
 * After either time no signature of the key is accepted, whatever its date: a thief of the key can write any
 * date (https://www.w3.org/TR/cid-1.0/#verification-methods).
 */
function endOf(
  { revoked, expires }: { revoked?: unknown; expires?: unknown },
  now: number,
): string | undefined {
  if (hasEnded(revoked, now)) return `its issuer revoked it (${JSON.stringify(revoked)})`;
  return hasEnded(expires, now) ? `it expired (${JSON.stringify(expires)})` : undefined;
}

/**
 * A DID document may write its own identifiers relative to itself: `#keys-1`
 * (https://www.w3.org/TR/did-core/#relative-did-urls).
 */
function absolute(did: string, id: string): string {
  return id.startsWith('#') ? did + id : id;
}
