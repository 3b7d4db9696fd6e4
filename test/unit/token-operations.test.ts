import { expect } from 'chai';
import { ZeroAddress } from 'ethers';
import { operationsOf } from '../../service/token/endorsement-chain';
import type { DecodedLog } from '../../service/registry/decode-log';

const SOMEBODY = `0x${'11'.repeat(20)}`;

/** Logs of one transaction, each given as a type, or as a type and payload. */
function transaction(
  hash: string,
  ...logs: (DecodedLog['type'] | [DecodedLog['type'], object])[]
): DecodedLog[] {
  return logs.map((log, index) => {
    const [type, payload] = typeof log === 'string' ? [log, {}] : log;
    const place = { blockNumber: 1, blockHash: '0xb', transactionHash: hash, index };
    return {
      type,
      tokenId: 1n,
      payload: { remark: '0x', ...payload },
      log: { ...place, address: '', topics: [], data: '' },
    };
  });
}

const namesOf = (logs: DecodedLog[]): string[] => operationsOf(logs).map(({ operation }) => operation);

describe('operations in the logs of a token', () => {
  it('are distinguished when a contract sends several in one transaction', () => {
    const ended: [DecodedLog['type'], object] = ['nomination', { nominee: ZeroAddress, remark: '0x3078' }];
    const logs = transaction(
      '0xa',
      ...['escrow_created', 'minted', 'beneficiary_transfer', 'holder_transfer', 'token_received'].map(
        (type) => type as DecodedLog['type'],
      ),
      ['nomination', { nominee: SOMEBODY }],
      'beneficiary_transfer',
      ended,
      'holder_transfer',
      'reject_transfer_holder',
      'beneficiary_transfer',
      'holder_transfer',
      'reject_transfer_owners',
    );
    expect(namesOf(logs)).to.deep.equal([
      ...['mint', 'nominate', 'transferBeneficiary', 'rejectTransferHolder', 'rejectTransferOwners'],
    ]);
  });

  it('are two transfers if remarks or transactions differ, and transferOwners otherwise', () => {
    const beneficiary: [DecodedLog['type'], object] = ['beneficiary_transfer', { remark: '0x01' }];
    const holder: [DecodedLog['type'], object] = ['holder_transfer', { remark: '0x02' }];
    const two = ['transferBeneficiary', 'transferHolder'];
    expect(namesOf(transaction('0xa', beneficiary, holder))).to.deep.equal(two);
    expect(namesOf([...transaction('0xa', beneficiary), ...transaction('0xb', beneficiary)])).to.have.length(
      2,
    );
    expect(namesOf(transaction('0xa', 'beneficiary_transfer', 'holder_transfer'))).to.deep.equal([
      'transferOwners',
    ]);
  });

  it('are a transfer and a return if a sole owner does both in one transaction', () => {
    const nobody: [DecodedLog['type'], object] = [
      'nomination',
      { prevNominee: ZeroAddress, nominee: ZeroAddress },
    ];
    const ended: [DecodedLog['type'], object] = [
      'nomination',
      { prevNominee: SOMEBODY, nominee: ZeroAddress, remark: '0x3078' },
    ];
    const expected = ['transferBeneficiary', 'returnToIssuer'];
    const returned = [nobody, 'surrendered', 'return_to_issuer'] as const;
    expect(namesOf(transaction('0xa', 'beneficiary_transfer', ...returned))).to.deep.equal(expected);
    expect(namesOf(transaction('0xa', 'beneficiary_transfer', ended, ...returned))).to.deep.equal(expected);
  });

  it("have the sender's remark, not the contract's own at the end of a nomination", () => {
    const [transfer] = operationsOf(
      transaction(
        '0xa',
        ['beneficiary_transfer', { remark: '0x01' }],
        ['nomination', { nominee: ZeroAddress, remark: '0x3078' }],
      ),
    );
    expect(transfer).to.include({ operation: 'transferBeneficiary', remark: '0x01' });
    const [nomination] = operationsOf(
      transaction('0xa', ['nomination', { nominee: SOMEBODY, remark: '0x02' }]),
    );
    expect(nomination).to.include({ operation: 'nominate', remark: '0x02' });
  });

  it('are an error if a log belongs to no operation, or logs are missing', () => {
    expect(() => operationsOf(transaction('0xa', 'shred'))).to.throw(
      'shred in transaction 0xa, which does not belong',
    );
    expect(() => operationsOf(transaction('0xa', 'token_received'))).to.throw('omits logs');
  });
});
