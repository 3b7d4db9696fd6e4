import { expect } from 'chai';
import { parseReplacement, parseSubscription } from '../../service/subscriptions/subscription';
import {
  bodyWith,
  ID,
  messageOf,
  refusalOf,
  refusalOfPut,
  subscriptionWith,
} from '../helpers/subscription-body';

const CHECKSUMMED = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
const MINTED = 'com.service.etr.minted';
const RETRACTED = 'com.service.etr.retracted';

describe('a request for a subscription', () => {
  it('keeps what it gives', () => {
    const given = {
      source: `urn:service:80002:${CHECKSUMMED.toLowerCase()}`,
      types: [MINTED, RETRACTED],
      filters: [
        { not: { any: [{ all: [{ exact: { type: MINTED } }] }, { prefix: { subject: '1' } }] } },
        { suffix: { subject: '1' } },
        { tokens: ['1', '0xff', 'ab'.repeat(32), `0x${'ab'.repeat(32)}`] },
        { parties: [CHECKSUMMED, CHECKSUMMED.toLowerCase()] },
      ],
      sink: 'http://127.0.0.1:4000/webhook?tenant=acme',
      protocol: 'HTTP',
      protocolsettings: { headers: { authorization: 'Bearer key' }, method: 'POST' },
      config: {
        startFrom: 7,
        state: 'paused',
        timeoutMs: 1,
        maxConcurrentDeliveries: 1_000,
        retry: { initialDelayMs: 1, maxDelayMs: 2, giveUpAfterMs: 0 },
        contentType: 'application/cloudevents+json',
        standardWebhooks: true,
        retractions: true,
      },
    };
    expect(parseSubscription(given, ID)).to.deep.equal({ id: ID, ...given });
  });

  it('cannot choose its id', () => {
    expect(subscriptionWith({ id: 'mine' }).id).to.equal(ID);
    expect(subscriptionWith({ id: 7 }).id).to.equal(ID);
  });

  it('may write the address of its source with the checksum, and the same header name in any case', () => {
    const { source, protocolsettings } = subscriptionWith({
      source: `urn:service:1:${CHECKSUMMED}`,
      protocolsettings: { headers: { 'X-Tenant': 'acme' } },
    });
    expect(source).to.equal(`urn:service:1:${CHECKSUMMED.toLowerCase()}`);
    expect(protocolsettings?.headers).to.deep.equal({ 'x-tenant': 'acme' });
  });

  it('is refused when it is no object', () => {
    for (const body of [null, [], 'text', 7])
      expect(messageOf(() => parseSubscription(body, ID))).to.match(/^The body must be an object, but it is/);
  });

  const inFilter = (filter: unknown): object => ({ filters: [filter] });
  const withHeader = (value: unknown, name = 'x-key'): object => ({
    protocolsettings: { headers: { [name]: value } },
  });
  const tooLarge = 2 ** 256;

  for (const [members, message] of [
    [{ colour: 1 }, '/colour is not a member of a subscription. Leave it out, or write one of id, source,'],
    [{ protocolSettings: {} }, '/protocolSettings is not a member of a subscription.'],
    [{ 'a/b~': 1 }, '/a~1b~0 is not a member'],
    [{ sink: 7, config: { foo: 1 } }, '/config/foo is not a member of config. Leave it out, or write one'],
    [{ config: { retry: { delay: 1 } } }, '/config/retry/delay is not a member of config/retry.'],
    [{ config: { secret: 'whsec_x' } }, '/config/secret is made by the service. Leave it out.'],
    [{ config: { toString: 1 } }, '/config/toString is not a member of config.'],
    [{ protocolsettings: { url: 1 } }, '/protocolsettings/url is not a member of protocolsettings.'],
    [
      { sinkcredential: { credentialtype: 'PLAIN' } },
      '/sinkcredential is not supported. Send the credential in a header: ' +
        'protocolsettings/headers/authorization.',
    ],

    [{ sink: undefined }, '/sink must be a string, but it is missing.'],
    [{ sink: null }, '/sink must be a string, but it is null.'],
    [{ sink: 'subscriber.example' }, '/sink is not a URL of http or https.'],
    [{ sink: 'https://user:password@subscriber.example/' }, '/sink has a user or a password. Send them in'],
    [{ sink: 'https://subscriber.example/#part' }, '/sink has a fragment, which is never sent.'],
    [{ sink: 'https://subscriber.example/#' }, '/sink has a fragment, which is never sent. Leave out #'],
    [{ sink: 'https://subscriber.example/\ud800' }, '/sink contains half of a surrogate pair.'],

    [{ protocol: undefined }, '/protocol must be `HTTP`, but it is missing.'],
    [{ protocol: 'http' }, '/protocol must be `HTTP`. No other protocol is supported.'],
    [{ protocolsettings: { method: 'PUT' } }, '/protocolsettings/method must be `POST`.'],
    [{ protocolsettings: [] }, '/protocolsettings must be an object, but it is an array.'],

    [{ source: 7 }, '/source must be a string, but it is a number.'],
    [
      { source: `urn:service:0:${CHECKSUMMED}` },
      '/source is not the source of a registry. Write urn:service:<',
    ],
    [{ source: `urn:service:${2 ** 60}:${CHECKSUMMED}` }, '/source is not the source of a registry.'],
    [{ source: 'urn:service:1' }, '/source is not the source of a registry.'],
    [{ source: `urn:service:1:${CHECKSUMMED.replace('C', 'c')}` }, '/source has an address with a wrong'],

    [{ types: MINTED }, '/types must be an array, but it is a string.'],
    [{ types: [] }, '/types is empty.'],
    [{ types: [MINTED, 7] }, '/types/1 must be a string, but it is a number.'],
    [{ types: ['minted'] }, '/types/0 is not a type of event. Use one of com.service.etr.minted, '],
    [{ types: ['com.service.etr.test'] }, '/types/0 is not a type of event.'],
    [{ types: [MINTED, MINTED] }, '/types/1 is the same as types/0.'],
    [{ types: [RETRACTED] }, '/types/0 is sent only if config/retractions is true.'],

    [{ config: null }, '/config must be an object, but it is null. Its members are startFrom,'],
    [{ config: { startFrom: 'then' } }, '/config/startFrom must be `now`, `beginning` or the number of a'],
    [{ config: { startFrom: -1 } }, '/config/startFrom must be `now`, `beginning` or'],
    [{ config: { startFrom: 1.5 } }, '/config/startFrom must be `now`, `beginning` or'],
    [{ config: { state: 'stopped' } }, '/config/state must be `active` or `paused`.'],
    [{ config: { state: 'gone' } }, '/config/state is set to `gone` by the service'],
    [{ config: { timeoutMs: '15' } }, '/config/timeoutMs must be a whole number of milliseconds from 1 to'],
    [{ config: { contentType: '' } }, '/config/contentType must be `application/json` or `application/cl'],
    [{ config: { standardWebhooks: 'yes' } }, '/config/standardWebhooks must be true or false, but it is a'],
    [{ config: { retractions: 1 } }, '/config/retractions must be true or false, but it is a number.'],

    [{ protocolsettings: { headers: [] } }, '/protocolsettings/headers must be an object, but it is an'],
    [withHeader(7), '/protocolsettings/headers/x-key must be a string, but it is a number.'],
    [withHeader(null), '/protocolsettings/headers/x-key is null, and there is no header to remove.'],
    [withHeader('***'), '/protocolsettings/headers/x-key is ***, which stands for a stored value.'],
    [withHeader('a\nb'), '/protocolsettings/headers/x-key is not a header value.'],
    [withHeader('ключ'), '/protocolsettings/headers/x-key is not a header value.'],
    [withHeader('a', 'Content-Type'), '/protocolsettings/headers/Content-Type is set by the service itself.'],
    [withHeader('a', 'webhook-signature'), '/protocolsettings/headers/webhook-signature is set by the'],
    [withHeader('a', 'X-Key: secret'), 'has a name that is not a header name: header 1.'],
    [
      { protocolsettings: { headers: { 'X-Key': 'a', 'x-key': 'b' } } },
      '/protocolsettings/headers/x-key is there twice',
    ],

    [{ filters: {} }, '/filters must be an array, but it is an object.'],
    [inFilter('all'), '/filters/0 must be an object, but it is a string.'],
    [inFilter({}), '/filters/0 must have exactly one member, but it has 0.'],
    [inFilter({ tokens: ['1'], exact: { type: 'a' } }), '/filters/0 must have exactly one member, but it'],
    [inFilter({ sql: 'TRUE' }), '/filters/0/sql is not a supported filter dialect. Use one of exact,'],
    [inFilter({ any: [{ exact: { type: 'a' }, regex: 'b' }] }), '/filters/0/any/0/regex is not a supported'],
    [inFilter({ Exact: { type: 'a' } }), '/filters/0/Exact is not a supported filter dialect.'],
    [inFilter({ exact: [] }), '/filters/0/exact must be an object, but it is an array.'],
    [inFilter({ prefix: {} }), '/filters/0/prefix names no attribute.'],
    [inFilter({ suffix: { '': 'a' } }), '/filters/0/suffix has an empty name.'],
    [inFilter({ exact: { type: '' } }), '/filters/0/exact/type is empty.'],
    [inFilter({ exact: { type: '\udc00\ud800' } }), '/filters/0/exact/type contains half of a surrogate'],
    [inFilter({ prefix: { 'a\ud800': 'b' } }), '/filters/0/prefix/a\ud800 contains half of a surrogate'],
    [inFilter({ exact: { subject: 1 } }), '/filters/0/exact/subject must be a string, but it is a number.'],
    [inFilter({ all: {} }), '/filters/0/all must be an array, but it is an object.'],
    [inFilter({ any: [] }), '/filters/0/any is empty. Give at least one filter, or leave it out.'],
    [inFilter({ not: [{ exact: { type: 'a' } }] }), '/filters/0/not must be an object, but it is an array.'],
    [inFilter({ tokens: '1' }), '/filters/0/tokens must be an array, but it is a string.'],
    [inFilter({ tokens: [] }), '/filters/0/tokens is empty. Give at least one entry, or leave it out.'],
    [inFilter({ tokens: [1] }), '/filters/0/tokens/0 must be a string, but it is a number.'],
    [inFilter({ tokens: ['1', 'token'] }), '/filters/0/tokens/1 is not a token id: decimal digits, or 64'],
    [inFilter({ tokens: ['-1'] }), '/filters/0/tokens/0 is not a token id'],
    [inFilter({ tokens: [BigInt(tooLarge).toString()] }), '/filters/0/tokens/0 is not a token id'],
    [inFilter({ tokens: ['ab'.repeat(31)] }), '/filters/0/tokens/0 is not a token id'],
    [inFilter({ parties: ['1'] }), '/filters/0/parties/0 is not an address: 0x and 40 hexadecimal digits'],
    [inFilter({ parties: [CHECKSUMMED.slice(2)] }), '/filters/0/parties/0 is not an address'],
    [inFilter({ parties: [CHECKSUMMED.replace('C', 'c')] }), '/filters/0/parties/0 is not an address'],
  ] as [object, string][])
    it(`is refused: ${message}`, () => {
      expect(refusalOf(members))
        .to.have.string(message)
        .and.match(/^\/.*\. [A-Z].*\.$/);
    });

  it('is refused without its secrets in the message', () => {
    const key = 'sk_live_51H';
    for (const members of [
      withHeader(`${key}\n`),
      withHeader(key, `X-Key: ${key}`),
      { sink: `https://user:${key}@subscriber.example/` },
      { sink: `htps://subscriber.example/${key}` },
      { config: { secret: key } },
    ])
      expect(refusalOf(members)).not.to.have.string(key);
  });
});

