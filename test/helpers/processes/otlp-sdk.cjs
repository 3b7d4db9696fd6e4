const { subscribe } = require('node:diagnostics_channel');
const { context, propagation, trace } = require('@opentelemetry/api');
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http');
const { NodeTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node');

// With NODE_OPTIONS="--require …" it sends spans to OTEL_EXPORTER_OTLP_ENDPOINT, each as it ends.
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] }).register();

// The instrumentation of undici adds the header of a span of its own to each request, also to one that has
// the header. It exports the whole URL, in which a node may have a key.
subscribe('undici:request:create', ({ request }) => {
  const span = trace.getTracer('undici').startSpan('undici');
  const set = (to, name, value) => to.addHeader(name, value);
  span.setAttribute('url.full', request.origin + request.path);
  propagation.inject(trace.setSpan(context.active(), span), request, { set });
  span.end();
});
