import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PROJECT_ROOT } from '../../service/base/project-root';

const PACKAGE = 'node_modules/@tradetrust-tt/token-registry/dist/artifacts';
const OURS = 'artifacts/@tradetrust-tt/token-registry/contracts';

/**
 * Contracts that the package publishes, with the number of metadata sections in their creation code: the
 * factory contains a whole TitleEscrow.
 */
const CONTRACTS = [
  { artifact: 'TitleEscrow.sol/TitleEscrow', metadata: 1 },
  { artifact: 'TitleEscrowFactory.sol/TitleEscrowFactory', metadata: 2 },
  { artifact: 'presets/TradeTrustTokenStandard.sol/TradeTrustTokenStandard', metadata: 1 },
  { artifact: 'utils/TDocDeployer.sol/TDocDeployer', metadata: 1 },
];

type Field = 'bytecode' | 'deployedBytecode';

function codeOf(folder: string, artifact: string, field: Field): Buffer {
  const text = readFileSync(join(PROJECT_ROOT, folder, `${artifact}.json`), 'utf8');
  return Buffer.from((JSON.parse(text) as Record<Field, string>)[field].slice(2), 'hex');
}

/** CBOR (RFC 8949): a map of two entries, whose first key is the text "ipfs". */
const METADATA_START = Buffer.from('a26469706673', 'hex');

/** Start and end of the content of the byte string at `offset`. */
function byteString(code: Buffer, offset: number): { start: number; end: number } {
  const head = code.readUInt8(offset);
  if (head >> 5 !== 2) throw new Error(`no CBOR byte string at ${offset}`);
  const isLong = (head & 0x1f) === 24;
  const start = offset + (isLong ? 2 : 1);
  return { start, end: start + (isLong ? code.readUInt8(offset + 1) : head & 0x1f) };
}

/**
 * Zeroes the IPFS hash of every metadata section that solc has put into the code; the compiler's version
 * stays. Each section must be followed by its length in two bytes, as solc writes it: bytes that only look
 * like metadata are an error.
 */
function mask(code: Buffer): { masked: Buffer; pieces: number } {
  const masked = Buffer.from(code);
  let pieces = 0;
  for (let at = code.indexOf(METADATA_START); at >= 0; at = code.indexOf(METADATA_START, at + 1)) {
    const hash = byteString(code, at + METADATA_START.length);
    expect(code.subarray(hash.end, hash.end + 5).toString('latin1')).to.equal('dsolc');
    const { end } = byteString(code, hash.end + 5);
    expect(code.readUInt16BE(end), 'length of the metadata').to.equal(end - at);
    masked.fill(0, hash.start, hash.end);
    pieces += 1;
  }
  return { masked, pieces };
}

describe('bytecode of the registry’s contracts', () => {
  for (const { artifact, metadata } of CONTRACTS) {
    it(`equals that of the published package for ${artifact}, except for the metadata hash`, () => {
      for (const field of ['bytecode', 'deployedBytecode'] as const) {
        const ours = mask(codeOf(OURS, artifact, field));
        const published = mask(codeOf(PACKAGE, artifact, field));
        expect(ours.pieces, field).to.equal(field === 'bytecode' ? metadata : 1);
        expect(published.pieces, field).to.equal(ours.pieces);
        expect(ours.masked.equals(published.masked), field).to.equal(true);
      }
    });
  }
});
