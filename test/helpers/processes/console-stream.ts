import type { Overview } from '../../../service/console/views';

/** A stream of the console's events. */
export interface ConsoleStream {
  status: number;
  overviews: Overview[];
  /** The names of all events that arrived, in order. */
  events: string[];
  /** Resolves when the service, or `close`, has ended it. */
  ended: Promise<void>;
  close(): void;
}

/** Opens a stream, and reads it until it ends. */
export async function openConsoleStream(serviceUrl: string, cookie: string): Promise<ConsoleStream> {
  const closing = new AbortController();
  const response = await fetch(`${serviceUrl}/console/api/stream`, {
    headers: { Cookie: cookie },
    signal: closing.signal,
  });
  const stream: ConsoleStream = {
    status: response.status,
    overviews: [],
    events: [],
    ended: Promise.resolve(),
    close: () => closing.abort(),
  };
  stream.ended = read(response, stream).catch(() => undefined);
  return stream;
}

async function read({ body }: Response, { overviews, events }: ConsoleStream): Promise<void> {
  let text = '';
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const [, name = 'comment'] = /^event: (\w+)$/m.exec(part) ?? [];
      const [, data = '{}'] = /^data: (.*)$/m.exec(part) ?? [];
      events.push(name);
      if (name === 'overview') overviews.push(JSON.parse(data) as Overview);
    }
  }
}
