import { ProxyTracerProvider, trace, type Tracer } from '@opentelemetry/api';
import { NodeTracerProvider, type SpanProcessor } from '@opentelemetry/sdk-trace-node';

const NONE = new ProxyTracerProvider().getTracer('none');
let tracer = NONE;

// The service keeps the first tracer that it gets, for as long as this process runs.
const kept: Tracer = {
  startSpan: (...given) => tracer.startSpan(...given),
  startActiveSpan: NONE.startActiveSpan.bind(NONE),
};
trace.setGlobalTracerProvider({ getTracer: () => kept });

/** Does work while an SDK gives its spans to this processor. */
export async function traced(
  processor: Partial<SpanProcessor>,
  work: () => void | Promise<void>,
): Promise<void> {
  const nothing = { onStart: () => undefined, onEnd: () => undefined };
  const ended = { forceFlush: () => Promise.resolve(), shutdown: () => Promise.resolve() };
  const provider = new NodeTracerProvider({ spanProcessors: [{ ...nothing, ...ended, ...processor }] });
  tracer = provider.getTracer('test');
  try {
    await work();
  } finally {
    tracer = NONE;
  }
}
