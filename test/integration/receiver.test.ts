import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import type { ChainEvent } from '../../client/events';
import { createReceiver, startReceiver, type RunningReceiver } from '../../receiver/receiver';
import type { StoredEvent } from '../../receiver/store';
import { onlyKey, type FindKey } from '../../receiver/verify';
import { eventually } from '../helpers/eventually';
import { codeBlocks, readDocument } from '../helpers/pages/markdown';
import { track } from '../helpers/resources';
import {
  newSender,
  post,
  sampleEvent,
  sampleRetraction,
  sampleTest,
} from '../helpers/receiver/signed-delivery';
import { temporaryFolder } from '../helpers/temporary-folder';

const MAX_BODY_BYTES = 1024 * 1024;

describe('receiver over HTTP', () => {
  const sender = newSender();
  const delivery = (number: number): ReturnType<typeof sender.signed> =>
    sender.signed(JSON.stringify(sampleEvent(number)));

  let folder: ReturnType<typeof temporaryFolder>;
  let eventsFile: string;
  let receiver: RunningReceiver;
  let untrack: () => void;
  let processed: StoredEvent[];
  let handle: (event: StoredEvent) => void | Promise<void>;
  let problems: (number | string)[];

  const start = async ({ retractions = false } = {}): Promise<void> => {
    receiver = await startReceiver({
      findKey: onlyKey(sender.publicKey),
      eventsFile,
      host: '127.0.0.1',
      port: 0,
      retractions,
      onEvent: (event) => handle(event),
      onProblem: ({ reason, ...problem }) =>
        problems.push('status' in problem ? Number(problem.status) : reason),
    });
    untrack = track(`receiver on ${receiver.url}`);
  };
  const stop = async (): Promise<void> => {
    await receiver.close();
    untrack();
  };
  const stored = (): unknown[] =>
    readFileSync(eventsFile, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as unknown);

  beforeEach(async () => {
    folder = temporaryFolder();
    eventsFile = join(folder.path, 'new', 'events.jsonl');
    [processed, problems] = [[], []];
    handle = (event) => void processed.push(event);
    await start();
  });

  afterEach(async () => {
    await stop();
    folder.remove();
  });

  it('answers 200 to a signed event on any path, stores it and processes it', async () => {
    expect((await post(`${receiver.url}/hooks/etr?tenant=a`, delivery(1))).status).to.equal(200);
    expect(stored()).to.deep.equal([sampleEvent(1)]);
    expect(processed).to.deep.equal([sampleEvent(1)]);
  });

  it('stores an event before it processes it', async () => {
    let inFile = -1;
    processed.push = () => (inFile = stored().length);
    await post(receiver.url, delivery(1));
    expect(inFile).to.equal(1);
  });

  it('answers 401 "Invalid signature" to another key’s signature, and stores nothing', async () => {
    const forged = newSender().signed(delivery(1).body);
    expect(await post(receiver.url, forged)).to.deep.equal({ status: 401, text: 'Invalid signature' });
    expect(stored()).to.deep.equal([]);
    expect(processed).to.deep.equal([]);
    expect(problems).to.deep.equal([401]);
  });

  it('answers 401 to reformatted JSON with the signature of the original', async () => {
    const { body, headers } = delivery(1);
    const rewritten = Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 1));
    expect((await post(receiver.url, { body: rewritten, headers })).status).to.equal(401);
  });

  it('answers 401 to a header that is missing, garbage or repeated', async () => {
    const { body, headers } = delivery(1);
    const signature = headers['x-service-signature'] ?? '';
    for (const value of [[], ['garbage'], ['ed25519='], ['ed25519=%%%'], [signature, signature]]) {
      expect(await postWithHeader(receiver.url, body, value)).to.equal(401);
    }
    expect(await postWithHeader(receiver.url, body, [signature])).to.equal(200);
  });

  it('does not parse a body whose signature is wrong', async () => {
    const notJson = newSender().signed('{');
    expect((await post(receiver.url, notJson)).status).to.equal(401);
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
    expect(problems).to.deep.equal(bodies.map(() => 400));
  });

  const event = sampleEvent(1);

  it('stores an event of a type that is new, or that has no pair, once, by its id', async () => {
    const split = { ...event, type: 'com.service.etr.split', data: { transactionHash: '0x12', logIndex: 1 } };
    const send = async (): Promise<number> =>
      (await post(receiver.url, sender.signed(JSON.stringify(split)))).status;
    expect([await send(), await send()]).to.deep.equal([200, 200]);
    await stop();
    await start();
    expect(await send()).to.equal(200);
    expect(stored()).to.deep.equal([split]);
    expect(processed).to.deep.equal([split]);
  });

  it('knows every event type of docs/webhooks.md', async () => {
    const types = readDocument('docs/webhooks.md').sections.flatMap((section) =>
      codeBlocks(section, 'json').flatMap((text) => (JSON.parse(text) as { type?: string }).type ?? []),
    );
    expect(new Set(types)).to.have.property('size', 16);
    for (const type of types)
      expect((await post(receiver.url, sender.signed(JSON.stringify({ ...event, type })))).status).to.equal(
        200,
      );
    expect(processed.map(({ type }) => type)).to.have.members([...new Set(types)]);
  });

  it('stores retractions and test events once each, by their id', async () => {
    const others = [sampleRetraction(1), sampleRetraction(2), sampleTest(1), sampleTest(2)];
    const send = async (): Promise<void> => {
      for (const event of others)
        expect((await post(receiver.url, sender.signed(JSON.stringify(event)))).status).to.equal(200);
    };
    await send();
    await stop();
    await start();
    await send();
    expect(stored()).to.deep.equal(others);
    expect(processed).to.deep.equal(others);
    expect(problems).to.deep.equal([]);
  });

  it('with retractions, takes an event that comes again under another id for another event', async () => {
    await stop();
    await start({ retractions: true });
    const again = { ...event, id: '01a20301-e52c-7491-a676-000000000099' };
    const events = [event, event, sampleRetraction(1), again, event, again];
    for (const one of events) await post(receiver.url, sender.signed(JSON.stringify(one)));
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
    for (const number of [1, 2, 3]) expect((await post(receiver.url, delivery(number))).status).to.equal(200);
    await eventually('all are handed on', () => order.includes('end 3'));
    expect(order).to.deep.equal(['begin 1', 'end 1', 'begin 2', 'begin 2', 'end 2', 'begin 3', 'end 3']);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.match(/^Event .* is stored, and comes again, .* no database$/);
  });

  it('answers deliveries while it hands many events on', async () => {
    await stop();
    const lines = Array.from({ length: 5_000 }, (_, number) => `${JSON.stringify(sampleEvent(number))}\n`);
    writeFileSync(eventsFile, lines.join(''));
    await start();
    expect((await post(receiver.url, delivery(5_000))).status).to.equal(200);
    expect(processed.length).to.be.below(5_000);
    await eventually('all are handed on', () => processed.length === 5_001);
    expect(processed).to.deep.equal(stored());
  });

  it('hands all events on again if the one that was handed on last is gone from the file', async () => {
    for (const number of [1, 2, 3]) await post(receiver.url, delivery(number));
    await stop();
    const others = [4, 5, 6, 7].map(sampleEvent);
    writeFileSync(eventsFile, others.map((one) => `${JSON.stringify(one)}\n`).join(''));
    processed = [];
    await start();
    await eventually('all are handed on', () => processed.length === 4);
    expect(processed).to.deep.equal(others);
  });

  it('hands nothing on twice after an edit of other lines', async () => {
    for (const number of [1, 2, 3]) await post(receiver.url, delivery(number));
    await eventually('all are handed on', () => processed.length === 3);
    await stop();
    const [, ...left] = readFileSync(eventsFile, 'utf8').trimEnd().split('\n');
    writeFileSync(eventsFile, left.join('\n'));
    await start();
    await post(receiver.url, delivery(4));
    await eventually('the new one is handed on', () => processed.length === 4);
    expect(processed).to.deep.equal([1, 2, 3, 4].map(sampleEvent));
  });

  it('hands on after a restart what was stored and not handled, and nothing else', async () => {
    await post(receiver.url, delivery(1));
    handle = () => Promise.reject(new Error('no database'));
    for (const number of [2, 3]) await post(receiver.url, delivery(number));
    await stop();
    processed = [];
    handle = (event) => void processed.push(event);
    await start();
    await post(receiver.url, delivery(4));
    await eventually('all are handed on', () => processed.length === 3);
    expect(processed).to.deep.equal([2, 3, 4].map(sampleEvent));
  });

  it('takes an event that an earlier service stored: address as subject, logIndex of the block', async () => {
    const { data, ...envelope } = event;
    const payload = { account: data.registryAddress, remark: '0x' };
    const ofRegistry = { ...data, tokenId: '0', tokenIdHex: undefined, logIndex: 417, payload };
    const earlier = { ...envelope, type: 'com.service.etr.registry_paused', subject: data.registryAddress };
    const body = JSON.stringify({ ...earlier, data: ofRegistry });
    expect((await post(receiver.url, sender.signed(body))).status).to.equal(200);
    expect(processed).to.deep.equal([JSON.parse(body)]);
  });

  it('answers 405 with Allow to anything but POST', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
      const response = await fetch(receiver.url, { method });
      expect([response.status, response.headers.get('allow')], method).to.deep.equal([405, 'POST']);
    }
  });

  it('takes a body of 1 MiB and answers 413 to one byte more', async () => {
    const event = { ...sampleEvent(1), padding: '' };
    const room = MAX_BODY_BYTES - JSON.stringify(event).length;
    const ofSize = (padding: number): ReturnType<typeof sender.signed> =>
      sender.signed(JSON.stringify({ ...event, padding: 'x'.repeat(padding) }));
    expect((await post(receiver.url, ofSize(room + 1))).status).to.equal(413);
    expect(stored()).to.have.length(0);
    expect((await post(receiver.url, ofSize(room))).status).to.equal(200);
  });

  it('answers 200 to a duplicate and processes it once, even under another id or hash case', async () => {
    const event = sampleEvent(0xabc);
    const data = { ...event.data, transactionHash: event.data.transactionHash.replace('abc', 'ABC') };
    for (const copy of [event, event, { ...event, id: 'another' }, { ...event, data }]) {
      expect((await post(receiver.url, sender.signed(JSON.stringify(copy)))).status).to.equal(200);
    }
    expect(processed).to.have.length(1);
    expect(stored()).to.have.length(1);
  });

  it('treats another log of the same transaction as another event', async () => {
    const event = sampleEvent(1);
    const other = { ...event, data: { ...event.data, logIndex: 4 } };
    await post(receiver.url, sender.signed(JSON.stringify(event)));
    await post(receiver.url, sender.signed(JSON.stringify(other)));
    expect(stored()).to.deep.equal([event, other]);
  });

  it('treats another event at the position of a reorganised one as another event', async () => {
    const event = sampleEvent(2);
    const other = { ...event, id: 'made with the hash of the block too', type: 'com.service.etr.shred' };
    const third = { ...event, id: 'another', data: { ...event.data, payload: { remark: '0x01' } } };
    const ofOtherToken = { ...event, id: 'a third', subject: '7', data: { ...event.data, tokenId: '7' } };
    const events = [event, other, third, ofOtherToken];
    for (const one of events) await post(receiver.url, sender.signed(JSON.stringify(one)));
    expect(stored()).to.deep.equal(events);
  });

  it('stores concurrent duplicates once, and concurrent events each on a line of its own', async () => {
    const numbers = Array.from({ length: 60 }, (_, index) => index % 20);
    const answers = await Promise.all(numbers.map((number) => post(receiver.url, delivery(number))));
    expect(answers.every(({ status }) => status === 200)).to.equal(true);
    const hashes = (stored() as ChainEvent[]).map(({ data }) => data.transactionHash);
    expect(hashes).to.have.length(20);
    expect(new Set(hashes).size).to.equal(20);
    expect(processed).to.have.length(20);
  });

  it('recognises stored events after a restart', async () => {
    await post(receiver.url, delivery(1));
    await stop();
    await start();
    expect((await post(receiver.url, delivery(1))).status).to.equal(200);
    expect((await post(receiver.url, delivery(2))).status).to.equal(200);
    expect(stored()).to.deep.equal([sampleEvent(1), sampleEvent(2)]);
    expect(processed).to.have.length(2);
  });

  it('removes a line that a crash left incomplete, and takes its event when it is sent again', async () => {
    await post(receiver.url, delivery(1));
    await stop();
    appendFileSync(eventsFile, JSON.stringify(sampleEvent(2)).slice(0, -20));
    await start();
    expect(stored()).to.deep.equal([sampleEvent(1)]);
    await post(receiver.url, delivery(2));
    expect(stored()).to.deep.equal([sampleEvent(1), sampleEvent(2)]);
    expect(processed).to.have.length(2);
  });

  it('keeps a whole last line that an editor left without its newline', async () => {
    await stop();
    writeFileSync(eventsFile, JSON.stringify(sampleEvent(1)));
    await start();
    expect((await post(receiver.url, delivery(1))).status).to.equal(200);
    expect((await post(receiver.url, delivery(2))).status).to.equal(200);
    expect(stored()).to.deep.equal([sampleEvent(1), sampleEvent(2)]);
  });

  it('reads back a file that takes more than one read', async () => {
    await stop();
    const lines = Array.from({ length: 500 }, (_, number) => `${JSON.stringify(sampleEvent(number))}\n`);
    writeFileSync(eventsFile, lines.join(''));
    await start();
    await post(receiver.url, delivery(0));
    await post(receiver.url, delivery(499));
    await post(receiver.url, delivery(500));
    expect(stored()).to.have.length(501);
    await eventually('all are handed on', () => processed.length === 501);
    expect(processed).to.deep.equal(stored());
  });

  it('answers 401 under an unknown key, 500 if the keys cannot be fetched, and stores neither', async () => {
    let areFetched = true;
    const findKey: FindKey = async (keyId) => {
      if (!areFetched) throw new Error('no answer');
      return keyId === 'known' ? sender.publicKey : undefined;
    };
    const otherFile = join(folder.path, 'other.jsonl');
    const reasons: string[] = [];
    const other = await startReceiver({
      findKey,
      eventsFile: otherFile,
      host: '127.0.0.1',
      port: 0,
      onEvent: () => undefined,
      onProblem: ({ reason }) => reasons.push(reason),
    });
    const send = (keyId: string): ReturnType<typeof post> => {
      const { body, headers } = delivery(1);
      return post(other.url, { body, headers: { ...headers, 'X-Service-Key-Id': keyId } });
    };
    try {
      expect(await send('unknown')).to.deep.equal({ status: 401, text: 'Invalid signature' });
      areFetched = false;
      expect(await send('known')).to.deep.equal({ status: 500, text: 'Not stored, send again' });
      expect(readFileSync(otherFile, 'utf8')).to.equal('');
      areFetched = true;
      expect((await send('known')).status).to.equal(200);
    } finally {
      await other.close();
    }
    expect(reasons).to.deep.equal(['Invalid signature', 'Not stored, send again: no answer']);
  });

  it('does not start when another receiver uses the port', async () => {
    const otherFile = join(folder.path, 'other.jsonl');
    const port = Number(new URL(receiver.url).port);
    const options = { findKey: onlyKey(sender.publicKey), eventsFile: otherFile, host: '127.0.0.1', port };
    const failure = await startReceiver({ ...options, onEvent: () => undefined }).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code,
    );
    expect(failure).to.equal('EADDRINUSE');
  });
});

describe('receiver whose store fails', () => {
  it('answers 500, and 200 when the event is sent again', async () => {
    const sender = newSender();
    const problems: unknown[] = [];
    let attempts = 0;
    const app = createReceiver({
      findKey: onlyKey(sender.publicKey),
      store: {
        add: () => {
          attempts += 1;
          return attempts === 1 ? Promise.reject(new Error('no space left')) : Promise.resolve('stored');
        },
      },
      onProblem: (problem) => problems.push(problem),
    });
    const server = createServer(app.callback() as Parameters<typeof createServer>[1]);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const delivery = sender.signed(JSON.stringify(sampleEvent(1)));
    try {
      expect((await post(url, delivery)).status).to.equal(500);
      expect((await post(url, delivery)).status).to.equal(200);
      expect(problems).to.deep.equal([{ status: 500, reason: 'Not stored, send again: no space left' }]);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

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
