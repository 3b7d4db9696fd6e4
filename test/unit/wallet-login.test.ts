import { expect } from 'chai';
import { Wallet } from 'ethers';
import { readLoginMessage } from '../../service/access/login-message';
import { createWalletLogin, type WalletLogin } from '../../service/access/wallet-login';
import { systemTime } from '../../service/base/time';
import { codeOf, messageOf } from '../../service/base/errors';
import type { FollowedRegistry } from '../../service/config/followed-registries';
import { loginMessage, type LoginLines } from '../helpers/login-message';

const ADDRESS = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const DOMAIN = 'carrier.example';
const NOW = Date.parse('2030-06-15T12:00:00Z');
const HOUR_MS = 3_600_000;

const WHOLE: LoginLines = {
  domain: DOMAIN,
  address: ADDRESS,
  statement: 'I read https://carrier.example/terms, (all of it)!',
  uri: 'https://carrier.example/login?of=me#here',
  version: '1',
  chainId: 80002,
  nonce: 'a1B2c3D4',
  issuedAt: '2030-06-15T12:00:00.000Z',
  expirationTime: '2030-06-15T18:00:00Z',
  notBefore: '2030-06-15T14:00:00.5+02:00',
  requestId: 'some_id%20(1)',
  resources: ['https://carrier.example/a', 'urn:x:[1]'],
};
const BARE = {
  ...{ statement: null, expirationTime: null, notBefore: null, requestId: null, resources: null },
  uri: 'https://carrier.example',
};

const answerTo = (text: string, domain = DOMAIN): string => {
  try {
    return String(readLoginMessage(text, domain, NOW).endsAt);
  } catch (error) {
    return `${codeOf(error)} ${/^\/message: (\w+( [A-Z]\w*| line)?)/.exec(messageOf(error))?.[1]}`;
  }
};
const ends = (time: string): string => String(Date.parse(time));
const lines = loginMessage(WHOLE).split('\n');
const swapped = (first: number, second = first + 1): string =>
  lines.map((line, at) => (at === first ? lines[second] : at === second ? lines[first] : line)).join('\n');
const without = (index: number, put = ''): string =>
  lines.map((line, at) => (at === index ? put : line)).join('\n');

// The cases are those of the reference implementation (spruceid/siwe, test/), in words and values of ours.
describe('a message of EIP-4361', () => {
  it('is read with all of its lines, and with the needed ones alone', () => {
    const tomorrow = String(NOW + 24 * HOUR_MS);
    const cases: [Partial<LoginLines>, string, string?][] = [
      [{}, ends('2030-06-15T18:01:00Z')],
      [BARE, tomorrow],
      [{ ...BARE, issuedAt: '2030-06-15T12:00:00Z' }, tomorrow],
      [{ ...BARE, issuedAt: '2030-06-15T10:00:00-02:00' }, tomorrow],
      [{ ...BARE, chainId: 1 }, tomorrow],
      [{ ...BARE, domain: `https://${DOMAIN}` }, tomorrow],
      [{ ...BARE, domain: 'Carrier.Example' }, tomorrow],
      [{ ...BARE, resources: [] }, tomorrow],
      [{ ...BARE, requestId: '' }, tomorrow],
      [{ ...BARE, domain: 'localhost:3030', uri: 'http://localhost:3030/x' }, tomorrow, 'localhost:3030'],
      [{ ...BARE, domain: '127.0.0.1', uri: 'http://127.0.0.1/?a=b#c' }, tomorrow, '127.0.0.1'],
      [{ ...BARE, uri: `https://${DOMAIN}:443/` }, tomorrow],
      [{ ...BARE, expirationTime: '2031-01-01T00:00:00Z' }, tomorrow],
      [{ ...BARE, issuedAt: '2030-06-15T12:00:59Z', notBefore: '2030-06-15T12:00:59Z' }, tomorrow],
      [{ ...BARE, expirationTime: '2030-06-15T11:59:01Z' }, String(NOW + 1_000)],
    ];
    for (const [changed, end, domain] of cases)
      expect(answerTo(loginMessage({ ...WHOLE, ...changed }), domain), JSON.stringify(changed)).to.equal(end);
  });

  it('of another form is refused, and the error names the line', () => {
    const cases: [string, string][] = [
      [` ${lines[0]}`, 'domain'],
      [without(0, ' wants you to sign in with your Ethereum account:'), 'domain'],
      [without(1), 'address'],
      ...[5, 6, 7, 8, 9].map((at): [string, string] => [
        without(at),
        ['URI', 'Version', 'Chain ID', 'Nonce', 'Issued At'][at - 5] ?? '',
      ]),
      [swapped(5), 'URI'],
      [swapped(6), 'Version'],
      [swapped(7), 'Chain ID'],
      [swapped(8), 'Nonce'],
      [swapped(9), 'Issued At'],
      [swapped(10), 'last line'],
      [swapped(11), 'last line'],
      [swapped(12), 'last line'],
      [`${lines.join('\n')}\n`, 'last line'],
      [lines.join('\r\n'), 'address'],
      ...(
        [
          [{ domain: '#carrier' }, 'domain'],
          [{ address: ADDRESS.toLowerCase() }, 'address'],
          [{ address: ADDRESS.replace('C51', 'c51') }, 'address'],
          [{ address: ADDRESS.slice(0, -1) }, 'address'],
          [{ statement: 'two\nlines' }, 'URI'],
          [{ statement: 'für alle' }, 'URI'],
          [{ uri: ':no_uri' }, 'URI'],
          [{ uri: 'https://carrier.example/a b' }, 'URI'],
          [{ version: '2' }, 'Version'],
          [{ chainId: '?' }, 'Chain ID'],
          [{ chainId: '1e5' }, 'Chain ID'],
          [{ nonce: '1234567' }, 'Nonce'],
          [{ nonce: 'a1b2c3d4-' }, 'Nonce'],
          [{ issuedAt: '2030-06-15T12:00:00Zx' }, 'Issued At'],
          [{ expirationTime: '2030-06-15T18:00:00Z ' }, 'Expiration Time'],
          [{ issuedAt: 'Wed Oct 05 2011 16:48:00 GMT+0200 (CEST)' }, 'Issued At'],
          [{ issuedAt: '2030-02-31T12:00:00Z' }, 'Issued At'],
          [{ expirationTime: '2030-02-31T12:00:00Z' }, 'Expiration Time'],
          [{ expirationTime: 'tomorrow' }, 'Expiration Time'],
          [{ notBefore: '2030-02-31T12:00:00Z' }, 'Not Before'],
          [{ notBefore: '2030-06-15' }, 'Not Before'],
          [{ requestId: 'a/b' }, 'last line'],
          [{ resources: ['https://carrier.example/a - https://carrier.example/b'] }, 'last line'],
          [{ resources: [':no_uri', 'urn:x'] }, 'last line'],
          [{ resources: ['urn:x', ':no_uri'] }, 'last line'],
        ] as [Partial<LoginLines>, string][]
      ).map(([changed, line]): [string, string] => [loginMessage({ ...WHOLE, ...changed }), line]),
    ];
    for (const [text, line] of cases) expect(answerTo(text), text).to.equal(`LOGIN_INVALID ${line}`);
  });

  it('of another service or another time is refused', () => {
    const cases: [Partial<LoginLines>, string][] = [
      [{ domain: 'other.example' }, 'domain'],
      [{ domain: `me@${DOMAIN}` }, 'domain'],
      [{ domain: `${DOMAIN}:444` }, 'domain'],
      [{ domain: `http://${DOMAIN}` }, 'URI'],
      [{ uri: 'https://other.example' }, 'URI'],
      [{ uri: 'http://carrier.example' }, 'URI'],
      [{ uri: `https://${DOMAIN}:444/` }, 'URI'],
      [{ uri: `https://${DOMAIN}@other.example` }, 'URI'],
      [{ uri: 'urn:x' }, 'URI'],
      [{ uri: 'x://localhost' }, 'URI'],
      [{ issuedAt: '2030-06-15T12:01:01Z' }, 'Issued At'],
      [{ notBefore: '2030-06-15T12:01:01Z' }, 'Not Before'],
      [{ expirationTime: '2030-06-15T11:59:00Z' }, 'Expiration Time'],
    ];
    for (const [changed, line] of cases)
      expect(answerTo(loginMessage({ ...WHOLE, ...changed })), JSON.stringify(changed)).to.equal(
        `LOGIN_REFUSED ${line}`,
      );
  });
});

