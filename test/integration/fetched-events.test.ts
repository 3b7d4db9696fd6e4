import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { createClient, FetchError, type EventsOptions, type FetchedEvent } from '../../client/create-client';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startEventStream, type EventStream } from '../helpers/receiver/event-stream';
import { newSender, sampleEvent } from '../helpers/receiver/signed-delivery';

const KEY = 'an-admin-api-key-of-a-test';

describe('events of the client', () => {
  let stream: EventStream;

  beforeEach(async () => {
    stream = await startEventStream();
    for (const number of [1, 2, 3]) stream.record(sampleEvent(number));
  });
  afterEach(() => stream.close());

  const events = (options: EventsOptions = {}, url = stream.url): AsyncGenerator<FetchedEvent> =>
    createClient({ url, key: KEY }).events(options);
  /** The events that come, and the error after them. */
  const all = async (fetched: AsyncGenerator<FetchedEvent>) => {
    const seen: FetchedEvent[] = [];
    try {
      for await (const one of fetched) seen.push(one);
      return { seen, error: undefined };
    } catch (error) {
      return { seen, error: error as FetchError };
    }
  };
  const refusing =
    (status: number, headers: Record<string, string>, body: string) =>
    (response: ServerResponse): unknown =>
      response.writeHead(status, headers).end(body);

  it('come verified and in order, each with the cursor that goes on after it', async () => {
    const first = await all(events({ follow: false }));
    expect(first.error).to.equal(undefined);
    expect(first.seen.map(({ event, cursor }) => [event, cursor])).to.deep.equal(
      [1, 2, 3].map((number) => [sampleEvent(number), `c${number}`]),
    );
    const second = await all(events({ follow: false, after: 'c2' }));
    expect(second.seen.map(({ event }) => event)).to.deep.equal([sampleEvent(3)]);
    expect(stream.keyRequests).to.equal(2);
  });

  it('are selected by the query, and the key goes to the service alone', async () => {
    const types = 'com.service.etr.minted,com.service.etr.burned';
    await all(events({ types, retractions: 'true', limit: 7, follow: false, after: 'c3' }));
    expect(stream.requests).to.deep.equal([
      {
        query: { types, retractions: 'true', limit: '7', wait: '0', after: 'c3' },
        authorization: `Bearer ${KEY}`,
      },
    ]);
    const elsewhere = await startEventStream();
    const location = `${elsewhere.url}/events/stream`;
    stream.nextAnswers.push(refusing(302, { location }, ''));
    expect((await all(events())).error).to.include({ code: 'HTTP_302' });
    expect(elsewhere.requests).to.deep.equal([]);
    await elsewhere.close();
  });

  it('go on while it waits, until its signal ends them', async () => {
    const stop = new AbortController();
    const fetched = events({ after: 'c3', signal: stop.signal });
    const next = fetched.next();
    stream.record(sampleEvent(4));
    expect((await next).value).to.include({ cursor: 'c4' });
    const last = fetched.next();
    stop.abort();
    expect(await last).to.deep.equal({ done: true, value: undefined });
  });

  it('are neither missed nor repeated when requests fail', async () => {
    const problems: string[] = [];
    const fetched = events({ after: 'c3', onProblem: ({ reason }) => problems.push(reason) });
    const failures: [(response: ServerResponse) => unknown, RegExp][] = [
      [refusing(503, {}, '<html>'), /: the answer is 503$/],
      [refusing(429, { 'X-Error-Code': 'KEY_ATTEMPTS' }, '{}'), /: the answer is 429$/],
      [(response) => response.destroy(), /: (other side closed|read ECONNRESET)$/],
      [(response) => response.writeHead(200, { 'content-length': '99' }).end('{'), /.+/],
      [refusing(200, {}, '<html>'), /not valid JSON$/],
    ];
    const cursors: string[] = [];
    for (const [index, [failure, message]] of failures.entries()) {
      stream.record(sampleEvent(4 + index));
      stream.nextAnswers.push(failure);
      cursors.push(((await fetched.next()).value as FetchedEvent).cursor);
      expect(problems[index]).to.match(message);
    }
    expect(cursors).to.deep.equal(['c4', 'c5', 'c6', 'c7', 'c8']);
  });

  it('waits as long as the service asks for', async () => {
    const stop = new AbortController();
    stream.nextAnswers.push(refusing(503, { 'retry-after': '7' }, ''));
    let problem = '';
    const onProblem = ({ reason }: { reason: string }): void => {
      problem = reason;
      stop.abort();
    };
    expect((await all(events({ signal: stop.signal, onProblem }))).seen).to.deep.equal([]);
    expect(problem).to.equal('Events are fetched again in 7000 ms: the answer is 503');
  });

  it('pauses before it asks a service again that does not wait', async () => {
    const stop = new AbortController();
    let problem = '';
    const onProblem = ({ reason }: { reason: string }): void => {
      problem = reason;
      stop.abort();
    };
    stream.nextAnswers.push(refusing(200, {}, JSON.stringify({ events: [], cursor: 'c3' })));
    await all(events({ after: 'c3', signal: stop.signal, onProblem }));
    expect(problem).to.match(/^Events are fetched again in \d+ ms: the answer came without waiting$/);
  });

  it('end with an error if repeating the request cannot help', async () => {
    const error = { message: 'The events after the cursor were removed.' };
    const refused = JSON.stringify({ error, cursor: 'c9' });
    const code = { 'X-Error-Code': 'CURSOR_EXPIRED' };
    stream.nextAnswers.push(refusing(410, code, refused));
    const { seen, error: expired } = await all(events({ after: 'c1' }));
    expect(expired)
      .to.be.instanceOf(FetchError)
      .and.include({ ...error, code: 'CURSOR_EXPIRED' });
    expect([seen, expired?.cursor]).to.deep.equal([[], 'c9']);
    stream.nextAnswers.push(refusing(404, {}, '<html>'));
    expect((await all(events())).error).to.include({ code: 'HTTP_404' });
  });

  it('never include one that the service did not sign', async () => {
    stream.record(sampleEvent(4), sampleEvent(5));
    const { seen, error } = await all(events());
    expect(seen.map(({ cursor }) => cursor)).to.deep.equal(['c1', 'c2']);
    expect(error).to.include({ code: 'EVENT_NOT_GENUINE' });
    const { publicKeyPem } = newSender();
    const foreign = await all(events({ verify: { publicKey: publicKeyPem } }));
    expect([foreign.seen, foreign.error?.code]).to.deep.equal([[], 'EVENT_NOT_GENUINE']);
    const given = await all(events({ verify: { publicKey: stream.publicKeyPem } }));
    expect(given.seen).to.have.length(2);
    expect(stream.keyRequests).to.equal(1);
  });

  it('has the text of an event of a type that is not known', async () => {
    const unknown = { ...sampleEvent(4), type: 'com.service.etr.split' };
    stream.record(unknown);
    const { seen } = await all(events({ after: 'c3', follow: false }));
    expect(seen).to.deep.equal([{ event: undefined, body: JSON.stringify(unknown), cursor: 'c4' }]);
  });

  it('passes events that are not selected with a cursor alone', async () => {
    stream.nextAnswers.push(refusing(200, {}, JSON.stringify({ events: [], cursor: 'c3' })));
    const { seen } = await all(events({ follow: false }));
    expect(seen).to.deep.equal([{ event: undefined, body: undefined, cursor: 'c3' }]);
  });

  it('are printed by tdoc events with the cursor to go on with, and a refusal with its code', async () => {
    const run = (...args: string[]) =>
      askTdocInProcess(['events', '--url', stream.url, ...args], {
        RECEIVER_API_KEY: 'tdk_of-a-scope',
        ADMIN_API_KEY: KEY,
      });
    const onward = `To go on: npx tdoc events --follow --url ${stream.url} --after`;
    const lines = [1, 2, 3].map((number) => ({ cursor: `c${number}`, event: sampleEvent(number) }));
    const asJson = await run('--json');
    const parsed = asJson.stdout.trimEnd().split('\n');
    expect([asJson.code, parsed.map((line) => JSON.parse(line) as unknown)]).to.deep.equal([0, lines]);
    expect(stream.requests[0]?.authorization).to.equal('Bearer tdk_of-a-scope');
    const { id, time, type, subject } = sampleEvent(3);
    expect(await run('--after', 'c2')).to.deep.equal({
      code: 0,
      stdout: `${time}  ${type}  ${id}  subject ${subject}\n`,
      stderr: `${onward} c3\n`,
    });
    const error = { message: 'They were removed.' };
    const cursor = 'c'.repeat(14_000);
    const expired = refusing(410, { 'X-Error-Code': 'CURSOR_EXPIRED' }, JSON.stringify({ error, cursor }));
    stream.nextAnswers.push(expired);
    const refused = await run('--follow', '--after', 'c1');
    expect(refused).to.include({ code: 2, stdout: '' });
    expect(refused.stderr).to.include(`${onward} ${cursor}\n`);
    expect(refused.stderr).to.match(/^CURSOR_EXPIRED: They were removed\. \[EVENTS_REFUSED\]/m);
    stream.record(sampleEvent(4), sampleEvent(5));
    const forged = await run('--follow', '--after', 'c1');
    expect(forged.stderr).to.match(/^To go on: .* --after c3\nEVENT_NOT_GENUINE: /);
  });

  it('are not printed without a key, and not over http from another machine', async () => {
    const run = (url: string, settings: Record<string, string>) =>
      askTdocInProcess(['events', '--url', url], settings);
    const [http, noKey] = [
      await run('http://carrier.example', { ADMIN_API_KEY: KEY }),
      await run(stream.url, {}),
    ];
    expect([http.code, noKey.code]).to.deep.equal([2, 2]);
    expect(http.stderr).to.match(/^--url is not an https URL.* \[ARGUMENT_INVALID\]/);
    expect(noKey.stderr).to.match(/^KEY_INVALID: .* Set RECEIVER_API_KEY .* \[EVENTS_REFUSED\]/);
    expect(stream.requests).to.deep.equal([]);
  });
});
