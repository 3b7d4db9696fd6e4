import { expect } from 'chai';
import { RequestError } from '../../service/base/errors';
import { checkSink, sinkProblem, type SinkRules } from '../../service/base/sink-rules';

const PUBLIC: SinkRules = { allowPrivate: false, allowLoopback: false };
const LOCAL: SinkRules = { allowPrivate: false, allowLoopback: true };
const PRIVATE: SinkRules = { allowPrivate: true, allowLoopback: false };

describe('sink of a subscription', () => {
  const problemOf = (sink: string, rules: SinkRules): string | undefined => {
    try {
      checkSink(sink, rules);
      return undefined;
    } catch (error) {
      expect(error).to.be.instanceOf(RequestError).and.include({ code: 'SINK_NOT_ALLOWED' });
      expect((error as RequestError).message).to.match(/^\/sink .*\. ./);
      return (error as RequestError).message;
    }
  };

  it('may be any https URL of the internet, by name or by address', () => {
    for (const rules of [PUBLIC, LOCAL, PRIVATE])
      for (const sink of [
        'https://subscriber.example/in?a=1',
        'https://subscriber.example:8443',
        'https://8.8.8.8/in',
        'https://[2606:4700:4700::1111]/in',
        'HTTPS://SUBSCRIBER.EXAMPLE/',
      ])
        expect([sinkProblem(sink), problemOf(sink, rules)], sink).to.deep.equal([undefined, undefined]);
  });

  it('may not be of another scheme than https', () => {
    for (const sink of [
      'http://subscriber.example/in',
      'http://8.8.8.8/',
      'ftp://subscriber.example/',
      'data:,x',
    ])
      for (const rules of [PUBLIC, LOCAL, PRIVATE])
        expect(problemOf(sink, rules), sink).to.match(/^\/sink is not https\. Use https/);
  });

  const OTHERS = ['ftp://a.example/', 'https:a.example', ' https://a.example/', 'https://1.2.3.256/'];
  for (const sink of ['', '/in', 'https://', ...OTHERS])
    it(`may not be "${sink}", which is not a URL`, () => {
      expect(sinkProblem(sink)).to.match(/^is not a URL of http or https\. Give the URL/);
    });

  // The kinds of all addresses are those of addressKindOf.
  for (const [kind, hosts] of Object.entries({
    loopback: [
      '127.1',
      '2130706433',
      '0x7f000001',
      '017700000001',
      '%31%32%37.0.0.1',
      '１２７.0.0.1',
      '[::1]',
    ],
    private: ['10.0.0.1', '192.168.1'],
    "of a cloud's metadata service": ['169.254.169.254', '0251.0376.0251.0376', '[::ffff:169.254.169.254]'],
    'link-local': ['169.254.1.1', '[fe80::1]'],
    'unique-local': ['[fd12::1]'],
    'shared by a provider (CGNAT)': ['100.64.0.1'],
    unspecified: ['0', '[::]'],
    multicast: ['224.0.0.1'],
    reserved: ['255.255.255.255'],
  }))
    for (const host of hosts)
      it(`may not be at ${host}, which is ${kind}, unless ALLOW_PRIVATE_SINKS is set`, () => {
        const sink = `https://${host}:4000/in`;
        const problem = problemOf(sink, PUBLIC);
        expect(problem).to.match(/^\/sink is not allowed\. The sink's address \S+ is /);
        expect(problem).to.contain(` is ${kind}: set ALLOW_PRIVATE_SINKS to allow it.`);
        expect(problemOf(sink, LOCAL) === undefined, 'on a local network').to.equal(kind === 'loopback');
        expect(problemOf(sink, PRIVATE)).to.equal(undefined);
      });

  it('may be http on this machine where the network is local', () => {
    for (const host of ['127.0.0.1', '2130706433', '[::1]', 'localhost', 'LOCALHOST', 'acme.localhost']) {
      const sink = `http://${host}:4000/in`;
      expect(problemOf(sink, LOCAL), sink).to.equal(undefined);
      for (const rules of [PUBLIC, PRIVATE]) expect(problemOf(sink, rules), sink).to.match(/is not https/);
    }
  });

  it('may not be https://localhost, unless the network is local or ALLOW_PRIVATE_SINKS is set', () => {
    expect(problemOf('https://localhost/', PUBLIC)).to.match(/Localhost is this machine: set ALLOW_PRIVATE/i);
    for (const rules of [LOCAL, PRIVATE]) expect(problemOf('https://localhost/', rules)).to.equal(undefined);
  });

  it('of a key with a scope are not told of a setting that the holder cannot change', () => {
    const rules = { ...PUBLIC, isScoped: true };
    for (const [sink, reason] of [
      ['https://10.0.0.1/', "The sink's address 10.0.0.1 is private"],
      ['https://localhost/', 'Localhost is this machine'],
    ] as const)
      expect(problemOf(sink, rules)).to.equal(`/sink is not allowed. ${reason}: use a public one.`);
  });

  it('may not have a user or a password, which the API would show', () => {
    for (const credentials of ['acme', 'acme:pass-of-acme', ':pass-of-acme']) {
      const problem = sinkProblem(`https://${credentials}@subscriber.example/`);
      expect(problem).to.match(/^has a user or a password\. Send them in a header/);
      expect(problem).not.to.contain('acme');
    }
  });
});
