import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type {
  DocumentBytes,
  JournalScope,
  MinedMint,
  SignedDocument,
} from '../../../service/journal/issuance';

/** The scope of the tested journals. */
export const SCOPE: JournalScope = {
  chainId: 31337,
  registryAddress: `0x${'aa'.repeat(20)}`,
  issuer: 'did:web:carrier.example',
};

/**
 * A document as signing returns it, but with random bytes for its JSON, which the journal does not read.
 */
export function preparedDocument(bytes = 3_000): SignedDocument {
  const credentialId = `urn:bnid:_:${randomUUID()}`;
  const document = new Uint8Array(bytes);
  document.set(randomBytes(bytes));
  return {
    credentialId,
    tokenId: createHash('sha256').update(credentialId).digest('hex'),
    owner: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    holder: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
    remark: '0x',
    blNumber: 'SGCNM21566325',
    document,
  };
}

/** A mint by this transaction, in a block. */
export function mintedBy(txHash: string, number = 7): MinedMint {
  return { txHash, block: { number, hash: `0x${String(number).padStart(64, '0')}` } };
}

/** All bytes of a stored document in one buffer. */
export async function collected(document: Promise<DocumentBytes | undefined>): Promise<Buffer> {
  const { length, parts = [] } = (await document) ?? {};
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(part);
  const bytes = Buffer.concat(all);
  if (bytes.length !== length) throw new Error(`the document has ${bytes.length} bytes, not ${length}`);
  return bytes;
}
