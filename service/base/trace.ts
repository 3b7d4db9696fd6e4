import { randomUUID } from 'node:crypto';
import * as otel from '@opentelemetry/api';

// A trace is kept and sent as a `traceparent` (https://www.w3.org/TR/trace-context-2/): the ids of the trace
// and of a span, and flags. Without an SDK, no spans are made, and a trace keeps the span of its caller.

/** The fields of version 00, with any others of a later version behind them. */
const TRACEPARENT =
  /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;

/** `sampled`, and `random` of level 2. No other flag has a meaning. */
const KNOWN_FLAGS = 0b11;

/** A `traceparent`, if there is one. */
type Parent = string | null | undefined;

/** Undefined if it is invalid. Node.js joins repeated headers with a comma, which is invalid. */
export function parseTraceparent(text: Parent): otel.SpanContext | undefined {
  const [, traceId, spanId = '', flags = ''] = TRACEPARENT.exec(text ?? '') ?? [];
  if (traceId === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & KNOWN_FLAGS, isRemote: true };
}

function formatTraceparent({ traceId, spanId, traceFlags }: otel.SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & KNOWN_FLAGS}`;
}

/** The id of the trace of a `traceparent`, for log lines. */
export function traceIdOf(traceparent: Parent): string | undefined {
  return traceparent?.slice(3, 35);
}

const tracer = otel.trace.getTracer('transferable-document-service');

/** What the provider hands over to while there is no SDK. */
const NO_SDK = new otel.ProxyTracerProvider().getDelegate();

/** Whether spans are made. */
export function hasSdk(): boolean {
  const provider = otel.trace.getTracerProvider();
  return !(provider instanceof otel.ProxyTracerProvider) || provider.getDelegate() !== NO_SDK;
}

/** Work of the SDK, if there is one. What it throws fails nothing that is traced. */
function guarded<T>(work: () => T): T | undefined {
  try {
    return hasSdk() ? work() : undefined;
  } catch (error) {
    otel.diag.error('The OpenTelemetry SDK failed.', error);
    return undefined;
  }
}

/** Whether the SDK samples a trace that begins here. The span is never ended, so that nothing exports it. */
function newFlags(): number {
  return guarded(() => tracer.startSpan('decision', { root: true }))?.spanContext().traceFlags ?? 0;
}

/**
 * The place of a request in its caller's trace; undefined if there is none. An instrumentation of Node.js may
 * have begun a span by now. A caller without a key does not decide what is sampled.
 */
export function callersTrace(header: string, hasKey: boolean): string | undefined {
  const active = otel.trace.getSpanContext(otel.context.active());
  if (active) return formatTraceparent(active);
  const caller = parseTraceparent(header);
  return caller && formatTraceparent(hasKey ? caller : { ...caller, traceFlags: newFlags() });
}

/** The trace of an event that belongs to no other: its id is that of the event. */
export function traceOfEvent(eventId: string): string {
  const traceId = eventId.replaceAll('-', '');
  return formatTraceparent({ traceId, spanId: traceId.slice(0, 16), traceFlags: newFlags() });
}

/** A span that has begun, and its place as a `traceparent`. */
export type BegunSpan = readonly [span: otel.Span | undefined, traceparent: string];

/**
 * @param parent a `traceparent`. Without one, a trace begins. It stays the place if the SDK makes no span.
 */
export function beginSpan(name: string, parent: Parent, options: otel.SpanOptions): BegunSpan {
  const remote = parseTraceparent(parent);
  const outer = remote ? otel.trace.setSpanContext(otel.ROOT_CONTEXT, remote) : otel.ROOT_CONTEXT;
  const span = guarded(() => tracer.startSpan(name, options, outer));
  const made = span?.spanContext();
  if (made && otel.isSpanContextValid(made)) return [span, formatTraceparent(made)];
  return [span, remote ? formatTraceparent(remote) : traceOfEvent(randomUUID())];
}

/** Ends a span now, or at a time in epoch milliseconds. */
export function endSpan(
  span: otel.Span | undefined,
  isFailed = false,
  at?: number,
  attributes: otel.Attributes = {},
): void {
  guarded(() => {
    if (isFailed) span?.setStatus({ code: otel.SpanStatusCode.ERROR });
    span?.setAttributes(attributes).end(at);
  });
}

/** Adds a span of the past to a trace, if there is one. Times are in epoch milliseconds. */
export function addSpan(name: string, parent: Parent, from: number, to: number, attributes = {}): void {
  if (!parent || !hasSdk()) return;
  endSpan(beginSpan(name, parent, { startTime: from, attributes })[0], false, Math.max(from, to));
}

/** The key by which the SDK suppresses spans. */
const SUPPRESSED = otel.createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING');
/** In it, no instrumentation makes a span or adds a header. */
export const UNTRACED = otel.ROOT_CONTEXT.setValue(SUPPRESSED, true);
