import { expect } from 'chai';
import { problemsOf, type Observed } from '../../service/console/problems';
import type { RegistryView } from '../../service/console/views';
import type { FollowedFeed } from '../../service/watcher/feed-status';
import type { NodeReport } from '../../service/chain/node-states';
import type { IssuingReport } from '../../service/observability/issuing-report';

const NOW = Date.UTC(2027, 0, 1);
const REGISTRY = '0x0000000000000000000000000000000000000001';

const STATUS: FollowedFeed['status'] = {
  state: 'following',
  since: NOW - 3_600_000,
  nextBlock: 101,
  finalBlock: 100,
  headBlock: 100,
  catchUp: undefined,
  code: undefined,
  reason: undefined,
};

const VIEW: RegistryView = {
  network: 'amoy',
  chainId: 80002,
  registry: REGISTRY,
  state: 'following',
  since: 0,
  finalBlock: 100,
  headBlock: 100,
  readUpTo: 100,
  lagBlocks: 0,
  reason: null,
  waiting: 0,
  deadLetters: 0,
};

const ISSUING: IssuingReport = {
  signers: [],
  mints: { waiting: 0, inFlight: 0, mined: 0, oldestSeconds: undefined, lastFailure: undefined },
  signing: { waiting: 0, busy: 0, threads: 1 },
  wallet: { address: '0xw', balanceWei: 1n, mintsAffordable: 1_000, readAt: NOW },
};

const WELL: Observed = {
  now: NOW,
  feeds: [{ network: 'amoy', chainId: 80002, registry: REGISTRY, status: STATUS }],
  registries: [VIEW],
  missing: [],
  issuing: ISSUING,
  subscriptions: { byState: { active: 1, paused: 0, gone: 0 }, troubled: [] },
  failingBefore: NOW - 3_600_000,
  unfollowed: { deliveries: [], issuances: [] },
};

function withFeed(status: Partial<FollowedFeed['status']>): Observed {
  return { ...WELL, feeds: [{ ...WELL.feeds[0], status: { ...STATUS, ...status } } as FollowedFeed] };
}

function withMints(mints: Partial<NonNullable<IssuingReport['mints']>>): Observed {
  return {
    ...WELL,
    issuing: { ...ISSUING, mints: { ...ISSUING.mints, ...mints } as IssuingReport['mints'] },
  };
}

function withWallet(mintsAffordable: number | undefined): Observed {
  return {
    ...WELL,
    issuing: { ...ISSUING, wallet: { ...ISSUING.wallet, mintsAffordable } as IssuingReport['wallet'] },
  };
}

function withNode(changed: Partial<NodeReport>): Observed {
  const up = { state: 'up', since: 0, reason: undefined, headBlock: 100, lastDifference: undefined } as const;
  const nodes: NodeReport[] = [{ url: 'http://node.example', ...up, differences: 0, ...changed }];
  const [feed] = WELL.feeds;
  return { ...WELL, feeds: feed ? [{ ...feed, nodes: () => nodes }] : [], issuing: { ...ISSUING, nodes } };
}

function withFailingSigner(since: number): Observed {
  const failing = { state: 'failing', code: 'SIGNER_UNREACHABLE', wrongAnswers: 0, since } as const;
  const signers = [{ key: 'wallet', at: 'http://signer.example', ...failing } as const];
  return { ...WELL, issuing: { ...ISSUING, signers } };
}

function withTroubled(id: string, state: 'active' | 'paused' | 'gone', failingSince?: number): Observed {
  const byState = { active: 1, paused: 0, gone: 0 };
  return { ...WELL, subscriptions: { byState, troubled: [{ id, state, failingSince }] } };
}

const MINUTE = 60_000;