describe('a replacement of a subscription', () => {
  const headers = { authorization: 'Bearer key', 'x-tenant': 'acme' };
  const stored = subscriptionWith({
    protocolsettings: { headers },
    config: { state: 'paused', timeoutMs: 9 },
  });
  const put = (given: object): unknown =>
    parseReplacement(bodyWith({ protocolsettings: { headers: given } }), stored).protocolsettings?.headers;

  it('takes the default for what it leaves out, and keeps the id', () => {
    const { id, config } = parseReplacement(bodyWith({ id: 'other' }), stored);
    expect(id).to.equal(ID);
    expect(config).to.include({ state: 'active', timeoutMs: 15_000 });
    expect(parseReplacement(bodyWith(), stored).protocolsettings?.headers).to.deep.equal(headers);
  });

  for (const [given, kept] of [
    [{}, headers],
    [{ Authorization: '***' }, headers],
    [
      { 'X-Tenant': 'other', 'x-new': 'one' },
      { ...headers, 'x-tenant': 'other', 'x-new': 'one' },
    ],
    [{ 'X-Tenant': null, 'x-none': null }, { authorization: 'Bearer key' }],
    [{ authorization: null, 'x-tenant': null }, undefined],
  ])
    it(`keeps, sets, adds and removes headers: ${JSON.stringify(given)}`, () => {
      expect(put(given ?? {})).to.deep.equal(kept);
    });

  for (const given of [{}, { traceparent: null, tracestate: null }])
    it(`removes headers that are those of the service since: ${JSON.stringify(given)}`, () => {
      const before = subscriptionWith({ protocolsettings: { headers } });
      Object.assign(before.protocolsettings?.headers ?? {}, { traceparent: 'old', tracestate: 'old' });
      const { protocolsettings } = parseReplacement(
        bodyWith({ protocolsettings: { headers: given } }),
        before,
      );
      expect(protocolsettings?.headers).to.deep.equal(headers);
    });

  it('cannot mask a header that is not stored', () => {
    const message = refusalOfPut(stored, { protocolsettings: { headers: { 'x-none': '***' } } });
    expect(message).to.have.string(
      '/protocolsettings/headers/x-none is ***, which stands for a stored value.',
    );
  });

  it('may leave the state `gone` as it is, and may not set it', () => {
    const gone = { ...stored, config: { ...stored.config, state: 'gone' as const } };
    const members = { config: { state: 'gone' } };
    expect(parseReplacement(bodyWith(members), gone).config.state).to.equal('gone');
    expect(refusalOfPut(stored, members)).to.have.string('/config/state is set to `gone` by the service');
  });
});
