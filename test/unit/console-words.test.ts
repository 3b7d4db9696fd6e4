import { mock } from 'node:test';
import { expect } from 'chai';
import { inPlace } from '../../console/deliveries/in-place';
import { redeliveryResult } from '../../console/deliveries/delivery-words';
import { problemAt } from '../../console/parts/field-problem';
import { accountName, millisecondsOf } from '../../console/text/words';
import { pauseAfter } from '../../console/requests/pause-after';
import { rereader } from '../../console/requests/rereader';
import { RequestFailure } from '../../console/requests/request';
import { conditionsOf } from '../../console/subscriptions/filter-words';
import { EMPTY_SUBSCRIPTION, problemsOf } from '../../console/subscriptions/subscription-draft';
import { changesOf, explorerLink, sentenceOf } from '../../console/token/token-words';
import { stopLater } from '../helpers/resources';

const [ONE, TWO] = [
  '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
];

describe('words of the console', () => {
  it('tell who may do what, with each address apart', () => {
    const whom = `beneficiary: the nominee ${TWO}; holder: anybody else`;
    expect(sentenceOf({ operation: 'transferOwners', by: ONE, whom })).to.deep.equal([
      { address: ONE },
      { words: ' may transfer both roles (beneficiary: the nominee ' },
      { address: TWO },
      { words: '; holder: anybody else).' },
    ]);
    expect(sentenceOf({ operation: 'restore', by: 'restorer' })).to.deep.equal([
      { words: 'An account with the role restorer' },
      { words: ' may restore the token to its title escrow.' },
    ]);
  });

  it('tell which roles an operation changed', () => {
    const before = { beneficiary: ONE, holder: ONE, nominee: TWO };
    const after = { beneficiary: ONE, holder: TWO, nominee: undefined };
    expect(changesOf({ before, after })).to.deep.equal([
      { role: 'holder', before: ONE, after: TWO },
      { role: 'nominee', before: TWO, after: undefined },
    ]);
  });

  it('tell what a redelivery did', () => {
    const result = (...counts: { queued: number; alreadyWaiting: number }[]) =>
      redeliveryResult({ registries: counts.map((count) => ({ registry: '1:0x0', ...count })) }, 'none');
    expect(result()).to.deep.equal({ tone: 'wait', words: 'Nothing is sent: none.' });
    const sent = result({ queued: 1, alreadyWaiting: 0 }, { queued: 1, alreadyWaiting: 1 });
    expect(sent).to.deep.equal({ tone: 'good', words: '3 events will be sent.' });
  });

  it('name the accounts of a local node', () => {
    expect(accountName(TWO.toLowerCase(), [ONE, TWO])).to.equal('account 1');
    expect(accountName(TWO, [])).to.equal(undefined);
  });

  it('tell durations to the millisecond, the longer ones more briefly', () => {
    for (const [ms, text] of [
      [0, '0 ms'],
      [9_999, '9,999 ms'],
      [-5_000, '−5,000 ms'],
      [61_540, '61.5 s'],
      [7_300_000, '2 hours'],
      [-3 * 86_400_000, '−3 days'],
    ] as const)
      expect(millisecondsOf(ms)).to.equal(text);
  });

  it('tell a field why it was refused, without the pointer to it', () => {
    const refused = (message: string) => new RequestFailure(400, 'SUBSCRIPTION_INVALID', message);
    expect(problemAt(refused('/sink is not https.'), '/sink')).to.deep.equal({
      message: 'Is not https.',
      isRefused: true,
    });
    expect(problemAt(refused('/sinks is unknown.'), '/sink')).to.equal(undefined);
    expect(problemAt(undefined, '/sink')).to.equal(undefined);
    const draft = { ...EMPTY_SUBSCRIPTION, parties: '0x1' };
    expect(problemsOf(refused('/filters/0/parties/0 is not an address.'), draft)).to.deep.equal({
      parties: [{ message: 'Is not an address.', isRefused: true }],
    });
    expect(
      problemsOf(refused('/filters/0/parties/0 is not an address.'), { ...draft, tokens: '1' }),
    ).to.deep.equal({});
  });

  it('tell the conditions of a subscription', () => {
    const conditions = (part: object): string[] => conditionsOf(part);
    expect(conditions({})).to.deep.equal(['all events of all registries']);
    const filters = [
      { any: [{ suffix: { type: '_transfer' } }, { exact: { type: 'com.service.etr.minted' } }] },
      { not: { prefix: { type: 'com.service.etr.registry_' } } },
      { tokens: ['1'.repeat(77)] },
      { parties: [ONE, TWO] },
    ];
    const source = `urn:service:31337:${ONE.toLowerCase()}`;
    expect(conditions({ source, types: ['com.service.etr.minted'], filters })).to.deep.equal([
      'of the registry 31337:0x7099…79c8',
      'of the types minted',
      '(with a type that ends with _transfer) or (with a type that is minted)',
      'not (with a type that begins with registry_)',
      'of the token 111111…1111',
      'that name one of 2 addresses',
    ]);
  });

  it('link to an explorer only if it is a web page', () => {
    expect(explorerLink('https://scan.example/', 'tx', '0x1')).to.equal('https://scan.example/tx/0x1');
    expect(explorerLink('javascript:alert(1)', 'tx', '0x1')).to.equal(undefined);
    expect(explorerLink(null, 'tx', '0x1')).to.equal(undefined);
  });
});

describe('rows of the console', () => {
  const rows = (text: string): { key: string; state: string }[] =>
    [...text].map((key) => ({ key: key.toLowerCase(), state: key === key.toLowerCase() ? 'old' : 'new' }));
  const held = (shown: string, latest: string): string =>
    inPlace(rows(shown), rows(latest), ({ key }) => key)
      .map(({ key, state }) => (state === 'old' ? key : key.toUpperCase()))
      .join('');

  for (const [shown, latest, after] of [
    ['abc', 'zyabc', 'abc'],
    ['abc', 'zaBc', 'aBc'],
    ['abc', 'zac', 'abc'],
    ['abc', 'zabcde', 'abcde'],
    ['abc', 'xyz', 'abc'],
    ['', 'ab', ''],
  ] as const)
    it(`keep their places, change there, and get the older ones behind them: ${shown}, ${latest}`, () => {
      expect(held(shown, latest)).to.equal(after);
    });
});

describe('requests of the console', () => {
  it('wait longer after each failure, half a minute at most, for times that differ between pages', () => {
    expect([1, 2, 20].map((failures) => pauseAfter(failures, 0.5))).to.deep.equal([1000, 2000, 30_000]);
    expect([0, 0.5, 1].map((random) => pauseAfter(0, random))).to.deep.equal([375, 500, 625]);
  });

  it('read again at most once a second, and once for all that was asked meanwhile', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    stopLater('timers', () => mock.timers.reset());
    const reading: (() => void)[] = [];
    const { ask, stop } = rereader(() => new Promise((resolve) => reading.push(resolve)));
    const finish = async (): Promise<void> => {
      reading.at(-1)?.();
      await new Promise(setImmediate);
    };
    for (let count = 0; count < 5; count++) ask();
    expect(reading).to.have.length(1);
    await finish();
    mock.timers.tick(999);
    expect(reading).to.have.length(1);
    mock.timers.tick(1);
    expect(reading).to.have.length(2);
    await finish();
    ask();
    stop();
    mock.timers.tick(10_000);
    expect(reading).to.have.length(2);
  });
});
