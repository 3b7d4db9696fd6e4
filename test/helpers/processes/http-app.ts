import { Writable } from 'node:stream';
import { createLifecycle } from '../../../service/base/lifecycle';
import { systemTime } from '../../../service/base/time';
import { createHttpApp, type HttpAppOptions } from '../../../service/http/app';
import type { Issuing, KeptDocument } from '../../../service/issuance/issue-document';
import type { DocumentBytes } from '../../../service/journal/issuance';
import { listen, type ListenOptions } from '../../../service/http/server';
import { createLogger } from '../../../service/base/logger';
import { leaveUnchecked } from '../described-answers';
import { owned } from '../resources';
import type { LogLine } from './running-service';

const ACCOUNT = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8';

/** A body of POST /create that has the right shape. */
export const REQUEST = JSON.stringify({ credentialSubject: {}, owner: ACCOUNT, holder: ACCOUNT });

/** Accepts every type as a Bill of Lading, and issues it with `issue`. */
export function accepting(issue: Issuing['issue']): Issuing {
  return { acceptedType: () => 'BILL_OF_LADING', issue };
}

/** A document whose token is mined by this transaction; at once by default. */
export function mintedDocument(
  document: DocumentBytes = { length: 2, parts: [Buffer.from('{}')] },
  mint = Promise.resolve('0x01'),
): KeptDocument {
  return { credentialId: 'x', tokenId: 'x', mint, minted: async () => ({ txHash: await mint, document }) };
}

/** The HTTP side of the service alone. */
export interface RunningHttpApp extends AsyncDisposable {
  url: string;
  log: LogLine[];
  close(): Promise<void>;
}

/** Creates it. It cannot issue documents unless the options say how. */
export function newHttpApp(options: Partial<HttpAppOptions>): ReturnType<typeof createHttpApp> {
  return createHttpApp({
    time: systemTime,
    lifecycle: createLifecycle(),
    issuing: accepting(() => Promise.reject(new Error('nothing is issued here'))),
    didDocumentPath: 'none',
    domain: undefined,
    signingKeys: undefined,
    apiKey: undefined,
    development: false,
    logger: createLogger({ level: 'silent', mask: (text) => text }),
    mask: (text) => text,
    pageKey: new Uint8Array(32),
    health: async () => ({ status: 'ok', feeds: [], issuing: undefined }),
    metrics: async () => '',
    ...options,
  });
}

/** Starts it on a free port. It cannot issue documents unless the options say how. */
export async function startHttpApp(
  options: Partial<HttpAppOptions>,
  ofServer: Partial<ListenOptions> = {},
): Promise<RunningHttpApp> {
  const log: LogLine[] = [];
  const destination = new Writable({
    write(line: Buffer, _encoding, done) {
      log.push(JSON.parse(line.toString()) as LogLine);
      done();
    },
  });
  const logger = createLogger({ level: 'debug', mask: (text) => text, destination });
  const handle = newHttpApp({ logger, ...options }).callback();
  const server = await listen((request, response) => void handle(request, response), '127.0.0.1', 0, {
    time: systemTime,
    ...ofServer,
  });
  leaveUnchecked(server.url);
  const { url } = server;
  return owned(`HTTP application on ${url}`, { url, log, close: () => server.close() }, 'close');
}
