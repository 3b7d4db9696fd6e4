/**
 * The `id` of a credential: `urn:uuid:` and a UUID version 7.
 *
 * Credentials of this kind have ids of the form `urn:bnid:_:<uuid>`. ecdsa-sd-2023 cannot sign such an id:
 * the cryptosuite marks blank nodes with the prefix `urn:bnid:` while it skolemises
 * (https://www.w3.org/TR/vc-di-ecdsa/#skolemizecompactjsonld), so the id is taken for the blank node
 * `_:_:<uuid>`. That is not a legal label, and the signature would not cover it anyway.
 * docs/decisions/0002-credential-id.md has the details.
 */
export function credentialIdOf(uuid: string): string {
  return `urn:uuid:${uuid}`;
}
