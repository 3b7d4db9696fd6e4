import { expect } from 'chai';
import { makeError, toQuantity, ZeroHash } from 'ethers';
import { createFinalBlockReading } from '../../service/chain/finality';
import { readConfirmations, type Confirmations } from '../../service/chain/networks';
import { chainOf } from '../helpers/chain/fake-nodes';
import { errorOf } from '../helpers/error-of';

const AMOY = { name: 'amoy', confirmations: 32 };

/** An answer of a node: the number of a block, no block, or an error. */
type Answer = number | null | Error;

/** Reads the final block of a node that gives these answers, and counts the calls. */
function reading(confirmations: Confirmations, answers: Answer[]) {
  const asked: unknown[] = [];
  const send = async (_method: string, [block]: readonly unknown[]): Promise<unknown> => {
    asked.push(block);
    const answer = answers.shift() ?? null;
    if (answer instanceof Error) throw answer;
    if (answer === null) return null;
    return { number: toQuantity(answer), hash: ZeroHash, parentHash: ZeroHash, timestamp: '0x1' };
  };
  return { asked, read: createFinalBlockReading(chainOf(send), AMOY, confirmations) };
}

function nodeError(code: number, message: string): Error {
  return makeError('could not coalesce error', 'UNKNOWN_ERROR', { error: { code, message } });
}

/** Answers to a tag that a node does not know: of geth before the merge, of anvil, and of a provider. */
const REFUSALS = [
  nodeError(-32602, 'invalid argument 0: hex string without 0x prefix'),
  nodeError(-32602, 'data did not match any variant of untagged enum BlockId'),
  nodeError(-32000, 'the block tag is not supported'),
] as const;
const NOT_FOUND = nodeError(-32000, 'finalized block not found');

describe('the final block', () => {
  it('is that with the number of confirmations on top, without a call', async () => {
    const { read, asked } = reading(12, []);
    expect([await read(100), await read(5)]).to.deep.equal([88, -7]);
    expect(asked).to.deep.equal([]);
  });

  for (const tag of ['finalized', 'safe'] as const)
    it(`is that of the tag ${tag}, in one call`, async () => {
      const { read, asked } = reading(tag, [68]);
      expect(await read(100)).to.equal(68);
      expect(asked).to.deep.equal([tag]);
    });

  it('never goes back, is never above the newest block, and forgets an absurd answer', async () => {
    const { read } = reading('finalized', [68, 60, 1e12, 69, 103]);
    const heads = [100, 100, 70, 71, 120];
    const found: number[] = [];
    for (const head of heads) found.push(await read(head));
    expect(found).to.deep.equal([68, 68, 70, 70, 103]);
  });

  for (const refusal of REFUSALS)
    it(`is refused with the number to use instead if the node answers: ${refusal.message}`, async () => {
      const error = await errorOf(reading('safe', [refusal]).read(100));
      expect(error).to.include({ code: 'FINALITY_UNSUPPORTED', retryable: false });
      expect(error.message).to.contain('32 (the default of amoy)');
    });

  it('is waited for if the node has none, or refuses a tag that it knew', async () => {
    const { read } = reading('finalized', [null, NOT_FOUND, 68, REFUSALS[0], 69]);
    const missing = { code: 'FINALITY_MISSING', retryable: true };
    for (const expected of [missing, missing, 68, { code: 'UNKNOWN_ERROR' }, 69]) {
      const found: unknown = await read(100).catch((thrown: unknown) => thrown);
      if (typeof expected === 'number') expect(found).to.equal(expected);
      else expect(found).to.include(expected);
    }
  });
});

describe('confirmations', () => {
  it('are a number up to 100,000, or a tag', () => {
    for (const [text, value] of [
      ['0', 0],
      ['100000', 100_000],
      ['finalized', 'finalized'],
      ['safe', 'safe'],
    ] as const)
      expect(readConfirmations(text)).to.equal(value);
    for (const text of ['100001', '-1', '1.5', 'latest', ''])
      expect(readConfirmations(text)).to.equal(undefined);
  });
});
