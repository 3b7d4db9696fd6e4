// Values of the examples in the description.

const ACCOUNT = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const SUBJECT = { type: ['BillOfLading'], scac: 'MAEU', blNumber: 'MAEU240718305' };

/** Bodies of POST /create, by name. */
export const CREATE_EXAMPLE = {
  minimal: { owner: ACCOUNT, holder: ACCOUNT, credentialSubject: SUBJECT },
  complete: {
    owner: ACCOUNT,
    holder: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
    remarks: 'shipped on board',
    credentialSubject: {
      type: ['BillOfLading'],
      billOfLadingName: 'Bill of Lading',
      scac: 'MAEU',
      blNumber: 'MAEU240718306',
      vessel: 'Maersk Kinloss',
      voyageNo: '431W',
      portOfLoading: 'Singapore',
      portOfDischarge: 'Rotterdam',
      carrierName: 'Maersk A/S',
      placeOfReceipt: 'Jurong',
      placeOfDelivery: 'Duisburg',
      packages: [
        { packagesDescription: '40 drums of resin', packagesWeight: '8200 kg', packagesMeasurement: '21 m3' },
      ],
      shipperName: 'Straits Resins',
      shipperAddressStreet: '8 Gul Circle',
      shipperAddressCountry: 'SG',
      consigneeName: 'Rheinchemie Handel',
      notifyPartyName: 'Rheinchemie Handel',
      attachments: [{ data: 'aGVsbG8=', filename: 'hello.txt', mimeType: 'text/plain' }],
    },
  },
};

/** An answer of POST /create. The `proofValue` is shortened. */
export const CREATED_EXAMPLE = {
  signedW3CDocument: {
    '@context': [
      'https://www.w3.org/ns/credentials/v2',
      'https://w3id.org/security/data-integrity/v2',
      'https://trustvc.io/context/transferable-records-context.json',
      'https://trustvc.io/context/render-method-context-v2.json',
      'https://trustvc.io/context/attachments-context.json',
      'https://carrier.example/contexts/bill-of-lading-v1.json',
    ],
    type: ['VerifiableCredential'],
    credentialStatus: {
      type: 'TransferableRecords',
      tokenNetwork: { chain: 'ETH', chainId: '31337' },
      tokenRegistry: '0xd8058efe0198ae9dD7D563e1b4938Dcbc86A1F81',
      tokenId: '68e671ae02d9fef28de7f8a8fa60f29e89947ac651df57a5d425abf5b7819bb7',
    },
    renderMethod: [
      {
        id: 'https://generic-templates.tradetrust.io',
        type: 'EMBEDDED_RENDERER',
        templateName: 'BILL_OF_LADING',
      },
    ],
    credentialSubject: SUBJECT,
    validFrom: '2026-11-22T11:26:25.580Z',
    validUntil: '2027-02-22T11:26:25.580Z',
    issuer: 'did:web:carrier.example',
    id: 'urn:uuid:01a20301-e52c-7491-a676-2ab8454428ab',
    proof: {
      type: 'DataIntegrityProof',
      created: '2026-11-22T11:26:25Z',
      verificationMethod: 'did:web:carrier.example#keys-1',
      cryptosuite: 'ecdsa-sd-2023',
      proofPurpose: 'assertionMethod',
      proofValue: 'u2V0AhVhA30slW5IEANLescOlDEgaxATbLWmZyi9QiMB8YTBz4SHQmLlllgfr3RQoi_IryT_67dmRdX6pQz…',
    },
  },
  txHash: '0x258332c8ec2574599a8018cc87b8be778173ecb1507df2fabd12d617fc0c2d77',
};
