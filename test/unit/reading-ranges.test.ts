import { expect } from 'chai';
import { FetchRequest, FetchResponse, makeError } from 'ethers';
import { wantedPauseMs, isAnswer, isRefusal, isThrottled } from '../../service/chain/node-errors';
import { BlockSpan } from '../../service/chain/read-chain';
import { keepRead, newestUpTo } from '../../service/watcher/follow-chain';

/** The error that ethers creates from a node's answer. */
function answered(message: string, code = -32000): Error {
  return makeError('could not coalesce error', 'UNKNOWN_ERROR', { error: { code, message } });
}

function status(code: number): Error {
  const request = new FetchRequest('http://node.example/');
  const response = new FetchResponse(code, 'status', {}, new Uint8Array(), request);
  return makeError(`server response ${code}`, 'SERVER_ERROR', { request, response });
}

describe('ranges of blocks', () => {
  /** In words that are known nowhere. */
  for (const message of ['header not found', 'internal error', 'the hamster is tired', 'ไม่รองรับ', ''])
    it(`shrink when the node answers with the error "${message}"`, () =>
      expect([isRefusal(answered(message)), isAnswer(answered(message))]).to.deep.equal([true, true]));

  it('shrink on the statuses 400, 413 and 422, and after those of a gateway that failed', () => {
    const kindOf = (error: unknown): string => `${isRefusal(error)} ${isAnswer(error)}`;
    const answers = [400, 413, 422].map((code) => kindOf(status(code)));
    expect(answers).to.deep.equal(['true true', 'true true', 'true true']);
    expect([404, 500, 503, 504].map((code) => kindOf(status(code)))).to.deep.equal(
      Array(4).fill('true false'),
    );
  });

  it('do not shrink for who asks, or how often, or when no node answers', () => {
    const others = [401, 402, 403, 429].map(status);
    for (const error of [...others, answered('Too many requests', -32005), new Error('ECONNREFUSED')])
      expect(isRefusal(error)).to.equal(false);
    expect([413, 429].map((code) => isThrottled(status(code)))).to.deep.equal([false, true]);
  });

  it('are halved down to one block, and grow back to the maximum, never beyond', () => {
    const span = new BlockSpan(2_000);
    const sizes = [span.blocks()];
    while (span.shrink()) sizes.push(span.blocks());
    expect(sizes).to.deep.equal([2000, 1000, 500, 250, 125, 62, 31, 15, 7, 3, 1]);
    for (let times = 0; times < 60; times++) span.grow();
    expect(span.blocks()).to.equal(2_000);
  });
});

describe('a provider that is asked too often', () => {
  for (const [code, message] of [
    [429, 'Your app has exceeded its compute units per second capacity. If you have retries enabled, …'],
    [-32000, 'Your app has exceeded its concurrent requests capacity'],
    [-32007, '15/second request limit reached - reduce calls per second or upgrade your account'],
    [-32003, 'daily request limit reached - upgrade your account'],
    [-32005, 'project ID request rate exceeded'],
    [-32005, 'daily request count exceeded, request rate limited'],
    [-32005, 'limit exceeded'],
    [-32016, 'over rate limit'],
    [-32011, 'no backends available for method'],
    [-32090, 'Too many requests, reason: call rate limit exhausted, retry in 10s'],
    [-32000, "You've exceeded the RPS limit available on the current plan"],
    [-32000, 'credits limited to 6000/min'],
    [-32000, 'quota used up'],
    [-32000, 'please wait 23s and retry'],
  ] as const)
    it(`says so by ${code} "${message}"`, () => expect(isThrottled(answered(message, code))).to.equal(true));

  for (const [code, message] of [
    [-32005, 'query returned more than 10000 results'],
    [-32005, 'block range limit exceeded'],
    [-32005, 'Requested range exceeds maximum RPC range limit'],
    [-32600, 'You can make eth_getLogs requests with up to a 10 block range.'],
    [-32000, 'requested too many blocks from 1 to 9000, maximum is set to 2048'],
    [-32005, 'Transaction gas limit exceeds block gas limit'],
    [-32007, 'Sender account not authorized to send transactions'],
    [-32000, 'in-flight transaction limit reached for delegated accounts'],
    [-32000, 'txpool is full'],
    [-32000, 'transaction underpriced: tip needed 25000000000, tip permitted 1000000000'],
    [3, 'execution reverted: too many requests'],
    [-32000, 'header not found'],
    [-32000, 'nonce too low, fetch it and try again'],
    [-32000, 'nonce too high: wait for nonce 5'],
    [-32000, 'replacement transaction underpriced: retry with 10% more'],
    [-32000, 'block range too large, retry with at most 1000'],
    [-32016, 'Request was canceled due to enabled timeout.'],
  ] as const)
    it(`does not say so by ${code} "${message}"`, () =>
      expect(isThrottled(answered(message, code))).to.equal(false));

  for (const [message, ms] of [
    ['Too many requests, retry in 7s', 7_000],
    ['try again in 547ms', 547],
    ['slow down', 0],
    ['too many requests, please try again', 0],
    ['rate limit: retry after 3600 seconds', 10_000],
  ] as const)
    it(`asks for ${ms} ms by "${message}"`, () => expect(wantedPauseMs(answered(message), 0)).to.equal(ms));

  it('asks for the pause of its header Retry-After', () => {
    const response = new FetchResponse(429, '', { 'retry-after': '4' }, null);
    const error = makeError('server response 429', 'SERVER_ERROR', { request: '', response });
    expect(wantedPauseMs(error, 0)).to.equal(4_000);
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
