import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { MaxUint256, getIcapAddress } from 'ethers';
import { createReadingProgress } from '../../cli/terminal/dialog';
import { accountNames } from '../../cli/terminal/printable';
import { findToken, tokenOf } from '../../cli/token/find-token';
import { codeOf } from '../../service/base/errors';
import { parseTokenId } from '../../service/registry/token-id-forms';
import { errorOf } from '../helpers/error-of';
import { temporaryFolder } from '../helpers/temporary-folder';

/** Only the compiler of console/ knows the types of a browser, which this module needs. */
const CONSOLE: string = '../../console/token/token-of-file';
const REGISTRY = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const CREDENTIAL = {
  type: ['VerifiableCredential'],
  id: 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001',
  credentialStatus: {
    type: 'TransferableRecords',
    tokenNetwork: { chain: 'POL', chainId: 80002 },
    tokenRegistry: REGISTRY,
    tokenId: 'ab'.repeat(32),
  },
};

const withRegistry = (tokenRegistry: string): object => ({
  ...CREDENTIAL,
  credentialStatus: { ...CREDENTIAL.credentialStatus, tokenRegistry },
});

describe('a token id', () => {
  it('may be 64 hexadecimal digits, hexadecimal digits after 0x, or decimal digits', () => {
    expect(parseTokenId('AB'.repeat(32))).to.equal(BigInt(`0x${'ab'.repeat(32)}`));
    expect(parseTokenId('0x0a')).to.equal(10n);
    expect(parseTokenId('10')).to.equal(10n);
    expect(parseTokenId(MaxUint256.toString())).to.equal(MaxUint256);
  });

  it('is hexadecimal if it has 64 digits, even if all of them are decimal', () => {
    expect(parseTokenId('1'.repeat(64))).to.equal(BigInt(`0x${'1'.repeat(64)}`));
    expect(parseTokenId('1'.repeat(63))).to.equal(BigInt('1'.repeat(63)));
  });

  it('is refused beyond 256 bits or with 63 hexadecimal digits; a file name is not a token id', () => {
    expect(() => parseTokenId((MaxUint256 + 1n).toString())).to.throw('more than 256 bits');
    expect(() => parseTokenId(`0x1${'0'.repeat(64)}`)).to.throw('more than 256 bits');
    expect(() => parseTokenId('ab'.repeat(32).slice(1))).to.throw('63 hexadecimal digits, not 64');
    for (const name of ['ab'.repeat(20), 'answer.json', '-', './12', '0x', 'ab', ''])
      expect(parseTokenId(name)).to.equal(undefined);
  });
});

describe('a token that a user names', () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'credential.json');
  before(() => writeFileSync(file, JSON.stringify(CREDENTIAL)));

  it('is read from a credential, alone or in the answer of POST /create or /credentials/derive', () => {
    const found = tokenOf(CREDENTIAL);
    expect(found).to.deep.equal({
      location: { chainId: 80002, registry: REGISTRY, tokenId: BigInt(`0x${'ab'.repeat(32)}`) },
      credentialId: CREDENTIAL.id,
    });
    expect(tokenOf({ signedW3CDocument: CREDENTIAL, txHash: '0x' })).to.deep.equal(found);
    expect(tokenOf({ verifiableCredential: CREDENTIAL })).to.deep.equal(found);
  });

  it('is found by the console in the same files', async () => {
    const { tokenOfFile } = (await import(CONSOLE)) as { tokenOfFile: (file: unknown) => object };
    for (const file of [CREDENTIAL, { signedW3CDocument: CREDENTIAL }, { verifiableCredential: CREDENTIAL }])
      expect(tokenOfFile(file)).to.deep.equal({
        tokenId: 'ab'.repeat(32),
        registry: `80002:${REGISTRY}`,
        credentialId: CREDENTIAL.id,
      });
  });

  it('is refused if there is no credential, or one without a valid token', () => {
    for (const [input, code] of [
      [[], 'CREDENTIAL_INVALID'],
      [null, 'CREDENTIAL_INVALID'],
      [{ signedW3CDocument: 'x' }, 'CREDENTIAL_INVALID'],
      [{}, 'CREDENTIAL_INVALID'],
      [{ ...CREDENTIAL, credentialStatus: undefined }, 'CREDENTIAL_STATUS_INVALID'],
      [withRegistry(REGISTRY.slice(2)), 'CREDENTIAL_STATUS_INVALID'],
      [withRegistry(getIcapAddress(REGISTRY)), 'CREDENTIAL_STATUS_INVALID'],
    ] as const)
      expect(() => tokenOf(input))
        .to.throw()
        .and.satisfy((error: unknown) => codeOf(error) === code);
  });

  it('is refused if flags are invalid or contradict the credential, and found if they agree', async () => {
    const other = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
    for (const [reference, code] of [
      [{ token: file, registry: other, network: undefined }, 'ARGUMENT_INVALID'],
      [{ token: file, registry: undefined, network: 'sepolia' }, 'ARGUMENT_INVALID'],
      [{ token: '1', registry: 'x', network: undefined }, 'ARGUMENT_INVALID'],
      [{ token: '1', registry: REGISTRY.slice(2), network: undefined }, 'ARGUMENT_INVALID'],
      [{ token: '1', registry: getIcapAddress(REGISTRY), network: undefined }, 'ARGUMENT_INVALID'],
      [{ token: '1', registry: REGISTRY, network: 'hardhat' }, 'NETWORK_UNKNOWN'],
    ] as const) {
      expect(await errorOf(findToken(reference))).to.include({ code });
    }
    const byId = await findToken({ token: '1', registry: REGISTRY, network: 'sepolia' });
    expect(byId.location).to.deep.equal({ chainId: 11155111, registry: REGISTRY, tokenId: 1n });
    const agreeing = { token: file, registry: REGISTRY.toLowerCase(), network: 'amoy' };
    expect((await findToken(agreeing)).location.chainId).to.equal(80002);
  });
});

describe('short names of accounts', () => {
  it('are whole addresses where two short names would be equal', () => {
    const alike = [
      '0x1234567890123456789012345678901234567890',
      '0x1234aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7890',
    ];
    expect([...accountNames([...alike, REGISTRY, REGISTRY]).values()]).to.deep.equal([
      ...alike,
      '0x7099…79C8',
    ]);
  });
});

describe('the progress of a long read', () => {
  it('is reported after two seconds, and then every two seconds', () => {
    let now = 0;
    const told: string[] = [];
    const progress = createReadingProgress((line) => told.push(line), 'hint', { now: () => now });
    for (const [time, block] of [
      [1_999, 900],
      [2_000, 801],
      [3_000, 700],
      [4_500, 601],
    ] as const) {
      now = time;
      progress(block, { fromBlock: 1, toBlock: 1_000 });
    }
    expect(told).to.have.length(2);
    expect(told[0]).to.contain('at block 801').and.to.contain('20 %');
  });
});
