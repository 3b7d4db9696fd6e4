import { EventEmitter } from 'node:events';
import type { Context } from 'koa';
import { expect } from 'chai';
import { codeOf } from '../../service/base/errors';
import { limitCallers, type LimitCaller } from '../../service/http/limits';

type Limited = Parameters<LimitCaller>[0];

interface Request {
  ctx: Limited;
  res: EventEmitter;
  socket: EventEmitter;
}

/** A request from an address, with a key. */
function requestFrom(remoteAddress: string, key: string, left = new AbortController().signal): Request {
  const [res, socket] = [new EventEmitter(), Object.assign(new EventEmitter(), { remoteAddress })];
  const ctx = { req: { socket }, res, state: { left }, get: () => key, set: () => undefined };
  return { ctx: ctx as unknown as Context & Limited, res, socket };
}

describe('the limit of requests that wait', () => {
  /** The code with which a request is refused. */
  const refusal = (limit: LimitCaller, { ctx }: Request): string | undefined => {
    try {
      limit(ctx);
      return undefined;
    } catch (error) {
      return codeOf(error);
    }
  };

  it('is for all, and a part of it for each caller, who is an address and a key', () => {
    const limit = limitCallers(5, 2);
    const outcomes = [
      ['10.0.0.1', 'key', undefined],
      ['10.0.0.1', 'key', undefined],
      ['10.0.0.1', 'key', 'WAITS_TOO_MANY'],
      ['10.0.0.1', 'another key', undefined],
      ['2001:db8::1', 'key', undefined],
      ['2001:db8::2', 'key', undefined],
      ['2001:db8::3', 'key', 'BUSY'],
      ['10.0.0.9', 'key', 'BUSY'],
    ] as const;
    for (const [address, key, code] of outcomes)
      expect(refusal(limit, requestFrom(address, key)), `${address} ${key}`).to.equal(code);
  });

  it('counts each until its answer is sent, or its connection ends, and none that has left', () => {
    const limit = limitCallers(1);
    const [one, two] = [requestFrom('10.0.0.1', 'key'), requestFrom('10.0.0.1', 'key')];
    const next = requestFrom('10.0.0.1', 'key');
    expect([refusal(limit, one), refusal(limit, next)]).to.deep.equal([undefined, 'BUSY']);
    one.res.emit('close');
    expect([refusal(limit, two), refusal(limit, next)]).to.deep.equal([undefined, 'BUSY']);
    one.socket.emit('close');
    expect(refusal(limit, next)).to.equal('BUSY');
    two.socket.emit('close');
    expect(() => limit(requestFrom('10.0.0.1', 'key', AbortSignal.abort()).ctx)).to.throw(/aborted/);
    expect(refusal(limit, next)).to.equal(undefined);
  });
});
