import { expect } from 'chai';
import { ZeroAddress, toBeHex } from 'ethers';
import { decryptRemark, encryptRemark } from '../../service/issuance/remarks';
import type { Endorsement, TokenOperation } from '../../service/token/endorsement-chain';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { historyOf, newTokenId } from '../helpers/chain/direct-mint';
import { liveThrough } from '../helpers/chain/token-life';
import { trustVcLibrary } from '../helpers/credentials/trustvc-library';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const { encrypt, decrypt, fetchEndorsementChain } = trustVcLibrary;
const ID = 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001';

/** TrustVC's names of the operations; it leaves nominations out. */
const TYPES: Record<Exclude<TokenOperation, 'nominate'>, string> = {
  mint: 'INITIAL',
  transferBeneficiary: 'TRANSFER_BENEFICIARY',
  transferHolder: 'TRANSFER_HOLDER',
  transferOwners: 'TRANSFER_OWNERS',
  rejectTransferBeneficiary: 'REJECT_TRANSFER_BENEFICIARY',
  rejectTransferHolder: 'REJECT_TRANSFER_HOLDER',
  rejectTransferOwners: 'REJECT_TRANSFER_OWNERS',
  returnToIssuer: 'RETURNED_TO_ISSUER',
  restore: 'RETURN_TO_ISSUER_REJECTED',
  burn: 'RETURN_TO_ISSUER_ACCEPTED',
};

describe('the endorsement chain that TrustVC reads', () => {
  let local: LocalSetup;

  before(async () => {
    local = await createLocalSetup();
  });

  it('equals ours of the same token, except for nominations, which it leaves out', async () => {
    const tokenId = newTokenId();
    const [owner, holder] = [await local.account(1), await local.account(2)];
    const registry = TradeTrustTokenStandard__factory.connect(
      local.registryAddress,
      await local.client.getSigner(0),
    );
    const encrypted = `0x${encrypt('shipped on board', ID)}`;
    const mint = await registry.mint(owner, holder, tokenId, encrypted);
    await mint.wait();
    await liveThrough(local, { tokenId, transactionHash: mint.hash });

    const { endorsements } = await historyOf(local, tokenId);
    const theirs = await fetchEndorsementChain(local.registryAddress, toBeHex(tokenId, 32), local.client, ID);

    const ours = endorsements.filter(({ operation }) => operation !== 'nominate');
    expect(
      theirs.map(({ type, timestamp, blockNumber, transactionHash, remark }) => ({
        type,
        timestamp,
        blockNumber,
        transactionHash,
        remark,
      })),
    ).to.deep.equal(
      ours.map(({ operation, timestamp, remark: hex, blockNumber, transactionHash }) => ({
        type: TYPES[operation as keyof typeof TYPES],
        timestamp: timestamp * 1_000,
        blockNumber,
        transactionHash,
        remark: hex === '0x' ? '' : decrypt(hex.slice(2), ID),
      })),
    );
    expect(theirs.map(({ owner: beneficiary, holder }) => ({ beneficiary, holder }))).to.deep.equal(
      asTheyCarryOn(ours),
    );
    expect(theirs[0]?.remark).to.equal('shipped on board');
    expect(decryptRemark(endorsements[0]?.remark ?? '', ID)).to.deep.equal({
      kind: 'text',
      text: 'shipped on board',
    });
  });
});

/**
 * The roles of each entry as TrustVC shows them. It takes a role that an operation does not change from the
 * last transfer before it, and does not count a rejection as a transfer: after a rejected transfer it shows
 * the account that rejected it, until the role is transferred again.
 */
function asTheyCarryOn(endorsements: readonly Endorsement[]): { beneficiary: string; holder: string }[] {
  let carried = { beneficiary: '', holder: '' };
  return endorsements.map(({ operation, before, after }) => {
    const changed = (role: 'beneficiary' | 'holder'): string | undefined =>
      before[role] === after[role] ? undefined : (after[role] ?? ZeroAddress);
    const roles = {
      beneficiary: changed('beneficiary') ?? carried.beneficiary,
      holder: changed('holder') ?? carried.holder,
    };
    if (operation === 'mint' || operation.startsWith('transfer')) carried = roles;
    return roles;
  });
}

describe('remarks shared with TrustVC', () => {
  const TEXTS = [
    'x',
    'shipped on board',
    'Güter an Bord ✓ 提单',
    '🚢'.repeat(30),
    'a'.repeat(120),
    'on\u0000board',
  ];

  it('are decrypted by us when TrustVC encrypts them', () => {
    for (const text of TEXTS)
      expect(decryptRemark(`0x${encrypt(text, ID)}`, ID)).to.deep.equal({ kind: 'text', text });
  });

  it('are read, and marked, when they have no key of their own', () => {
    for (const text of TEXTS.filter((it) => it.length > 1 && !it.includes('\u0000')))
      expect(decryptRemark(`0x${encrypt(text, '')}`, ID)).to.deep.equal({ kind: 'default key', text });
  });

  it('are encrypted by us as by TrustVC, which decrypts them', () => {
    for (const text of TEXTS) {
      expect(encryptRemark(text, ID)).to.equal(`0x${encrypt(text, ID)}`);
      expect(decrypt(encryptRemark(text, ID).slice(2), ID)).to.equal(text);
    }
  });
});
