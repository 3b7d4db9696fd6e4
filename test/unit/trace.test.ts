import { expect } from 'chai';
import {
  addSpan,
  beginSpan,
  callersTrace,
  endSpan,
  parseTraceparent,
  traceIdOf,
  traceOfEvent,
} from '../../service/base/trace';
import { traced } from '../helpers/traced';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const VALID = `00-${TRACE_ID}-${SPAN_ID}-01`;
const NEW_SPAN = new RegExp(`^00-${TRACE_ID}-(?!0{16}|${SPAN_ID})[0-9a-f]{16}-01$`);

describe('a traceparent', () => {
  for (const [what, header] of [
    ['of version 00', VALID],
    ['of a later version', `cc-${TRACE_ID}-${SPAN_ID}-01`],
    ['of a later version with more fields', `01-${TRACE_ID}-${SPAN_ID}-01-what-the-future-brings`],
    ['with unknown flags', `00-${TRACE_ID}-${SPAN_ID}-f9`],
  ])
    it(`${what} is continued, with the flags that are known`, () => {
      expect(callersTrace(String(header), true)).to.equal(VALID);
    });

  for (const [what, header] of [
    ['that is missing', ''],
    ['that is repeated', `${VALID}, ${VALID}`],
    ['of version ff', `ff-${TRACE_ID}-${SPAN_ID}-01`],
    ['of version 00 with more fields', `${VALID}-more`],
    ['of version 00 with a dash at its end', `${VALID}-`],
    ['of a later version with more text in a field', `01-${TRACE_ID}-${SPAN_ID}-01more`],
    ['with a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN_ID}-01`],
    ['with a span id of zeros', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
    ['in upper case', VALID.toUpperCase()],
    ['that is too short', VALID.slice(0, -1)],
    ['with another character', VALID.replace('4b', '4g')],
    ['with flags that are not hexadecimal', `00-${TRACE_ID}-${SPAN_ID}-0x`],
  ])
    it(`${what} begins a new trace`, () => {
      expect(callersTrace(String(header), true)).to.equal(undefined);
      const [, trace] = beginSpan('any', header, {});
      expect(parseTraceparent(trace)?.traceId).to.be.a('string').and.not.equal(TRACE_ID);
    });

  it('is sampled as the caller says only if the caller has a key', () => {
    expect(callersTrace(VALID, true)).to.equal(VALID);
    // Without an SDK nothing is sampled.
    expect(callersTrace(VALID, false)).to.equal(`00-${TRACE_ID}-${SPAN_ID}-00`);
  });

  it('keeps its place while nothing makes spans', () => {
    expect(beginSpan('any', VALID, {})[1]).to.equal(VALID);
    expect(traceIdOf(VALID)).to.equal(TRACE_ID);
  });

  it('of an event that belongs to no document has the id of the event', () => {
    const trace = traceOfEvent('0b3a5a0e-0b7e-5b0e-8f4e-3f2e9b8f8a3c');
    expect(parseTraceparent(trace)?.traceId).to.equal('0b3a5a0e0b7e5b0e8f4e3f2e9b8f8a3c');
  });

  it('keeps its place when the SDK throws', async () => {
    const fail = (): never => {
      throw new Error('the processor is broken');
    };
    await traced({ onStart: fail }, () => {
      expect(beginSpan('any', VALID, {})[1]).to.equal(VALID);
      expect(callersTrace(VALID, false)).to.equal(`00-${TRACE_ID}-${SPAN_ID}-00`);
      expect(() => addSpan('mint', VALID, 1, 2)).not.to.throw();
    });
    await traced({ onEnd: fail }, () => {
      const [span, trace] = beginSpan('any', VALID, {});
      expect(trace).to.match(NEW_SPAN);
      expect(() => endSpan(span, true)).not.to.throw();
      expect(() => addSpan('mint', VALID, 1, 2)).not.to.throw();
    });
  });

  it('is not needed: a document of an earlier version has none', () => {
    expect(() => addSpan('mint', undefined, 1, 2)).not.to.throw();
    expect(traceIdOf(null)).to.equal(undefined);
  });
});
