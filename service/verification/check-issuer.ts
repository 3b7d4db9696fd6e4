import { didWebUrl, type DidResolution, type PublishedDidDocument } from '../did/resolve-did-web';
import { isJsonObject, type JsonObject } from '../issuance/credential';
import { couldNotTell, invalid, valid, type Check } from './answer';
import { timeOf } from './check-status';

/** A public key as its issuer publishes it. `id` is absolute. */
export interface IssuerKey {
  id: string;
  controller: string;
  publicKeyMultibase: string;
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
 * @returns `key`: the key that the proof names, if it is the issuer's and of a supported kind.
 */
export async function checkIssuer(
  credential: JsonObject,
  verificationMethod: string | undefined,
  resolve: (did: string) => Promise<DidResolution>,
  now: number,
): Promise<{ checks: Check[]; key: IssuerKey | undefined }> {
  const issuer = issuerOf(credential);
  const named = checkName(issuer);
  if (issuer === undefined || named.outcome !== 'valid') return { checks: [named], key: undefined };
  const resolution = await resolve(issuer);
  const { kind, url } = resolution;
  if (kind !== 'resolved') {
    const failed = kind === 'refused' ? invalid : couldNotTell;
    return { checks: [named, failed('DID document', `${url} ${resolution.problem}`)], key: undefined };
  }
  const resolved = valid('DID document', `found at ${url}`);
  const found = issuerKey(issuer, verificationMethod, resolution.document, now);
  if ('outcome' in found) return { checks: [named, resolved, found], key: undefined };
  const method = valid(METHOD, `${found.id} is the issuer's, and may sign credentials`);
  return { checks: [named, resolved, method], key: found };
}

function checkName(issuer: string | undefined): Check {
  if (issuer === undefined) return invalid('issuer', 'the credential names no issuer');
  if (!issuer.startsWith('did:web:')) {
    const found = `${issuer} is not a did:web identifier, and no other method is supported`;
    return couldNotTell('issuer', found);
  }
  if (didWebUrl(issuer) === undefined)
    return invalid('issuer', `${issuer} is not a well-formed did:web identifier`);
  return valid('issuer', issuer);
}

const METHOD = 'verification method';

/**
 * 35 bytes that begin with 0x8024, in base58 (https://www.w3.org/TR/cid-1.0/#Multikey). The libraries take
 * time quadratic in the length to decode a key: minutes for the longest that fits into a DID document.
 */
const P256_KEY = /^zDna[1-9A-HJ-NP-Za-km-z]{45}$/;

/** The key that the proof names, or the reason why it is not one that may have signed. */
function issuerKey(
  issuer: string,
  id: string | undefined,
  document: PublishedDidDocument,
  now: number,
): IssuerKey | Check {
  if (id === undefined) return couldNotTell(METHOD, 'the proof names none');
  if (id.split('#')[0] !== issuer)
    return invalid(METHOD, `${id} does not belong to the issuer: somebody else signed`);
  const asserting = document.assertionMethod ?? [];
  const embedded = asserting.filter((entry) => typeof entry === 'object');
  // A DID document may write its own identifiers relative to itself: `#keys-1`
  // (https://www.w3.org/TR/did-core/#relative-did-urls).
  const isTheMethod = (other: string): boolean => (other.startsWith('#') ? issuer + other : other) === id;
  const method = [...(document.verificationMethod ?? []), ...embedded].find((entry) => isTheMethod(entry.id));
  if (!method) return invalid(METHOD, `${id} is not in the issuer's DID document`);
  const { type, controller, publicKeyMultibase, revoked, expires } = method;
  if (controller !== issuer)
    return invalid(METHOD, `${id} is controlled by ${controller}, not by the issuer`);
  if (!asserting.some((entry) => isTheMethod(typeof entry === 'string' ? entry : entry.id)))
    return invalid(METHOD, `${id} may not sign credentials: it is not in assertionMethod`);
  // After either time no signature of the key is accepted, whatever its date: a thief of the key can write
  // any date (https://www.w3.org/TR/cid-1.0/#verification-methods).
  const unusable = `${id} may not be used any more:`;
  if (hasEnded(revoked, now))
    return invalid(METHOD, `${unusable} its issuer revoked it (${JSON.stringify(revoked)})`);
  if (hasEnded(expires, now)) return invalid(METHOD, `${unusable} it expired (${JSON.stringify(expires)})`);
  if (type !== 'Multikey' || typeof publicKeyMultibase !== 'string')
    return couldNotTell(METHOD, `${id} is a key of type ${type}; only Multikey is supported`);
  if (!P256_KEY.test(publicKeyMultibase))
    return couldNotTell(METHOD, `${id} is not a P-256 key, which ecdsa-sd-2023 requires`);
  return { id, controller, publicKeyMultibase };
}

/**
 * Whether an end that the issuer set has passed. A value that is not a date counts as passed: the issuer
 * meant an end, at an unknown time. No clock skew is tolerated: the end may be due to a stolen key.
 *
 * @param now epoch milliseconds.
 */
export function hasEnded(end: unknown, now: number): boolean {
  if (end === undefined || end === null) return false;
  const time = typeof end === 'string' ? timeOf(end) || Date.parse(end) : NaN;
  return Number.isNaN(time) || time <= now;
}