describe('the log-in of a wallet', () => {
  const wallet = Wallet.createRandom();
  let now: number;
  const wallets = (sealingKey = new Uint8Array(32), followed?: FollowedRegistry): WalletLogin =>
    createWalletLogin({
      ...{ domain: DOMAIN, sealingKey, time: { ...systemTime, now: () => now } },
      keys: { make: () => Promise.reject(new Error('No key is made here.')) },
      chainIds: () => [],
      followedOn: () => followed,
    });
  const messageWith = (nonce: string): string =>
    loginMessage({ ...WHOLE, ...BARE, address: wallet.address, nonce });

  const problemWith = async (nonce: string, log = wallets()): Promise<string> => {
    const message = messageWith(nonce);
    const signature = await wallet.signMessage(message);
    return log
      .login({ message, signature }, 'network', new AbortController().signal)
      .then(() => '', messageOf);
  };

  beforeEach(() => {
    now = NOW;
  });

  it('takes nonces of its own key, for ten minutes, letter by letter', async () => {
    const nonce = wallets().makeNonce();
    expect(nonce).to.match(/^[0-9a-z]{50,100}$/);
    expect(wallets().makeNonce()).not.to.equal(nonce);
    // The next check is that of the chain.
    const isTaken = /^\/message: Chain ID is 80002, and no registry/;
    const isRefused = /^\/message: Nonce is not of this service, or is old/;
    expect(await problemWith(nonce)).to.match(isTaken);
    expect(await problemWith(nonce, wallets(new Uint8Array(32).fill(1)))).to.match(isRefused);
    for (const wrong of [
      'a1b2c3d4',
      nonce.slice(2),
      nonce.toUpperCase(),
      nonce.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
    ])
      expect(await problemWith(wrong)).to.match(isRefused);
    now += 10 * 60_000 - 1;
    expect(await problemWith(nonce)).to.match(isTaken);
    now += 1;
    expect(await problemWith(nonce)).to.match(isRefused);
  });

  it('is not one of the 20 of an hour if its key could not be stored', async () => {
    const log = wallets(undefined, {} as FollowedRegistry);
    for (let times = 0; times < 30; times++)
      expect(await problemWith(log.makeNonce(), log)).to.equal('No key is made here.');
  });
});
