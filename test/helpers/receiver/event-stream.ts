import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { serve } from '../http-server';
import { newSender } from './signed-delivery';

/** A stand-in for the `/events/stream` and the keys of a service. The cursors are `c1`, `c2`, and so on. */
export interface EventStream {
  /** Address of the service. */
  url: string;
  publicKeyPem: string;
  /** The queries of the requests for events, and the keys that came with them. */
  requests: { query: Record<string, string>; authorization: string | undefined }[];
  /** Requests for the keys. */
  keyRequests: number;
  /** Answers of the next requests for events, in place of the events. */
  nextAnswers: ((response: ServerResponse) => unknown)[];
  /** Records an event. `signedAs`: the text that is signed, if it is another. */
  record(this: void, event: object, signedAs?: object): void;
  close(this: void): Promise<void>;
}

const PAGE = 2;

/** Starts it on a free port. */
export async function startEventStream(): Promise<EventStream> {
  const sender = newSender();
  const keyId = 'did:web:carrier.example#webhooks';
  const recorded: object[] = [];
  const recording = new EventEmitter().setMaxListeners(0);
  const answer = async (query: Record<string, string>, response: ServerResponse): Promise<void> => {
    const after = Number(query.after?.slice(1) ?? 0);
    const left = new AbortController();
    response.once('close', () => left.abort());
    while (recorded.length === after && query.wait !== '0')
      await once(recording, 'event', { signal: left.signal });
    const events = recorded.slice(after, after + PAGE);
    const cursor = events.length === 0 ? query.after : `c${after + events.length}`;
    response.end(JSON.stringify({ events, cursor: cursor ?? 'c0' }));
  };
  const stream: Omit<EventStream, 'url' | 'close'> = {
    publicKeyPem: sender.publicKeyPem,
    requests: [],
    keyRequests: 0,
    nextAnswers: [],
    record(event, signedAs = event) {
      const body = JSON.stringify(event);
      const signature = sender.signed(JSON.stringify(signedAs)).headers['x-service-signature'];
      const contentType = 'application/json';
      recorded.push({ body, signature, keyId, contentType, cursor: `c${recorded.length + 1}` });
      recording.emit('event');
    },
  };
  const { url, close } = await serve((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://service');
    if (pathname === '/.well-known/jwks.json') {
      stream.keyRequests += 1;
      const jwk = { ...sender.publicKey.export({ format: 'jwk' }), kid: keyId };
      return void response.end(JSON.stringify({ keys: [jwk] }));
    }
    if (pathname !== '/events/stream') return void response.writeHead(404).end();
    const query = Object.fromEntries(searchParams);
    stream.requests.push({ query, authorization: request.headers.authorization });
    const next = stream.nextAnswers.shift();
    if (next) return void next(response);
    answer(query, response).catch(() => response.destroy());
  });
  return Object.assign(stream, { url, close });
}
