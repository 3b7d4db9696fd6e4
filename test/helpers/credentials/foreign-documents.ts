const CREDENTIALS_V2 = 'https://www.w3.org/ns/credentials/v2';

/** Documents that users take for credentials of this service, and the message that names each. */
export const FOREIGN_DOCUMENTS: readonly { name: string; document: object; message: RegExp }[] = [
  {
    name: 'an OpenAttestation document of version 2',
    document: {
      version: 'https://schema.openattestation.com/2.0/schema.json',
      data: { id: '8b5b1a4e-6c0f-4d4e-9b39-1f0f6f7c9c55:string:BL-1' },
      signature: { type: 'SHA3MerkleProof', targetHash: 'ab', proof: [], merkleRoot: 'ab' },
    },
    message: /: it is an OpenAttestation document\. Verify it with .*TradeTrust\./,
  },
  {
    name: 'an OpenAttestation document of version 3',
    document: {
      version: 'https://schema.openattestation.com/3.0/schema.json',
      '@context': ['https://www.w3.org/2018/credentials/v1'],
      type: ['VerifiableCredential'],
      credentialSubject: {},
      proof: { type: 'OpenAttestationMerkleProofSignature2018', merkleRoot: 'ab' },
    },
    message: /: it is an OpenAttestation document\. /,
  },
  {
    name: 'an OpenAttestation document of version 4',
    document: {
      '@context': [
        CREDENTIALS_V2,
        'https://schemata.openattestation.com/com/openattestation/4.0/context.json',
      ],
      type: ['VerifiableCredential', 'OpenAttestationCredential'],
      credentialSubject: {},
      proof: { type: 'OpenAttestationHashProof2018', merkleRoot: 'ab' },
    },
    message: /: it is an OpenAttestation document\. /,
  },
  {
    name: 'a document of a predecessor of OpenAttestation',
    document: { schema: 'tradetrust/v1.0', data: {}, signature: { type: 'SHA3MerkleProof' } },
    message: /: it is an OpenAttestation document\. /,
  },
  {
    name: 'a verifiable presentation',
    document: {
      '@context': CREDENTIALS_V2,
      type: 'VerifiablePresentation',
      verifiableCredential: [{ type: ['VerifiableCredential'] }],
    },
    message: /: it is a verifiable presentation\. Give one of the credentials in it\./,
  },
  {
    name: 'an enveloped credential',
    document: {
      '@context': CREDENTIALS_V2,
      type: 'EnvelopedVerifiableCredential',
      id: 'data:application/vc+jwt,eyJhbGciOiJFUzI1NiJ9.e30.AAAA',
    },
    message: /: it is in an envelope such as a JWT\. Verify it with software for VC-JOSE-COSE/,
  },
];
