import { expect } from 'chai';
import {
  createClient,
  type EventsOptions,
  type FetchedEvent,
  type FetchError,
} from '../../client/create-client';
import { fetchPages, type FetchedPage, type FetchOptions } from '../../receiver/fetch-events';
import { onlyKey } from '../../receiver/verify';
import { newSender, sampleEvent } from '../helpers/receiver/signed-delivery';
import { seededRandom } from '../helpers/seeded-random';
import { VirtualTime } from '../helpers/virtual-time';

const URL_OF_EVENTS = 'https://carrier.example/events/stream';

describe('pages of fetched events', () => {
  const sender = newSender();
  /** The events of an answer. Their cursors are c1, c2 and so on. */
  const signed = (...numbers: number[]): object[] =>
    numbers.map((number) => {
      const body = JSON.stringify(sampleEvent(number));
      const { headers } = sender.signed(body);
      return { body, signature: headers['x-service-signature'], keyId: 'k', cursor: `c${number}` };
    });
  const failing = (): object => {
    throw new Error('refused');
  };

  /** Fetches until an error, or until there is no answer left; `asked` are the queries. */
  async function outcomeOf(answers: (() => object)[], options: Partial<FetchOptions> = {}) {
    const asked: Record<string, string>[] = [];
    const problems: string[] = [];
    const pages: FetchedPage[] = [];
    const stop = new AbortController();
    let error: FetchError | undefined;
    const fetchStub = async ({ url }: Request): Promise<Response> => {
      asked.push(Object.fromEntries(new URL(url).searchParams));
      const answer = answers[asked.length - 1];
      if (answer === undefined) stop.abort();
      return Response.json(answer?.() ?? {});
    };
    await new VirtualTime().during(seededRandom(1), async () => {
      const { signal } = stop;
      const onProblem = ({ reason }: { reason: string }): void => void problems.push(reason);
      const common = { url: URL_OF_EVENTS, key: 'key', findKey: onlyKey(sender.publicKey), signal };
      try {
        for await (const page of fetchPages({ ...common, onProblem, fetch: fetchStub, ...options }))
          pages.push(page);
      } catch (thrown) {
        error = thrown as FetchError;
      }
    });
    return { asked, problems, cursors: pages.map(({ cursor }) => cursor), error };
  }

  it('after now begin with a cursor at once, so that a failed request passes no event', async () => {
    const first = (): object => ({ events: [], cursor: 'c7' });
    const { asked, cursors } = await outcomeOf([first, failing], { after: 'now' });
    expect(asked).to.deep.equal([
      { after: 'now', wait: '0' },
      { after: 'c7', wait: '30' },
      { after: 'c7', wait: '30' },
    ]);
    expect(cursors).to.deep.equal(['c7']);
  });

  it('are fetched again while the key is not published, and end under a wrong signature', async () => {
    const answer = (): object => ({ events: signed(1), cursor: 'c1' });
    const keys = [undefined, sender.publicKey, newSender().publicKey];
    const findKey = async () => keys.shift();
    const { problems, cursors, error } = await outcomeOf([answer, answer, answer], { findKey });
    expect(problems).to.have.length(1);
    expect(problems[0]).to.match(/: the service does not publish the key k$/);
    expect([cursors, error?.code]).to.deep.equal([['c1'], 'EVENT_NOT_GENUINE']);
  });

  it('end after five failures in a row unless they are followed', async () => {
    const first = (): object => ({ events: [], cursor: 'c1' });
    const answers = [failing, first, ...Array<() => object>(6).fill(failing)];
    const { asked, cursors, error } = await outcomeOf(answers, { follow: false });
    expect([asked.length, cursors, error?.code]).to.deep.equal([7, ['c1'], 'NO_ANSWER']);
    expect((await outcomeOf(answers)).error).to.equal(undefined);
  });

  it('are fetched again if an answer has no cursor', async () => {
    const { problems, cursors } = await outcomeOf([
      () => ({ events: [] }),
      () => ({ events: [], cursor: 'c1' }),
    ]);
    expect(problems.map((problem) => problem.replace(/.*: /, ''))).to.deep.equal([
      'the answer has no cursor',
    ]);
    expect(cursors).to.deep.equal(['c1']);
  });

  it('need a key of printable ASCII, which the error does not quote', async () => {
    for (const key of ['', 'a secret\u0007', 'sécret']) {
      const { asked, error } = await outcomeOf([], { key });
      expect([asked, error?.code]).to.deep.equal([[], 'KEY_INVALID']);
      expect(error?.message).to.not.match(/a secret|sécret/);
    }
  });

  it('give the client no further event after its signal', async () => {
    const stop = new AbortController();
    const answer = async (): Promise<Response> => Response.json({ events: signed(1, 2), cursor: 'c3' });
    const client = createClient({ url: 'https://carrier.example', key: 'key', fetch: answer });
    const verify = { publicKey: sender.publicKeyPem };
    const seen: FetchedEvent[] = [];
    for await (const one of client.events({ verify, signal: stop.signal })) {
      seen.push(one);
      stop.abort();
    }
    expect(seen.map(({ cursor }) => cursor)).to.deep.equal(['c1']);
  });

  it('are selected without the values that are undefined', async () => {
    const stop = new AbortController();
    const queries: string[] = [];
    const answer = async ({ url }: Request): Promise<Response> => {
      queries.push(new URL(url).search);
      stop.abort();
      return Response.json({});
    };
    const client = createClient({ url: 'https://carrier.example', key: 'key', fetch: answer });
    const selection = { types: undefined, source: 's:1' } as unknown as EventsOptions;
    await client.events({ ...selection, follow: false, signal: stop.signal }).next();
    expect(queries).to.deep.equal(['?source=s%3A1&wait=0']);
  });
});
