import type { JsonObject } from '../../../service/issuance/credential';
import type { Preparation, PreparationSettings } from '../../../service/issuance/prepare-document';
import { TEST_REGISTRY, type TestIssuer } from './test-issuer';

export const OWNER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
export const HOLDER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';

/** The settings that all documents of this issuer share. */
export function settingsOf({ keyPair, did, contextUrl }: TestIssuer): PreparationSettings {
  return {
    issuerKey: keyPair,
    issuer: did,
    documentContextUrl: contextUrl,
    rendererUrl: 'https://renderer.example',
    currency: 'ETH',
    chainId: 31337,
    tokenRegistry: TEST_REGISTRY,
  };
}

/** A preparation of this body, given as text or bytes. Each `number` is another document. */
export function preparationOf(body: string | Uint8Array<ArrayBuffer>, number = 0): Preparation {
  return {
    documentType: 'BILL_OF_LADING',
    body: typeof body === 'string' ? new TextEncoder().encode(body) : body,
    uuid: `01937b4a-0000-7000-8000-${String(number).padStart(12, '0')}`,
    issuedAt: Date.parse('2026-01-31T12:00:00Z'),
  };
}

/** The body of a request with these members of a Bill of Lading and these other members of the body. */
export function bodyWith(subject: JsonObject = {}, others: JsonObject = {}): string {
  const credentialSubject = { type: ['BillOfLading'], scac: 'SGPU', blNumber: 'SG1', ...subject };
  return JSON.stringify({ credentialSubject, owner: OWNER, holder: HOLDER.toLowerCase(), ...others });
}

/** An attachment with this many megabytes of base64. */
export function attachmentOf(megabytes: number): { data: string; filename: string; mimeType: string } {
  const data = 'JVBERi0xLjcK/+9='.repeat((megabytes * 1_000_000) / 16);
  return { data, filename: 'scan.pdf', mimeType: 'application/pdf' };
}
