import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { serve } from '../http-server';

/** A span as OTLP/HTTP has it in JSON. */
export interface CollectedSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  links: { traceId: string }[];
}

interface Export {
  resourceSpans: { scopeSpans: { spans: CollectedSpan[] }[] }[];
}

/** A collector of spans, and the settings with which a service process sends it all of its own. */
export interface OtlpCollector extends AsyncDisposable {
  spans: CollectedSpan[];
  settings: Record<string, string>;
}

export async function startOtlpCollector(): Promise<OtlpCollector> {
  const spans: CollectedSpan[] = [];
  const server = await serve((request, response) => {
    void json(request).then((body) => {
      for (const { scopeSpans } of (body as Export).resourceSpans)
        for (const scope of scopeSpans) spans.push(...scope.spans);
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
  });
  const settings = {
    NODE_OPTIONS: `--require ${join(__dirname, 'otlp-sdk.cjs')}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: server.url,
  };
  return { ...server, spans, settings };
}
