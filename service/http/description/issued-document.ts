import { z } from 'zod';
import { ADDRESS, HASH, TEXT, TIME, TOKEN_ID_HEX } from './values';

/** The signed credential (docs/specification.md, section 3). */
const SIGNED_CREDENTIAL = z
  .strictObject({
    '@context': z.array(TEXT),
    type: z.array(z.literal('VerifiableCredential')).length(1),
    credentialStatus: z.strictObject({
      type: z.literal('TransferableRecords'),
      tokenNetwork: z.strictObject({
        chain: TEXT.meta({ description: "Currency symbol of the token's network." }),
        chainId: TEXT,
      }),
      tokenRegistry: ADDRESS,
      tokenId: TOKEN_ID_HEX,
    }),
    renderMethod: z.array(
      z.strictObject({ id: TEXT, type: z.literal('EMBEDDED_RENDERER'), templateName: TEXT }),
    ),
    credentialSubject: z.record(TEXT, z.unknown()).meta({ description: 'As in the request.' }),
    validFrom: TIME,
    validUntil: TIME.meta({ description: 'Three calendar months after `validFrom`.' }),
    issuer: TEXT.meta({ description: 'The did:web of the issuer.' }),
    id: TEXT.meta({ description: '`urn:uuid:` and a UUID. It is the key that decrypts the remarks.' }),
    proof: z.strictObject({
      type: z.literal('DataIntegrityProof'),
      created: TEXT,
      verificationMethod: TEXT,
      cryptosuite: z.literal('ecdsa-sd-2023'),
      proofPurpose: z.literal('assertionMethod'),
      proofValue: TEXT,
    }),
  })
  .meta({
    description:
      'A W3C Verifiable Credential (data model 2.0) with a base proof. Keep it: its holder derives from it ' +
      'the credentials that others verify.',
  });

/** An answer with an issued document. */
export const ISSUED_DOCUMENT = z
  .strictObject({
    signedW3CDocument: SIGNED_CREDENTIAL,
    txHash: HASH.meta({ description: 'The transaction that minted the token.' }),
  })
  .meta({ id: 'IssuedDocument' });
