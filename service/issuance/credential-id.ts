/**
 * The `id` of a credential: `urn:uuid:` and a UUID version 7.
 *
 * Credentials of this kind have ids of the form `urn:bnid:_:<uuid>`. ecdsa-sd-2023 cannot sign that:
 * `urn:bnid:` is the prefix with which the cryptosuite marks blank nodes while it skolemises
 * (https://www.w3.org/TR/vc-di-ecdsa/#skolemizecompactjsonld), so such an id is taken for the blank node
 * `_:_:<uuid>`, which is no legal label, and if it were, the signature would not cover it.
 * docs/decisions/0002-credential-id.md tells more.
 */
export function credentialIdOf(uuid: string): string {
  return `urn:uuid:${uuid}`;
}
