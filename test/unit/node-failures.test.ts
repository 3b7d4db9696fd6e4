import { expect } from 'chai';
import { ChainError } from '../../service/base/errors';
import { NETWORKS, type Network } from '../../service/chain/networks';
import { nodeFailure } from '../../service/chain/node-errors';
import { connectNode } from '../../service/chain/chain';
import { failureOf } from '../../service/watcher/feed-status';
import { serve } from '../helpers/http-server';
import { owned } from '../helpers/resources';
import { tellOfRequests, VirtualTime } from '../helpers/virtual-time';

const KEY = 'marked-key-0123456789';
const asIs = (text: string): string => text;
const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a failure of a node, as everybody may read it', () => {
  /** The failure when the node answers each request, or each handshake, with this status and body. */
  async function failureWith(status: number, body: string, scheme = 'http', location = '') {
    const time = new VirtualTime();
    const headers = location ? { location: `${location}/${KEY}` } : {};
    await using server = await serve((_request, response) => response.writeHead(status, headers).end(body));
    const url = server.url.replace('http', scheme);
    const made = connectNode(`${url}/${KEY}`, NETWORKS[0] as Network, time, 'bulk', 60_000);
    await using client = owned('client', made, 'close');
    tellOfRequests(client, time);
    return failureOf(await time.settled(thrownBy(client.send('eth_blockNumber', []))), asIs);
  }

  const answered = (error: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, error });

  for (const [what, status, body, code, reason] of [
    [
      'an error of JSON-RPC',
      200,
      answered({ code: -32701, message: 'Please specify an address' }),
      'NODE_FAILED',
      'The node answers with an error: Please specify an address.',
    ],
    [
      'an error of JSON-RPC and status 400',
      400,
      answered({ code: 35, message: 'ranges over 10 blocks' }),
      'NODE_FAILED',
      'The node answers with an error: ranges over 10 blocks.',
    ],
    [
      'a text in the place of an error',
      200,
      JSON.stringify({ error: `no app with the key ${KEY}` }),
      'ANSWER_MALFORMED',
      "The node's answer to eth_blockNumber is not valid JSON-RPC: no app with the key [secret].",
    ],
    [
      'a rate error inside of a 200',
      200,
      answered({ code: -32005, message: 'daily request count exceeded' }),
      'RPC_UNREACHABLE',
      'The node gets too many requests, or the quota is used up: daily request count exceeded.',
    ],
    [
      'a page',
      429,
      '<html>error code: 1015</html>',
      'RPC_UNREACHABLE',
      'The node gets too many requests, or the quota is used up.',
    ],
    [
      'a sentence',
      403,
      'not allowed',
      'RPC_KEY_REFUSED',
      'The node refuses the key (status 403): not allowed.',
    ],
    [
      'no JSON',
      200,
      '<html>',
      'ANSWER_MALFORMED',
      "The node's answer to eth_blockNumber is not valid JSON-RPC.",
    ],
    [
      'the key, and a key that nobody knows',
      200,
      answered({ code: -32000, message: `no ${KEY}, use customer-4a5b6c7d8e9f of 0x${'1a'.repeat(32)}` }),
      'NODE_FAILED',
      `The node answers with an error: no [secret], use [secret] of 0x${'1a'.repeat(32)}.`,
    ],
    [
      'a command for terminals',
      200,
      answered({ code: -32000, message: `x\u001b[2J${'y '.repeat(1_000)}` }),
      'NODE_FAILED',
      /^The node answers with an error: x\\u001b\[2J.{200,260}\.$/,
    ],
  ] as const)
    it(`has a code of ours, the node's words and a remedy for ${what}`, async () => {
      const failure = await failureWith(status, body);
      expect(failure.code).to.equal(code);
      if (typeof reason === 'string') expect(failure.reason).to.equal(reason);
      else expect(failure.reason).to.match(reason);
      expect(failure.remedy).to.match(/RPC_URL|key/);
    });

  for (const [status, code, reason] of [
    [401, 'RPC_KEY_REFUSED', 'The node refuses the key (status 401).'],
    [403, 'RPC_KEY_REFUSED', 'The node refuses the key (status 403).'],
    [429, 'RPC_UNREACHABLE', 'The node gets too many requests, or the quota is used up.'],
    [200, 'RPC_UNREACHABLE', 'The node answers 200, not like a node.'],
    [503, 'RPC_UNREACHABLE', 'The node answers 503, not like a node.'],
  ] as const)
    it(`is the same over WebSocket, if the handshake is answered ${status}`, async () =>
      expect(await failureWith(status, '', 'ws')).to.deep.include({ code, reason }));

  for (const scheme of ['http', 'ws'])
    it(`says where a node redirects to over ${scheme}, without the key`, async () => {
      for (const [location, place] of [
        ['https://node.example', 'https://node.example/…'],
        ['', undefined],
      ] as const) {
        const { code, reason } = await failureWith(301, '', scheme, location);
        const redirects = `redirects to ${place} (status 301): write that in RPC_URL`;
        const problem = place ? redirects : 'answers 301, not like a node';
        expect({ code, reason }).to.deep.equal({ code: 'RPC_UNREACHABLE', reason: `The node ${problem}.` });
      }
    });

  it('has a code of ours and a remedy for a connection that cannot be made', async () => {
    const time = new VirtualTime();
    const made = connectNode(`http://127.0.0.1:9/${KEY}`, NETWORKS[0] as Network, time, 'bulk');
    await using client = owned('client', made, 'close');
    tellOfRequests(client, time);
    const error = await time.settled(thrownBy(client.send('eth_blockNumber', [])));
    expect(error).to.have.property('code', 'ECONNREFUSED');
    const { code, reason, remedy } = failureOf(error, asIs);
    expect([code, reason]).to.deep.equal(['RPC_UNREACHABLE', 'The node does not answer.']);
    expect(remedy).to.contain('RPC_URL');
  });

  it('quotes no library, and blames no node, for errors of others', () => {
    for (const [error, kind] of [
      [Object.assign(new Error(`connect to ${KEY}`), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
      [new TypeError(`cannot read ${KEY}`), 'an error'],
      [`thrown ${KEY}`, 'an error'],
    ] as const) {
      expect(nodeFailure(error)).to.equal(undefined);
      const { code, reason, remedy } = failureOf(error, asIs);
      expect(code).to.equal('INTERNAL');
      expect(reason).to.equal(`The service or its database failed with ${kind}.`);
      expect(remedy).to.contain('database');
    }
  });

  it('keeps code, words and remedy of an error of ours, with secrets masked', () => {
    const ours = new ChainError('BLOCK_MISSING', `no block at ${KEY}`, { retryable: true });
    const masked = failureOf(ours, (text) => text.replace(KEY, '[secret]'));
    expect(masked).to.include({ code: 'BLOCK_MISSING', reason: 'no block at [secret]' });
    expect(masked.remedy).to.contain('RPC_URL');
    const own = new ChainError('LOGS_PRUNED', 'none', { remedy: 'Set it.' });
    expect(failureOf(own, asIs).remedy).to.equal('Set it.');
  });
});
