import { FetchRequest, getAddress, makeError, type Interface } from 'ethers';
import { expect } from 'chai';
import { AnswerTooLargeError, malformed } from '../../service/chain/node-errors';
import { registryInterface } from '../../service/registry/registry-contracts';
import { mintData, simulationFailed } from '../../service/registry/simulate-mint';
import { seededRandom } from '../helpers/seeded-random';

const CALL = {
  action: 'call',
  data: null,
  reason: null,
  transaction: { to: null, data: '0x' },
  invocation: null,
  revert: null,
} as const;

it('a mint is encoded as ethers does it, with a remark of any length', () => {
  for (let seed = 0; seed < 200; seed++) {
    const random = seededRandom(seed);
    const [owner, holder] = [getAddress(random.hex(20)), getAddress(random.hex(20))];
    const tokenId = random.hex(32).slice(2);
    const remark = random.hex(random.below(130));
    expect(mintData({ owner, holder, tokenId, remark })).to.equal(
      registryInterface.encodeFunctionData('mint', [owner, holder, `0x${tokenId}`, remark]),
    );
  }
});

describe('a failed simulation of a mint', () => {
  for (const [what, cause] of [
    ['does not answer', Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })],
    [
      'answers too late',
      makeError('request timeout', 'TIMEOUT', {
        operation: 'eth_call',
        reason: 'timeout',
        request: new FetchRequest('http://node.example'),
      }),
    ],
    [
      'throttles requests',
      makeError('missing revert data', 'CALL_EXCEPTION', {
        ...CALL,
        info: { error: { code: -32005, message: 'too many requests' } },
      }),
    ],
    ['gives a malformed answer', malformed('eth_call')],
    ['gives too large an answer', new AnswerTooLargeError()],
  ] as const)
    it(`is a retryable outage with the usual message when the node ${what}`, () => {
      expect(simulationFailed(cause)).to.include({
        code: 'RPC_UNREACHABLE',
        retryable: true,
        message: 'Failed to mint token',
        cause,
      });
    });

  it('is a final refusal when the contract gives no reason, or no contract answers', () => {
    for (const cause of [
      makeError('missing revert data', 'CALL_EXCEPTION', CALL),
      makeError('no data', 'BAD_DATA', { value: '0x' }),
    ])
      expect(simulationFailed(cause)).to.include({
        code: 'MINT_SIMULATION_FAILED',
        retryable: false,
        message: 'Failed to mint token',
      });
  });

  for (const [reason, values, remedy] of [
    ['EnforcedPause', [], 'its admin must unpause it first'],
    ['AccessControlUnauthorizedAccount', [`0x${'ab'.repeat(20)}`, `0x${'00'.repeat(32)}`], 'must grant it'],
    ['RemarkLengthExceeded', [], 'at most 120 bytes'],
    ['TokenExists', [], 'exists already'],
  ] as const)
    it(`has a remedy when the contract says ${reason}`, () => {
      const data = (registryInterface as Interface).encodeErrorResult(reason, values);
      const failure = simulationFailed(makeError('reverted', 'CALL_EXCEPTION', { ...CALL, data }));
      expect(failure).to.include({ reason, message: 'Failed to mint token' });
      expect(failure.remedy).to.contain(remedy);
    });
});
