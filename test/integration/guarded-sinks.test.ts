import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import {
  type AddressInfo,
  getDefaultAutoSelectFamilyAttemptTimeout,
  type LookupFunction,
  setDefaultAutoSelectFamilyAttemptTimeout,
  Socket,
} from 'node:net';
import { lookup as systemLookup } from 'node:dns';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { reachDistantHosts } from '../../service/base/distant-hosts';
import { signingKeyOf } from '../../service/base/signing-keys';
import type { SinkRules } from '../../service/base/sink-rules';
import { createWebhookClient, type PostResult } from '../../service/delivery/attempt-delivery';
import { stopLater } from '../helpers/resources';
import { webhookTo } from '../helpers/receiver/webhook-to';

const PUBLIC: SinkRules = { allowPrivate: false, allowLoopback: false };
const LOCAL: SinkRules = { allowPrivate: false, allowLoopback: true };
const signingKeys = { key: signingKeyOf(generateKeyPairSync('ed25519').privateKey), next: undefined };

describe('delivery to a guarded sink', () => {
  let port: number;
  let connections: number;
  let requests: string[];
  let location: string | undefined;

  before(async () => {
    const server = createServer((request, response) => {
      requests.push(`${request.method} ${request.headers.host} ${request.url}`);
      // Each delivery needs a connection, and a look-up, of its own.
      response.writeHead(location ? 307 : 204, { connection: 'close', ...(location && { location }) }).end();
    });
    server.on('connection', () => connections++);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    stopLater('the sink', () => server.close());
    port = (server.address() as AddressInfo).port;
  });
  beforeEach(() => {
    [connections, requests, location] = [0, [], undefined];
  });

  /** A name server whose n-th answer has the n-th addresses; the last answer is repeated. */
  function nameServer(...answers: string[][]): { lookup: LookupFunction; asked: string[] } {
    const asked: string[] = [];
    const lookup: LookupFunction = (name, options, callback) => {
      const addresses = answers[Math.min(asked.length, answers.length - 1)] ?? [];
      asked.push(name);
      const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
      setImmediate(() =>
        options.all ? callback(null, found) : callback(null, found[0]?.address ?? '', found[0]?.family),
      );
    };
    return { lookup, asked };
  }

  async function deliver(
    url: string,
    rules: SinkRules | undefined,
    {
      lookup = systemLookup,
      times = 1,
      timeoutMs = 2_000,
    }: { lookup?: LookupFunction; times?: number; timeoutMs?: number } = {},
  ): Promise<PostResult[]> {
    const target = { ...webhookTo(url), signingKeys, timeoutMs, guard: rules && { rules, lookup } };
    const client = createWebhookClient(target, systemTime);
    const results: PostResult[] = [];
    for (let n = 0; n < times; n++) results.push(await client.post('{}', 'event-1'));
    await client.close();
    return results;
  }

  /** Lets no connection over IPv6 ever begin, as if its packets were dropped. */
  function dropIpv6(): () => void {
    const socket = new Socket().on('error', () => undefined).connect(port, '127.0.0.1');
    const { _handle: handle } = socket as unknown as { _handle: object };
    const connecting = Object.getPrototypeOf(handle) as { connect6: () => number };
    socket.destroy();
    const { connect6 } = connecting;
    connecting.connect6 = () => 0;
    return () => (connecting.connect6 = connect6);
  }

  it('uses its other address in time if nothing answers at the first', async () => {
    const before = getDefaultAutoSelectFamilyAttemptTimeout();
    reachDistantHosts();
    const restore = dropIpv6();
    try {
      const { lookup } = nameServer(['::1', '127.0.0.1']);
      // Each address has half of the time.
      const [result] = await deliver(`http://sink.example:${port}`, LOCAL, { lookup, timeoutMs: 60_000 });
      expect(result).to.include({ status: 204 });
    } finally {
      restore();
      setDefaultAutoSelectFamilyAttemptTimeout(before);
    }
  });

  const failure = (text: string): PostResult => ({ status: undefined, failure: text });
  const refusal = (address: string, kind: string): PostResult =>
    failure(`the sink's address ${address} is ${kind}: set ALLOW_PRIVATE_SINKS to allow it`);
  const DELIVERED: PostResult = { status: 204, retryAfter: undefined };

  // A URL has other spellings of an address, such as 2130706433, in one of these forms.
  for (const [host, address] of [
    ['127.0.0.1', '127.0.0.1'],
    ['0x7f.1', '127.0.0.1'],
    ['[::1]', '::1'],
    ['[::ffff:127.0.0.1]', '::ffff:7f00:1'],
    ['[64:ff9b::7f00:1]', '64:ff9b::7f00:1'],
  ] as const)
    it(`does not connect to ${host}, which Node.js does not look up`, async () => {
      for (const scheme of ['http', 'https']) {
        const [result] = await deliver(`${scheme}://${host}:${port}/`, PUBLIC);
        expect(result).to.deep.equal(refusal(address, 'loopback'));
      }
      expect(connections).to.equal(0);
    });

  it('does not connect to this machine through a name of it, over http and https', async () => {
    for (const scheme of ['http', 'https']) {
      const [result] = await deliver(`${scheme}://localhost:${port}/`, PUBLIC);
      expect(result?.status).to.equal(undefined);
      expect(result)
        .to.have.property('failure')
        .that.matches(/is loopback: set ALLOW_PRIVATE_SINKS/);
    }
    expect(connections).to.equal(0);
  });

  it('says which address of a name is refused, in each kind of address', async () => {
    for (const [address, kind] of [
      ['10.0.0.1', 'private'],
      ['169.254.169.254', "of a cloud's metadata service"],
      ['fd00:ec2::254', "of a cloud's metadata service"],
      ['::ffff:10.0.0.1', 'private'],
      ['64:ff9b::a9fe:a9fe', "of a cloud's metadata service"],
    ] as const) {
      const { lookup } = nameServer([address]);
      expect(await deliver('https://rebind.example/', PUBLIC, { lookup })).to.deep.equal([
        refusal(address, kind),
      ]);
    }
  });

  it('uses the address that it checked, although a second look-up would give another', async () => {
    const { lookup, asked } = nameServer(['127.0.0.1'], ['10.0.0.1']);
    const [result] = await deliver(`http://rebind.example:${port}/in`, LOCAL, { lookup });
    expect(result).to.deep.equal(DELIVERED);
    expect(asked).to.deep.equal(['rebind.example']);
    expect(requests).to.deep.equal([`POST rebind.example:${port} /in`]);
  });

  it('checks each new connection: a name that moves to a private address gets nothing more', async () => {
    const { lookup, asked } = nameServer(['127.0.0.1'], ['169.254.169.254'], ['127.0.0.1']);
    const results = await deliver(`http://rebind.example:${port}/`, LOCAL, { lookup, times: 3 });
    const refused = refusal('169.254.169.254', "of a cloud's metadata service");
    expect(results).to.deep.equal([DELIVERED, refused, DELIVERED]);
    expect(asked).to.have.length(3);
    expect(requests).to.have.length(2);
  });

  it('leaves out the forbidden addresses of a name that has allowed ones too', async () => {
    const { lookup } = nameServer(['10.0.0.1', 'fd12::1', '127.0.0.1']);
    expect(await deliver(`http://mixed.example:${port}/`, LOCAL, { lookup })).to.deep.equal([DELIVERED]);
  });

  it('sends over http to this machine only, also if private addresses are allowed', async () => {
    const { lookup } = nameServer(['10.0.0.1']);
    const rules = { allowPrivate: true, allowLoopback: true };
    expect(await deliver(`http://acme.localhost:${port}/`, rules, { lookup })).to.deep.equal([
      failure("the sink's address 10.0.0.1 is not on this machine: use https"),
    ]);
    expect(await deliver(`http://127.0.0.1:${port}/`, rules)).to.deep.equal([DELIVERED]);
  });

  it('connects to private addresses over https with ALLOW_PRIVATE_SINKS', async () => {
    const { lookup } = nameServer(['127.0.0.1']);
    const rules = { allowPrivate: true, allowLoopback: false };
    const [result] = await deliver(`https://private.example:${port}/`, rules, { lookup });
    // The server speaks no TLS, but it was reached.
    expect(result?.status).to.equal(undefined);
    expect(connections).to.equal(1);
  });

  it('fails with the reason when the name cannot be looked up or has no address', async () => {
    const unknown: LookupFunction = (name, _options, callback) =>
      callback(new Error(`getaddrinfo ENOTFOUND ${name}`), []);
    expect(await deliver('https://none.example/', PUBLIC, { lookup: unknown })).to.deep.equal([
      failure('getaddrinfo ENOTFOUND none.example'),
    ]);
    expect(await deliver('https://none.example/', PUBLIC, nameServer([]))).to.deep.equal([
      failure('none.example has no address'),
    ]);
  });

  it('follows no redirect', async () => {
    location = `http://127.0.0.1:${port}/private`;
    const [result] = await deliver(`http://127.0.0.1:${port}/in`, LOCAL);
    expect(result).to.deep.equal({ status: 307, retryAfter: undefined });
    expect(requests).to.deep.equal([`POST 127.0.0.1:${port} /in`]);
  });

  it('is not guarded for a webhook of the operator', async () => {
    expect(await deliver(`http://127.0.0.1:${port}/`, undefined)).to.deep.equal([DELIVERED]);
  });
});
