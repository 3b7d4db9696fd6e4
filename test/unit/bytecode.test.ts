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

/** The code of a contract, and the places of the IPFS hashes in the metadata that solc ends code with. */
function codeOf(folder: string, artifact: string, field: 'bytecode' | 'deployedBytecode') {
  const text = readFileSync(join(PROJECT_ROOT, folder, `${artifact}.json`), 'utf8');
  const { [field]: code } = JSON.parse(text) as Record<typeof field, string>;
  return { masked: code.replaceAll(METADATA_HASH, 'hash'), hashes: code.match(METADATA_HASH)?.length };
}

/**
 * CBOR (RFC 8949): a map of two entries, "ipfs" with 34 bytes, of which the last 32 are the hash, and "solc"
 * with a version of three bytes; then the length of the map. Bytes that only look like it are not masked.
 */
const METADATA_HASH = /(?<=a2646970667358221220)[0-9a-f]{64}(?=64736f6c6343[0-9a-f]{6}0033)/g;

describe('bytecode of the registry’s contracts', () => {
  for (const { artifact, metadata } of CONTRACTS)
    it(`equals that of the published package for ${artifact}, except for the metadata hash`, () => {
      for (const field of ['bytecode', 'deployedBytecode'] as const) {
        const ours = codeOf(OURS, artifact, field);
        expect(ours.hashes, field).to.equal(field === 'bytecode' ? metadata : 1);
        expect(ours, field).to.deep.equal(codeOf(PACKAGE, artifact, field));
      }
    });
});
