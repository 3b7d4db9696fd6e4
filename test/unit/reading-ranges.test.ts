import { expect } from 'chai';
import { FetchRequest, FetchResponse, makeError } from 'ethers';
import { isRangeRefused, isThrottled } from '../../service/chain/node-errors';
import { createBlockSpan } from '../../service/chain/read-chain';
import { keepRead, newestUpTo } from '../../service/watcher/follow-chain';

/** The error that ethers creates from a node's answer. */
function answered(message: string): Error {
  return makeError('could not coalesce error', 'UNKNOWN_ERROR', {
    error: { code: -32005, message },
  });
}

function status(code: number): Error {
  const request = new FetchRequest('http://node.example/');
  const response = new FetchResponse(code, 'status', {}, new Uint8Array(), request);
  return makeError(`server response ${code}`, 'SERVER_ERROR', { request, response });
}

describe('ranges of blocks', () => {
  for (const message of [
    'query returned more than 10000 results',
    'block range is too wide',
    'exceed maximum block range: 5000',
    'eth_getLogs is limited to a 10,000 range',
    'Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range',
    'query timeout exceeded',
    'Too many requests',
  ]) {
    it(`shrink when the provider says "${message}"`, () =>
      expect(isRangeRefused(answered(message))).to.equal(true));
  }

  it('shrink on the statuses 413 and 429, of which only 429 counts as throttling', () => {
    expect([413, 429, 500, 404].map((code) => isRangeRefused(status(code)))).to.deep.equal([
      true,
      true,
      false,
      false,
    ]);
    expect([413, 429].map((code) => isThrottled(status(code)))).to.deep.equal([false, true]);
  });

  it('do not shrink when the node is broken or gone', () => {
    for (const error of [answered('header not found'), answered('internal error'), new Error('ECONNREFUSED')])
      expect(isRangeRefused(error)).to.equal(false);
  });

  it('are halved down to one block, and grow back to the maximum, never beyond', () => {
    const span = createBlockSpan(2_000);
    const sizes = [span.blocks()];
    while (span.shrink()) sizes.push(span.blocks());
    expect(sizes).to.deep.equal([2000, 1000, 500, 250, 125, 62, 31, 15, 7, 3, 1]);
    for (let times = 0; times < 60; times++) span.grow();
    expect(span.blocks()).to.equal(2_000);
  });
});

describe('kept blocks', () => {
  const blocks = (...numbers: number[]) => numbers.map((number) => ({ number, hash: `0x${number}` }));
  const numbersOf = (kept: { number: number }[]): number[] => kept.map(({ number }) => number);

  it('go back to the finality depth, and to the newest block below it', () => {
    const kept = keepRead(blocks(1, 2, 3, 4, 5, 6), blocks(7), 3);
    expect(numbersOf(kept)).to.deep.equal([4, 5, 6, 7]);
    expect(numbersOf(keepRead(blocks(1, 4), blocks(2_000), 3))).to.deep.equal([4, 2_000]);
    expect(numbersOf(keepRead(blocks(4), blocks(5), 256))).to.deep.equal([4, 5]);
  });

  it('are searched for the newest one up to a given number', () => {
    expect(newestUpTo(blocks(1, 5, 9), 8)?.number).to.equal(5);
    expect(newestUpTo(blocks(5), 4)).to.equal(undefined);
  });
});