describe('the problems that the console shows', () => {
  const none: [string, Observed][] = [
    ['all is well', WELL],
    ['nothing is known', { ...WELL, issuing: undefined, subscriptions: undefined, unfollowed: undefined }],
    ['gas is free', withWallet(undefined)],
    ['a catch-up has just begun', withFeed({ catchUp: { fromBlock: 1, toBlock: 100, since: NOW - 1_000 } })],
    ['a mint failed long ago', withMints({ lastFailure: { code: 'X', at: NOW - 61 * MINUTE } })],
  ];
  for (const [what, observed] of none)
    it(`are none if ${what}`, () => expect(problemsOf(observed)).to.deep.equal([]));

  const noSubscriptions = { byState: { active: 0, paused: 0, gone: 0 }, troubled: [] };
  const behind = { nextBlock: 51, catchUp: { fromBlock: 1, toBlock: 100, since: NOW - 2 * MINUTE } };
  const ahead = { state: 'starting', code: 'START_BLOCK_AHEAD', reason: 'Too high.' } as const;
  const events: Observed['unfollowed'] = {
    deliveries: [{ registry: '1:0x1', undelivered: 1, nextBlock: 1 }],
    issuances: [],
  };
  const documents: Observed['unfollowed'] = {
    deliveries: [],
    issuances: [{ registry: '1:0x1', issuer: 'did:web:x', unfinished: 1 }],
  };
  /** Each with its severity, its message and, if it has one, its link. */
  const kinds: [what: string, observed: Observed, shown: RegExp][] = [
    [
      'a feed that stopped',
      withFeed({ state: 'stopped', reason: 'no registry.' }),
      /^error: .*no longer read: no registry\.$/,
    ],
    [
      'a feed that fails',
      withFeed({ state: 'failing', reason: 'no node.' }),
      /^error: .*cannot be read: no node\.$/,
    ],
    [
      'a feed that began to fail',
      withFeed({ state: 'failing', since: NOW - 1_000 }),
      /^warning: .*cannot be read.*\.$/,
    ],
    [
      'a feed that does not start',
      withFeed({ state: 'starting' }),
      /^error: .*its node does not answer.*\.$/,
    ],
    ['a feed whose start is above the head', withFeed(ahead), /^warning: .*not read yet\. Too high\.$/],
    ['a feed that lags', withFeed(behind), /^warning: .*50 blocks behind.*\.$/],
    [
      'dead letters',
      { ...WELL, registries: [{ ...VIEW, deadLetters: 1_234 }] },
      /^error: 1,234 dead letters are not sent again.*\. #\/deliveries\?state=dead$/,
    ],
    [
      'events that nobody receives',
      { ...WELL, registries: [{ ...VIEW, waiting: 2 }], subscriptions: noSubscriptions },
      /^warning: Nothing receives events: 2 events wait.*\. #\/subscriptions$/,
    ],
    [
      'a subscription that is slow',
      withTroubled('a b', 'active', NOW - 5 * MINUTE),
      /^warning: .*a b has succeeded for 5 minutes.*\. #\/deliveries\?state=failed&subscription=a%20b$/,
    ],
    [
      'a subscription that fails',
      withTroubled('a', 'active', NOW - 90 * MINUTE),
      /^error: .*for 90 minutes.*\. #\/deliveries\?state=failed&subscription=a$/,
    ],
    [
      'a subscription that is paused',
      withTroubled('a', 'paused'),
      /^warning: .*is paused.*\. #\/subscriptions$/,
    ],
    ['a subscription that is gone', withTroubled('a', 'gone'), /^error: .*is gone.*\. #\/subscriptions$/],
    [
      'a node that is away for a feed and for issuing',
      withNode({ state: 'away', reason: 'it cannot be reached' }),
      /^warning: The node http:\/\/node\.example is left out: it cannot be reached\.$/,
    ],
    [
      'a node that differed from two others',
      withNode({
        lastDifference: { at: NOW, block: '7', difference: 'eth_getLogs: 0 logs instead of 5 logs' },
      }),
      /^warning: The node .* than two others: eth_getLogs: 0 logs instead of 5 logs\.$/,
    ],
    ['a wallet with few mints left', withWallet(19), /^warning: .*for 19 more mints only.*\.$/],
    [
      'a signer that fails',
      withFailingSigner(NOW - 1),
      /^warning: Mints wait: .* does not sign \(SIGNER_UNREACHABLE\)\.$/,
    ],
    ['a signer that fails for a minute', withFailingSigner(NOW - 60_000), /^error: Mints wait: .*\.$/],
    ['an empty wallet', withWallet(0), /^error: .*cannot pay for a mint.*\.$/],
    ['a mint that takes long', withMints({ oldestSeconds: 660 }), /^warning: .*for 11 minutes.*\.$/],
    [
      'a mint that failed',
      withMints({ lastFailure: { code: 'MINT_REVERTED', at: NOW } }),
      /^warning: .*2027-01-01T00:00:00.000Z with MINT_REVERTED.*\.$/,
    ],
    [
      'missing settings',
      { ...WELL, missing: ['DOMAIN', 'DID_KEY_PAIRS'] },
      /^warning: .*DOMAIN, DID_KEY_PAIRS are not configured.*\.$/,
    ],
    [
      'events of a registry that is not followed',
      { ...WELL, unfollowed: events },
      /^warning: .*events of 1:0x1 are not delivered.*\.$/,
    ],
    [
      'documents of another issuer',
      { ...WELL, unfollowed: documents },
      /^warning: 1 document of did:web:x.*\.$/,
    ],
  ];
  for (const [what, observed, shown] of kinds)
    it(`name ${what}, with a remedy`, () => {
      const problems = problemsOf(observed);
      const told = problems.map(({ severity, message, href }) => `${severity}: ${message} ${href ?? ''}`);
      expect(told).to.have.length(1);
      expect(told[0]?.trimEnd()).to.match(shown);
      expect(problems[0]?.remedy).to.match(/\.$/);
    });

  it('begin with the errors', () => {
    const observed = {
      ...withTroubled('a', 'paused'),
      registries: [{ ...VIEW, deadLetters: 1 }],
      missing: ['X'],
    };
    const severities = problemsOf(observed).map(({ severity }) => severity);
    expect(severities).to.deep.equal(['error', 'warning', 'warning']);
  });
});
