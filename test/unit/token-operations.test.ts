import { expect } from 'chai';
import { ZeroAddress } from 'ethers';
import { operationsOf } from '../../service/token/endorsement-chain';
import type { DecodedLog } from '../../service/registry/decode-log';

const SOMEBODY = `0x${'11'.repeat(20)}`;

/** A log as its type, or as a type and payload. */
type Log = DecodedLog['type'] | [DecodedLog['type'], object];

/** Logs of one transaction. */
function transaction(hash: string, ...logs: Log[]): DecodedLog[] {
  return logs.map((log, index) => {
    const [type, payload] = typeof log === 'string' ? [log, {}] : log;
    const place = { blockNumber: 1, blockHash: '0xb', transactionHash: hash, transactionIndex: 0, index };
    const content = { address: '', topics: [], data: '' };
    return { ...place, ...content, type, tokenId: 1n, payload: { remark: '0x', ...payload } };
  });
}

describe('operations in the logs of a token', () => {
  const [beneficiary, holder] = ['beneficiary_transfer', 'holder_transfer'] as const;
  const ended: Log = ['nomination', { prevNominee: SOMEBODY, nominee: ZeroAddress, remark: '0x3078' }];
  const returned: Log[] = [
    ['nomination', { prevNominee: ZeroAddress, nominee: ZeroAddress }],
    'surrendered',
    'return_to_issuer',
  ];
  for (const [what, logs, operations] of [
    [
      'are distinguished when a contract sends several in one transaction',
      transaction(
        '0xa',
        ...(['escrow_created', 'minted', beneficiary, holder, 'token_received'] as const),
        ['nomination', { nominee: SOMEBODY }],
        ...([beneficiary, ended, holder, 'reject_transfer_holder'] as const),
        ...([beneficiary, holder, 'reject_transfer_owners'] as const),
      ),
      ['mint', 'nominate', 'transferBeneficiary', 'rejectTransferHolder', 'rejectTransferOwners'],
    ],
    [
      'are two transfers if remarks differ',
      transaction('0xa', [beneficiary, { remark: '0x01' }], [holder, { remark: '0x02' }]),
      ['transferBeneficiary', 'transferHolder'],
    ],
    [
      'are two transfers if transactions differ',
      [...transaction('0xa', beneficiary), ...transaction('0xb', beneficiary)],
      ['transferBeneficiary', 'transferBeneficiary'],
    ],
    ['are transferOwners otherwise', transaction('0xa', beneficiary, holder), ['transferOwners']],
    [
      'are a transfer and a return if a sole owner does both in one transaction',
      transaction('0xa', beneficiary, ...returned),
      ['transferBeneficiary', 'returnToIssuer'],
    ],
    [
      'are a transfer and a return if that ends a nomination',
      transaction('0xa', beneficiary, ended, ...returned),
      ['transferBeneficiary', 'returnToIssuer'],
    ],
  ] as const)
    it(what, () => {
      expect(operationsOf(logs).map(({ operation }) => operation)).to.deep.equal(operations);
    });

  it("have the sender's remark, not the contract's own at the end of a nomination", () => {
    for (const [operation, remark, logs] of [
      ['transferBeneficiary', '0x01', transaction('0xa', [beneficiary, { remark: '0x01' }], ended)],
      ['nominate', '0x02', transaction('0xa', ['nomination', { nominee: SOMEBODY, remark: '0x02' }])],
    ] as const)
      expect(operationsOf(logs)[0]).to.include({ operation, remark });
  });

  it('are an error if a log belongs to no operation, or logs are missing', () => {
    expect(() => operationsOf(transaction('0xa', 'shred'))).to.throw(
      'shred in transaction 0xa, which does not belong',
    );
    expect(() => operationsOf(transaction('0xa', 'token_received'))).to.throw('omits logs');
  });
});
