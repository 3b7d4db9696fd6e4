import { randomBytes } from 'node:crypto';

const MEGABYTE = 1_000_000;

/** The JSON of a request for a Bill of Lading with an attachment of this many megabytes of base64. */
export function largeDocument(owner: string, megabytes: number): Buffer {
  const data = randomBytes((megabytes * MEGABYTE * 3) / 4).toString('base64');
  const credentialSubject = {
    type: ['BillOfLading'],
    scac: 'SGPU',
    blNumber: `LARGE${randomBytes(6).toString('hex')}`,
    attachments: [{ data, filename: 'scan.pdf', mimeType: 'application/pdf' }],
  };
  return Buffer.from(JSON.stringify({ credentialSubject, owner, holder: owner }));
}
