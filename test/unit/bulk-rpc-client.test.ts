import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { isThrottled, nodeErrorOf } from '../../service/chain/node-errors';
import { connectNode, type Chain } from '../../service/chain/chain';
import { serve } from '../helpers/http-server';
import { tellOfRequests, VirtualTime } from '../helpers/virtual-time';
import { owned } from '../helpers/resources';

/** Asks a provider that answers so. In virtual time: after a refusal, the pace is one request a second. */
async function withClient<T>(
  listener: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  ask: (client: Chain) => Promise<T>,
): Promise<T> {
  await using server = await serve((request, response) => void listener(request, response));
  const time = new VirtualTime();
  const made = connectNode(server.url, {}, time, 'bulk');
  await using client = owned('client', made, 'close');
  tellOfRequests(client, time);
  return await time.settled(ask(client));
}

const failureOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

describe('a provider that throttles requests', () => {
  it('is asked for a refused range again when other calls are throttled too', async () => {
    /** Number of the next requests that are refused. */
    let refusals = 2;
    const answerOf = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const { id, method } = (await json(request)) as { id: number; method: string };
      const result = method === 'eth_getLogs' ? [] : '0x1';
      if (refusals-- > 0) response.writeHead(429).end('Too Many Requests');
      else response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    };
    const range = [{ fromBlock: '0x1', toBlock: '0x9' }];
    await withClient(answerOf, async (client) => {
      const refused = await failureOf(client.send('eth_getLogs', range));
      expect(isThrottled(refused), 'refused twice: it may be too wide').to.equal(true);
      refusals = 1;
      expect(await client.send('eth_blockNumber', [])).to.equal('0x1');
      refusals = 1;
      expect(await client.send('eth_getLogs', range)).to.deep.equal([]);
    });
  });
});

describe('calls in batches', () => {
  /** Bodies of the received requests. */
  let requests: unknown[];
  let answer: (body: Call | Call[]) => Answer;

  beforeEach(() => {
    requests = [];
    answer = (body) => ({ body: Array.isArray(body) ? body.map(doubled) : doubled(body) });
  });

  /** Results of one call for each number. `times`: how often all of them are sent. */
  async function callEach(numbers: number[], times = 1): Promise<unknown[]> {
    const answerTo = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const body = (await json(request)) as Call | Call[];
      requests.push(body);
      const { status = 200, body: answered, text = JSON.stringify(answered), isDropped } = answer(body);
      if (isDropped) request.socket.destroy();
      else response.writeHead(status).end(text);
    };
    return withClient(answerTo, async (client) => {
      const results: unknown[] = [];
      for (let time = 0; time < times; time++) {
        const params = numbers.map((number) => [number]);
        results.push(...(await client.sendBatch('double', params)));
      }
      return results;
    });
  }

  const areTogether = (): boolean[] => requests.map((body) => Array.isArray(body));

  it('need few requests, and give results in the order of the calls, not of the answers', async () => {
    const numbers = Array.from({ length: 20 }, (_, index) => index);
    answer = (body) => ({ body: (body as Call[]).map(doubled).reverse() });
    expect(await callEach(numbers)).to.deep.equal(numbers.map((number) => 2 * number));
    expect(requests).to.have.length(4);
  });

  it('send no request when there are no parameters', async () => {
    expect(await callEach([])).to.deep.equal([]);
    expect(requests).to.deep.equal([]);
  });

  const error = { code: -32600, message: 'batch requests are not allowed' };
  for (const [words, refusal] of Object.entries<Answer>({
    'with a status': { status: 413, body: 'no batches' },
    'with one error for all': { body: { jsonrpc: '2.0', id: null, error } },
    'with an error for one call': { body: [{ jsonrpc: '2.0', id: 1, error }, doubled(call(0, 1))] },
  })) {
    it(`are sent one by one from then on when the provider refuses a batch ${words}`, async () => {
      answer = (body) => (Array.isArray(body) ? refusal : { body: doubled(body) });
      expect(await callEach([1, 2, 3], 2)).to.deep.equal([2, 4, 6, 2, 4, 6]);
      expect(areTogether()).to.deep.equal([true, ...Array<boolean>(6).fill(false)]);
    });
  }

  for (const [words, failure] of Object.entries<Answer>({
    'an HTML page': { text: '<html>Bad gateway</html>' },
    null: { body: null },
    'null for each call': { body: [null, null, null] },
    'a broken connection': { isDropped: true },
  })) {
    it(`are sent one by one when a batch gets ${words}`, async () => {
      answer = (body) => (Array.isArray(body) ? failure : { body: doubled(body) });
      expect(await callEach([1, 2, 3])).to.deep.equal([2, 4, 6]);
    });
  }

  it('are sent in batches again after one failure if the provider has answered batches before', async () => {
    let batches = 0;
    answer = (body) => {
      if (!Array.isArray(body)) return { body: doubled(body) };
      return ++batches === 2 ? { body: { jsonrpc: '2.0', id: null, error } } : { body: body.map(doubled) };
    };
    expect(await callEach([1, 2], 3)).to.deep.equal([2, 4, 2, 4, 2, 4]);
    expect(areTogether()).to.deep.equal([true, true, false, false, true]);
  });

  it('are sent one by one when a batch is refused in words that are not known', async () => {
    const unknown = { code: -32050, message: 'the hamster is tired' };
    let batches = 0;
    answer = (body) => {
      if (!Array.isArray(body)) return { body: doubled(body) };
      return ++batches === 1
        ? { body: body.map(doubled) }
        : { body: { jsonrpc: '2.0', id: null, error: unknown } };
    };
    expect(await callEach([1, 2, 3, 4], 2)).to.deep.equal([2, 4, 6, 8, 2, 4, 6, 8]);
    expect(areTogether().slice(-4)).to.deep.equal(Array<boolean>(4).fill(false));
  });

  it('are not sent one by one when the provider throttles the batch', async () => {
    answer = (body) => (Array.isArray(body) ? { status: 429, body: 'slower' } : { body: doubled(body) });
    const failure = await failureOf(callEach([1, 2, 3]));
    expect(isThrottled(failure)).to.equal(true);
    expect(areTogether()).to.not.include(false);
  });

  it('fail with the error of the one call that is refused', async () => {
    const refused = { jsonrpc: '2.0', error: { code: -32000, message: 'unknown number 2' } };
    const oneRefused = (one: Call): object =>
      one.params[0] === 2 ? { ...refused, id: one.id } : doubled(one);
    answer = (body) => ({ body: Array.isArray(body) ? body.map(oneRefused) : oneRefused(body) });
    const failure = await failureOf(callEach([1, 2, 3]));
    expect(nodeErrorOf(failure)).to.equal('unknown number 2');
  });
});

interface Answer {
  status?: number;
  body?: unknown;
  /** Sent as it is, instead of `body`. */
  text?: string;
  /** Breaks the connection instead of answering. */
  isDropped?: boolean;
}

interface Call {
  id: number;
  params: number[];
}

function call(id: number, number: number): Call {
  return { id, params: [number] };
}

function doubled({ id, params: [number = NaN] }: Call): object {
  return { jsonrpc: '2.0', id, result: 2 * number };
}
