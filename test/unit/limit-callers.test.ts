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

/** A request from an address, by a caller with a role. */
function requestFrom(
  remoteAddress: string,
  role: 'admin' | 'holder' | 'operator',
  left = new AbortController().signal,
): Request {
  const [res, socket] = [new EventEmitter(), Object.assign(new EventEmitter(), { remoteAddress })];
  const ctx = { req: { socket }, res, state: { left, role }, set: () => undefined };
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

  it('is for all, and a part of it for each address and role, and for all holders together', () => {
    const limit = limitCallers(7, 2);
    const outcomes = [
      ['10.0.0.1', 'admin', undefined],
      ['10.0.0.1', 'admin', undefined],
      ['10.0.0.1', 'admin', 'WAITS_TOO_MANY'],
      ['10.0.0.1', 'operator', undefined],
      ['10.0.0.1', 'holder', undefined],
      ['10.0.0.2', 'holder', undefined],
      ['10.0.0.3', 'holder', 'WAITS_TOO_MANY'],
      ['2001:db8::1', 'admin', undefined],
      ['2001:db8::2', 'admin', undefined],
      ['2001:db8::3', 'admin', 'BUSY'],
      ['10.0.0.9', 'admin', 'BUSY'],
    ] as const;
    for (const [address, role, code] of outcomes)
      expect(refusal(limit, requestFrom(address, role)), `${address} ${role}`).to.equal(code);
  });

  it('counts each until its answer is sent, or its connection ends, and none that has left', () => {
    const limit = limitCallers(1);
    const [one, two] = [requestFrom('10.0.0.1', 'admin'), requestFrom('10.0.0.1', 'admin')];
    const next = requestFrom('10.0.0.1', 'admin');
    expect([refusal(limit, one), refusal(limit, next)]).to.deep.equal([undefined, 'BUSY']);
    one.res.emit('close');
    expect([refusal(limit, two), refusal(limit, next)]).to.deep.equal([undefined, 'BUSY']);
    one.socket.emit('close');
    expect(refusal(limit, next)).to.equal('BUSY');
    two.socket.emit('close');
    expect(() => limit(requestFrom('10.0.0.1', 'admin', AbortSignal.abort()).ctx)).to.throw(/aborted/);
    expect(refusal(limit, next)).to.equal(undefined);
  });
});
