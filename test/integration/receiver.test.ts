import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { open as openFile, type FileHandle } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  MOST_CONNECTIONS,
  MOST_LARGE,
  PATIENCE,
  startReceiver,
  type RunningReceiver,
} from '../../receiver/receiver';
import { EventStore, type StoredEvent } from '../../receiver/store';
import { onlyKey, type FindKey } from '../../receiver/verify';
import { newDeferred } from '../../service/base/time';
import { eventually } from '../helpers/eventually';
import { rawRequest, textOf, type RawRequest } from '../helpers/processes/raw-request';
import { replace } from '../helpers/processes/tdoc-in-process';
import { owned, stopLater } from '../helpers/resources';
import {
  newSender,
  post,
  sampleEvent,
  sampleRetraction,
  sampleTest,
} from '../helpers/receiver/signed-delivery';
import { temporaryFolder } from '../helpers/temporary-folder';

/** Node.js looks for late requests every 30 s by default. */
const HASTY = { requestTimeout: 300, headersTimeout: 100, connectionsCheckingInterval: 50 };
const MAX_BODY_BYTES = 1024 * 1024;

describe('receiver over HTTP', () => {
  const sender = newSender();
  const signed = (event: object): ReturnType<typeof sender.signed> => sender.signed(JSON.stringify(event));
  const event = sampleEvent(1);

  let folder: string;
  let eventsFile: string;
  let receiver: RunningReceiver;
  let processed: StoredEvent[];
  let handle: (event: StoredEvent) => void | Promise<void>;
  let problems: string[];

  let findKey: FindKey;

  const open = (options: Partial<Parameters<typeof startReceiver>[0]> = {}) =>
    startReceiver({
      findKey: (keyId) => findKey(keyId),
      eventsFile,
      host: '127.0.0.1',
      port: 0,
      onEvent: (event) => handle(event),
      onProblem: ({ reason, ...problem }) =>
        problems.push('status' in problem ? `${problem.status} ${reason}` : reason),
      ...options,
    });
  const start = async (options: { retractions?: boolean } = {}): Promise<void> => {
    receiver = owned('the receiver', await open(options), 'close');
  };
  /** Starts it again, after a change of its file. */
  const restart = async (change: () => void = () => undefined, options = {}): Promise<void> => {
    await receiver.close();
    change();
    await start(options);
  };
  const send = async (...events: object[]): Promise<void> => {
    for (const one of events) expect((await post(receiver.url, signed(one))).status).to.equal(200);
  };
  const handedOn = (count: number): Promise<unknown> =>
    eventually(`${count} are handed on`, () => processed.length === count);
  const stored = (): unknown[] =>
    readFileSync(eventsFile, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as unknown);

  beforeEach(async () => {
    folder = temporaryFolder().path;
    eventsFile = join(folder, 'new', 'events.jsonl');
    [processed, problems] = [[], []];
    findKey = onlyKey(sender.publicKey);
    handle = (event) => void processed.push(event);
    await start();
  });

  it('answers 200 to a signed event on any path, stores it and then processes it', async () => {
    let inFile: unknown;
    handle = (one) => {
      inFile = stored();
      processed.push(one);
    };
    expect((await post(`${receiver.url}/hooks/etr?tenant=a`, signed(event))).status).to.equal(200);
    expect(processed).to.deep.equal([event]);
    expect(inFile).to.deep.equal([event]);
  });

  it('ends a request whose body does not come in time, within a sixth of its limit', async () => {
    expect(PATIENCE.requestTimeout / PATIENCE.connectionsCheckingInterval).to.equal(6);
    await using hasty = owned(
      'hasty',
      await open({ eventsFile: join(folder, 'hasty'), patience: HASTY }),
      'close',
    );
    const late = await rawRequest(hasty.url, textOf('POST /', { 'Content-Length': 2 }, 'x'));
    await late.ended();
    expect(late.answer()).to.match(/^HTTP\/1\.1 408 /);
    expect(problems).to.deep.equal(['400 Body not complete']);
  });

  it('answers 401 to another key’s signature before it parses anything, and stores nothing', async () => {
    const refused = { status: 401, text: 'Invalid signature' };
    for (const body of [JSON.stringify(event), '{'])
      expect(await post(receiver.url, newSender().signed(body))).to.deep.equal(refused);
    expect(stored()).to.deep.equal([]);
    expect(processed).to.deep.equal([]);
    expect(problems).to.deep.equal(['401 Invalid signature', '401 Invalid signature']);
  });

  it('answers 401 to a header that is missing, garbage or repeated', async () => {
    const { body, headers } = signed(event);
    const signature = headers['x-service-signature'] ?? '';
    for (const value of [[], ['garbage'], ['ed25519='], ['ed25519=%%%'], [signature, signature]])
      expect(await postWithHeader(receiver.url, body, value)).to.equal(401);
    expect(await postWithHeader(receiver.url, body, [signature])).to.equal(200);
  });

  it('answers 400 to signed bytes that are no CloudEvent, and stores nothing', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const others = [{ specversion: '0.3' }, { id: '' }, { id: 7 }, { data: undefined }, { data: null }];
    const bodies = [
      ...['{', '', Buffer.from([0x22, 0xff, 0x22]), 'null', '[ ]', deep, '"text"'],
      ...others.map((other) => JSON.stringify({ ...event, ...other })),
    ];
    for (const body of bodies) expect((await post(receiver.url, sender.signed(body))).status).to.equal(400);
    expect(stored()).to.deep.equal([]);
    expect(problems).to.deep.equal(bodies.map(() => '400 Not an event'));
  });

  it('stores retractions, test events, and events of new types or without a pair once, by id', async () => {
    const split = { ...event, type: 'com.service.etr.split', data: { transactionHash: '0x12', logIndex: 1 } };
    const others = [sampleRetraction(1), sampleRetraction(2), sampleTest(1), sampleTest(2), split];
    await send(...others, split);
    await restart();
    await send(...others);
    expect(stored()).to.deep.equal(others);
    expect(processed).to.deep.equal(others);
    expect(problems).to.deep.equal([]);
  });

  it('with retractions, takes an event that comes again under another id for another event', async () => {
    await restart(undefined, { retractions: true });
    const again = { ...event, id: '01a20301-e52c-7491-a676-000000000099' };
    await send(event, event, sampleRetraction(1), again, event, again);
    expect(stored()).to.deep.equal([event, sampleRetraction(1), again]);
  });

  it('hands events on one after the other, and an event again whose handling failed', async () => {
    const order: string[] = [];
    let failures = 1;
    handle = async ({ data }) => {
      const number = Number(data.transactionHash);
      order.push(`begin ${number}`);
      await Promise.resolve();
      if (number === 2 && failures-- > 0) throw new Error('no database');
      order.push(`end ${number}`);
    };
    await send(...[1, 2, 3].map(sampleEvent));
    await eventually('all are handed on', () => order.includes('end 3'));
    expect(order).to.deep.equal(['begin 1', 'end 1', 'begin 2', 'begin 2', 'end 2', 'begin 3', 'end 3']);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.match(/^Event .* is stored, and comes again, .* no database$/);
  });

  it('hands each event on in a turn of its own, to answer meanwhile, and knows a long file', async () => {
    const lines = Array.from({ length: 1_500 }, (_, number) => `${JSON.stringify(sampleEvent(number))}\n`);
    let turn = 0;
    let next: NodeJS.Immediate;
    const count = (): void => {
      turn++;
      next = setImmediate(count);
    };
    count();
    stopLater('the count of turns', () => clearImmediate(next));
    const turns = new Set<number>();
    let isAnswered = false;
    handle = async (one) => {
      processed.push(one);
      turns.add(turn);
      if (processed.length === 1) await eventually('a delivery is answered', () => isAnswered);
    };
    await restart(() => writeFileSync(eventsFile, lines.join('')));
    await send(sampleEvent(1_500), sampleEvent(0), sampleEvent(1_499));
    isAnswered = true;
    await handedOn(1_501);
    expect(turns.size).to.equal(1_501);
    expect(processed).to.deep.equal(stored());
  });

  it('reports a damaged line, keeps it, and goes on without one that a crash cut off', async () => {
    const lines = [JSON.stringify(event), '\0\0{"specversion":', JSON.stringify(sampleEvent(2))];
    const cut = JSON.stringify(sampleEvent(3)).slice(0, -20);
    await restart(() => writeFileSync(eventsFile, `${lines.join('\n')}\n${cut}`));
    await send(event, sampleEvent(2), sampleEvent(3));
    await handedOn(3);
    expect(processed).to.deep.equal([1, 2, 3].map(sampleEvent));
    const now = [...lines, JSON.stringify(sampleEvent(3)), ''].join('\n');
    expect(readFileSync(eventsFile, 'utf8')).to.equal(now);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.match(/^Line 2 of .*events\.jsonl is damaged/);
  });

  it('leaves a file without events as it is, and any file if its port is taken', async () => {
    const port = Number(new URL(receiver.url).port);
    for (const [text, options, problem] of [
      ['# Notes\n\nnone yet', {}, /no file of received events\. Set RECEIVER_EVENTS_FILE/],
      ['none yet', {}, /no file of received events\. Set RECEIVER_EVENTS_FILE/],
      ['{"specversion":"1.0","id":"', { port }, /EADDRINUSE/],
    ] as const) {
      const eventsFile = join(folder, `other of ${text.length} bytes`);
      writeFileSync(eventsFile, text, { mode: 0o644 });
      const outcome = await open({ eventsFile, ...options }).catch(String);
      expect(outcome).to.match(problem);
      expect(readFileSync(eventsFile, 'utf8')).to.equal(text);
      expect(statSync(eventsFile).mode & 0o777).to.equal(0o644);
    }
  });

  it('hands all events on again if the one that was handed on last is gone from the file', async () => {
    await send(...[1, 2, 3].map(sampleEvent));
    await handedOn(3);
    processed = [];
    const others = [4, 5, 6, 7].map(sampleEvent);
    const lines = others.map((one) => `${JSON.stringify(one)}\n`);
    await restart(() => writeFileSync(eventsFile, lines.join('')));
    await handedOn(4);
    expect(processed).to.deep.equal(others);
  });

  it('hands nothing on twice after an edit of other lines, which leaves no newline at the end', async () => {
    await send(...[1, 2, 3].map(sampleEvent));
    await handedOn(3);
    const [, ...left] = readFileSync(eventsFile, 'utf8').trimEnd().split('\n');
    await restart(() => writeFileSync(eventsFile, left.join('\n')));
    await send(...[3, 4].map(sampleEvent));
    await handedOn(4);
    expect(processed).to.deep.equal([1, 2, 3, 4].map(sampleEvent));
    expect(stored()).to.deep.equal([2, 3, 4].map(sampleEvent));
  });

  it('takes an event that an earlier service stored, with an address as subject', async () => {
    const data = { ...event.data, tokenId: '0', tokenIdHex: undefined, logIndex: 417 };
    const earlier = JSON.stringify({ ...event, subject: data.registryAddress, data });
    await send(JSON.parse(earlier) as object);
    expect(processed).to.deep.equal([JSON.parse(earlier)]);
  });

  it('hands on after a restart what was stored and not handled, and nothing else', async () => {
    await send(event);
    handle = () => Promise.reject(new Error('no database'));
    await send(...[2, 3].map(sampleEvent));
    await restart(() => {
      processed = [];
      handle = (one) => void processed.push(one);
    });
    await send(sampleEvent(4));
    await handedOn(3);
    expect(processed).to.deep.equal([2, 3, 4].map(sampleEvent));
  });

  it('takes a body of 1 MiB, answers 413 to one byte more, and 405 to anything but POST', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
      const response = await fetch(receiver.url, { method });
      expect([response.status, response.headers.get('allow')], method).to.deep.equal([405, 'POST']);
    }
    const room = MAX_BODY_BYTES - JSON.stringify({ ...event, padding: '' }).length;
    const ofSize = (padding: number): object => ({ ...event, padding: 'x'.repeat(padding) });
    expect((await post(receiver.url, signed(ofSize(room + 1)))).status).to.equal(413);
    expect(stored()).to.have.length(0);
    await send(ofSize(room));
  });

  /** A body of 1 MiB without its last byte. */
  const unfinished = (): Promise<RawRequest> =>
    rawRequest(
      receiver.url,
      textOf('POST /', { 'Content-Length': MAX_BODY_BYTES }, 'x'.repeat(MAX_BODY_BYTES - 1)),
    );
  const statusOf = (sent: RawRequest): string | undefined => /^HTTP\/1\.1 (\d+)/.exec(sent.answer())?.[1];

  it(`answers 503 to a large body while ${MOST_LARGE} others arrive, and takes events`, async () => {
    const others = await Promise.all(Array.from({ length: MOST_LARGE }, unfinished));
    const large = sender.signed(JSON.stringify({ ...event, padding: 'x'.repeat(100_000) }));
    await eventually(
      'all have begun to arrive',
      async () => (await post(receiver.url, large)).status === 503,
    );
    await send(sampleEvent(2));
    for (const { socket } of others) socket.write('x');
    await eventually('each of them is answered', () => others.every((one) => statusOf(one) === '401'));
    expect((await post(receiver.url, large)).status).to.equal(200);
    for (const { socket } of others) socket.destroy();
  });

  /** Keys come only after `release`. `asked` counts the requests that wait for one. */
  function slowKeys(): { release: () => void; asked: () => number } {
    const { promise, resolve } = newDeferred<void>();
    const quick = findKey;
    let asked = 0;
    findKey = async (keyId) => {
      asked += 1;
      await promise;
      return quick(keyId);
    };
    return { release: resolve, asked: () => asked };
  }

  it(`holds ${MOST_LARGE} large bodies at once while keys are fetched, and answers 503 to more`, async () => {
    const { release, asked } = slowKeys();
    const large = (number: number) => signed({ ...sampleEvent(number), padding: 'x'.repeat(100_000) });
    const held = Array.from({ length: MOST_LARGE }, (_, index) => post(receiver.url, large(index + 1)));
    await eventually('all have arrived', () => asked() === MOST_LARGE);
    expect((await post(receiver.url, large(100))).status).to.equal(503);
    release();
    for (const { status } of await Promise.all(held)) expect(status).to.equal(200);
    expect((await post(receiver.url, large(100))).status).to.equal(200);
  });

  it('cuts off a sender that does not wait for an answer', async () => {
    const { release, asked } = slowKeys();
    const one = textOf('POST /', { 'Content-Length': 1, 'X-Service-Signature': 'x' }, 'x');
    const two = await rawRequest(receiver.url, one + one);
    await two.ended();
    expect(two.answer()).to.equal('');
    release();
    expect(asked()).to.be.at.most(1);
    await send(event);
  });

  it('gives the place of the connection that is the longest without an answer to a new one', async () => {
    const [oldest, active] = [await rawRequest(receiver.url, 'POST'), await rawRequest(receiver.url, '')];
    const others: RawRequest[] = [];
    while (others.length < MOST_CONNECTIONS - 2) others.push(await rawRequest(receiver.url, ''));
    active.socket.write(textOf('GET /', {}));
    await eventually('it is answered', () => statusOf(active) === '405');
    await send(event);
    await oldest.ended();
    expect(statusOf(oldest)).to.equal('503');
    expect(active.socket.closed).to.equal(false);
    for (const { socket } of [active, ...others]) socket.destroy();
  });

  it('answers 200 to a duplicate and processes it once, even under another id or hash case', async () => {
    const event = sampleEvent(0xabc);
    const data = { ...event.data, transactionHash: event.data.transactionHash.replace('abc', 'ABC') };
    await send(event, event, { ...event, id: 'another' }, { ...event, data });
    expect(processed).to.have.length(1);
    expect(stored()).to.have.length(1);
  });

  it('tells events by another log, type, payload or token at the same position', async () => {
    const otherLog = { ...event, data: { ...event.data, logIndex: 4 } };
    const otherType = { ...event, id: 'made with the hash of the block too', type: 'com.service.etr.shred' };
    const otherPayload = { ...event, id: 'another', data: { ...event.data, payload: { remark: '0x01' } } };
    const ofOtherToken = { ...event, id: 'a third', subject: '7', data: { ...event.data, tokenId: '7' } };
    const events = [event, otherLog, otherType, otherPayload, ofOtherToken];
    await send(...events);
    expect(stored()).to.deep.equal(events);
  });

  it('stores concurrent duplicates once, and concurrent events each on a line of its own', async () => {
    const numbers = Array.from({ length: 60 }, (_, index) => index % 20);
    await Promise.all(numbers.map((number) => send(sampleEvent(number))));
    expect(stored()).to.have.deep.members(numbers.slice(0, 20).map(sampleEvent));
    expect(processed).to.have.length(20);
  });

  it('answers neither an event nor its duplicate before the event is on disk', async () => {
    const order: string[] = [];
    const calls = [await hold(eventsFile, 'write'), await hold(eventsFile, 'datasync')];
    const answer = (): Promise<unknown> => send(event).then(() => order.push('answered'));
    const answers = Promise.all([answer(), answer()]);
    for (const { method, reached, release } of calls) {
      await Promise.race([reached, answers]);
      // An answer that does not wait for the disk would be here before these.
      for (const other of ['GET', 'PUT', 'DELETE'])
        expect((await fetch(receiver.url, { method: other })).status).to.equal(405);
      order.push(method);
      release();
    }
    await answers;
    expect(order).to.deep.equal(['write', 'datasync', 'answered', 'answered']);
  });

  it('stores no event if an earlier one could not be written', async () => {
    const path = join(folder, 'failing.jsonl');
    const store = owned('the store', await EventStore.open(path, { onEvent: () => undefined }), 'close');
    const file = await openFile(path);
    const files = Object.getPrototypeOf(file) as { write: FileHandle['write'] };
    await file.close();
    const write = (): Promise<never> => {
      goOn();
      return Promise.reject(new Error('no space left'));
    };
    const goOn = stopLater('a failing write', replace(files, { write }));
    const added = [1, 2].map((number) => store.add(sampleEvent(number)));
    for (const one of await Promise.allSettled(added)) expect(one.status).to.equal('rejected');
    for (const number of [1, 2]) expect(await store.add(sampleEvent(number))).to.equal('stored');
  });

  it('answers 401 under an unknown key, 500 if the keys cannot be fetched, and stores neither', async () => {
    let areFetched = true;
    findKey = async (keyId) => {
      if (!areFetched) throw new Error('no answer');
      return keyId === 'known' ? sender.publicKey : undefined;
    };
    const sendUnder = (keyId: string): ReturnType<typeof post> => {
      const { body, headers } = signed(event);
      return post(receiver.url, { body, headers: { ...headers, 'X-Service-Key-Id': keyId } });
    };
    expect(await sendUnder('unknown')).to.deep.equal({ status: 401, text: 'Invalid signature' });
    areFetched = false;
    expect(await sendUnder('known')).to.deep.equal({ status: 500, text: 'Not stored, send again' });
    expect(stored()).to.deep.equal([]);
    areFetched = true;
    expect((await sendUnder('known')).status).to.equal(200);
    expect(problems).to.deep.equal(['401 Invalid signature', '500 Not stored, send again: no answer']);
  });
});

/** Holds the calls of a method of all open files, from the first call on, until they are released. */
async function hold(anyFile: string, method: 'write' | 'datasync') {
  const file = await openFile(anyFile);
  const files = Object.getPrototypeOf(file) as Record<string, (...args: unknown[]) => Promise<unknown>>;
  await file.close();
  const original = files[method];
  const [reached, released] = [newDeferred<undefined>(), newDeferred<undefined>()];
  files[method] = async function (this: FileHandle, ...args) {
    reached.resolve(undefined);
    await released.promise;
    return original?.apply(this, args);
  };
  const release = stopLater(`holding ${method}`, () => {
    if (original) files[method] = original;
    released.resolve(undefined);
  });
  return { method, reached: reached.promise, release };
}

/** Sends repeated headers as they are; fetch would join them. */
function postWithHeader(url: string, body: Buffer, values: string[]): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    if (values.length > 0) sent.setHeader('X-Service-Signature', values);
    sent.once('error', reject);
    sent.end(body);
  });
}
