import { expect } from 'chai';
import { EVENT_SCHEMAS, OPERATIONAL_TYPES, type OperationSuffix } from '../../client/events';
import type { ErrorCode } from '../../service/base/errors';
import type { NodeReport } from '../../service/chain/node-states';
import {
  beginOf,
  endOf,
  operationalEventOf,
  type Condition,
  type ConditionKind,
} from '../../service/events/conditions';
import type { IssuingReport } from '../../service/observability/issuing-report';
import { isWell, sightOfFeed, sightOfIssuing } from '../../service/observability/observed-conditions';
import { missingSettings, shownConditions } from '../../service/observability/problems';
import type { Sight } from '../../service/outbox/conditions';
import type { FollowedFeed } from '../../service/watcher/feed-status';
import { schemaProblem } from '../helpers/receiver/schema-problems';

const NOW = Date.UTC(2027, 0, 1);
const MINUTE = 60_000;
const REGISTRY = '0x0000000000000000000000000000000000000001';
const SCOPE = { chainId: 80002, registryAddress: REGISTRY, issuer: 'did:web:a' };

const STATUS: FollowedFeed['status'] = {
  state: 'following',
  since: NOW - 60 * MINUTE,
  nextBlock: 101,
  finalBlock: 100,
  headBlock: 100,
  catchUp: undefined,
  code: undefined,
  reason: undefined,
};
const GAS = { gasOfMint: 350_000, isGasEstimated: true };
const WALLET = {
  address: `0x${'Aa'.repeat(20)}`,
  balanceWei: 1n,
  mintsAffordable: 1_000,
  ...GAS,
  readAt: NOW,
};
const MINTS = { waiting: 0, inFlight: 0, mined: 0, oldestSeconds: undefined, lastFailure: undefined };
const ISSUING: IssuingReport = {
  signers: [],
  mints: MINTS,
  signing: { waiting: 0, busy: 0, threads: 1 },
  wallet: WALLET,
};

function feedOf(status: Partial<FollowedFeed['status']>, node?: Partial<NodeReport>): FollowedFeed {
  const up = { state: 'up', since: 0, reason: undefined, headBlock: 100, lastDifference: undefined } as const;
  return {
    name: `80002:${REGISTRY}`,
    network: 'amoy',
    chainId: 80002,
    registry: REGISTRY,
    status: { ...STATUS, ...status },
    ...(node && { nodes: () => [{ url: 'http://node.example', ...up, differences: 0, ...node }] }),
  };
}

const ofFeed = (status: Partial<FollowedFeed['status']>, node?: Partial<NodeReport>): Sight =>
  sightOfFeed(feedOf(status, node), NOW);
const ofIssuing = (report: Partial<IssuingReport>): Sight =>
  sightOfIssuing({ ...ISSUING, ...report }, SCOPE, NOW);
const withMints = (mints: Partial<NonNullable<IssuingReport['mints']>>): Sight =>
  ofIssuing({ mints: { ...MINTS, ...mints } });
const withWallet = (mintsAffordable: number | undefined): Sight =>
  ofIssuing({ wallet: { ...WALLET, mintsAffordable } });
const withSigner = (since: number, code: ErrorCode = 'SIGNER_UNREACHABLE'): Sight => {
  const failing = { state: 'failing', code, wrongAnswers: 0, since } as const;
  return ofIssuing({ signers: [{ key: 'wallet', at: 'http://signer.example', ...failing }] });
};
const having = (what: ConditionKind, detail: Condition['detail'], since = NOW): Sight => ({
  conditions: [{ what, subject: 'a', since, detail }],
});
const OF_SUBSCRIPTION = { subscription: 'a b' };
/** A catch-up that has read so many blocks since its start, while the chain made half a block a second. */
const catchUp = (ms: number, blocksRead = 0, slowed?: string) => {
  const [since, made] = [NOW - ms, ms / 2_000];
  const marks = [{ at: since, nextBlock: 101 - blocksRead, toBlock: 300 - made }] as const;
  const failure = slowed && { at: NOW - 1, code: 'NODE_FAILED', reason: slowed, remedy: 'Ask it.' };
  const all = { fromBlock: 1, toBlock: 300, since, marks, ...(failure && { slowed: failure }) };
  return { nextBlock: 101, catchUp: all };
};

describe('what is wrong', () => {
  const none = {
    'a feed is read': ofFeed({}),
    'a catch-up began a moment ago': ofFeed(catchUp(1_000)),
    'a node began to fail a moment ago': ofFeed({ state: 'failing', since: NOW - MINUTE + 1 }),
    'a feed starts': ofFeed({ state: 'starting', since: NOW - 1_000 }),
    'issuing is well': ofIssuing({}),
    'nothing is known of issuing': ofIssuing({ mints: undefined, wallet: undefined }),
    'gas is free': withWallet(undefined),
    'the wallet has enough': withWallet(20),
    'a mint failed long ago': withMints({ lastFailure: { code: 'MINT_REVERTED', at: NOW - 61 * MINUTE } }),
  };
  for (const [what, { conditions }] of Object.entries(none))
    it(`is nothing if ${what}`, () => expect(conditions).to.deep.equal([]));

  const ahead = { state: 'starting', code: 'START_BLOCK_AHEAD', reason: 'Too high.' } as const;
  /** Each with its kind, its severity, its message and, if it has one, its link. */
  const kinds: [shown: RegExp, sight: Sight][] = [
    [/^feed_stopped error: .*no longer read: none\.$/, ofFeed({ state: 'stopped', reason: 'none.' })],
    [
      /^reorganisation_too_deep error: .*no longer read: too deep\.$/,
      ofFeed({ state: 'stopped', code: 'CHAIN_REORGANISED', reason: 'too deep' }),
    ],
    [
      /^feed_behind error: .*cannot be read: no node\.$/,
      ofFeed({ state: 'failing', reason: 'no node.', since: NOW - MINUTE }),
    ],
    [/^feed_behind error: .*its node does not answer\.$/, ofFeed({ state: 'starting' })],
    [/^feed_ahead warning: .*read yet: Too high\.$/, ofFeed(ahead)],
    [
      /^feed_behind warning: The service is behind .*: it reads about 2 blocks a second, and the chain makes about 0.5\.$/,
      ofFeed(catchUp(2 * MINUTE, 240)),
    ],
    [
      /^feed_behind warning: .* reads about 0.3 blocks .* makes about 0.5: at this rate it never catches up\.$/,
      ofFeed(catchUp(2 * MINUTE, 30)),
    ],
    [
      /^feed_behind warning: .* reads about 2 blocks .* about 0.5\. The node answers with an error: no\.$/,
      ofFeed({
        ...catchUp(2 * MINUTE, 240, 'The node answers with an error: no.'),
        state: 'failing',
        since: NOW - 1,
      }),
    ],
    [
      /^feed_behind error: .*cannot be read: no node\.$/,
      ofFeed({ ...catchUp(9 * MINUTE), state: 'failing', reason: 'no node.', since: NOW - MINUTE }),
    ],
    [
      /^node_away warning: .*example is left out: it is gone\.$/,
      ofFeed({}, { state: 'away', reason: 'it is gone' }),
    ],
    [
      /^node_differing warning: The node .* than two others: no logs\.$/,
      ofFeed({}, { lastDifference: { at: NOW, block: '7', difference: 'no logs' } }),
    ],
    [/^wallet_low warning: .*for 19 more mints only\.$/, withWallet(19)],
    [/^wallet_low error: .*cannot pay for a mint\.$/, withWallet(0)],
    [/^signer_away warning: .* does not sign \(SIGNER_UNREACHABLE\)\.$/, withSigner(NOW - 1)],
    [/^signer_away error: Mints wait: .*\.$/, withSigner(NOW - MINUTE)],
    [/^mint_deferred warning: .*for 11 minutes\.$/, withMints({ oldestSeconds: 660 })],
    [
      /^mint_failed warning: .*2027-01-01T00:00:00.000Z with MINT_REVERTED\.$/,
      withMints({ lastFailure: { code: 'MINT_REVERTED', at: NOW } }),
    ],
    [
      /^feed_unfollowed warning: .*events of 1:0x1 are not delivered.*\.$/,
      having('feed_unfollowed', { registry: '1:0x1', undelivered: 1, nextBlock: 1 }),
    ],
    [
      /^documents_unfollowed warning: 1 document of did:web:x.* waits.*\.$/,
      having('documents_unfollowed', { registry: '1:0x1', issuer: 'did:web:x', unfinished: 1 }),
    ],
    [
      /warning: .*a b has succeeded for 5 minutes\. #\/deliveries\?state=failed&subscription=a%20b$/,
      having('subscription_slow', OF_SUBSCRIPTION, NOW - 5 * MINUTE),
    ],
    [
      /error: .*for 90 minutes\. #\/deliveries\?state=failed&subscription=a%20b$/,
      having('subscription_failing', OF_SUBSCRIPTION, NOW - 90 * MINUTE),
    ],
    [/warning: .*is paused.*\. #\/subscriptions$/, having('subscription_paused', OF_SUBSCRIPTION)],
    [/error: .*is gone\. #\/subscriptions$/, having('subscription_gone', OF_SUBSCRIPTION)],
    [/error: .*dead letters.*\. #\/deliveries\?state=dead$/, having('dead_letters', OF_SUBSCRIPTION)],
    [/warning: Nothing receives .*\. #\/subscriptions$/, having('feed_unreceived', {})],
    [/^database_missing error: .*removed.*\.$/, having('database_missing', {})],
    [/^database_unwritable error: Nothing .*: 25006\.$/, having('database_unwritable', { code: '25006' })],
  ];
  for (const [shown, { conditions }] of kinds)
    it(`is ${String(shown)}, with a remedy`, () => {
      const [condition, ...others] = shownConditions(conditions, NOW);
      expect(others).to.deep.equal([]);
      const { what: kind, severity, message, href = '', remedy } = condition ?? {};
      expect(`${kind} ${severity}: ${message} ${href}`.trimEnd()).to.match(shown);
      expect(remedy).to.match(/\.$/);
    });

  it('is shown with the errors first', () => {
    const all = [...having('subscription_paused', OF_SUBSCRIPTION).conditions, ...withWallet(0).conditions];
    expect(shownConditions(all, NOW).map(({ severity }) => severity)).to.deep.equal(['error', 'warning']);
  });

  it('includes missing settings', () => {
    const [{ message } = { message: '' }, ...others] = missingSettings(['DOMAIN', 'DID_KEY_PAIRS']);
    expect(others.concat(missingSettings([]))).to.deep.equal([]);
    expect(message).to.match(/DOMAIN, DID_KEY_PAIRS are not configured\.$/);
  });

  it('is not known while a feed may soon be well, or the wallet is near its limit', () => {
    expect(ofFeed(catchUp(1_000)).unknown)
      .to.include('feed_behind')
      .and.to.include('feed_stopped');
    expect(ofFeed({}).unknown ?? []).to.deep.equal([]);
    expect(withWallet(24).unknown).to.deep.equal(['wallet_low']);
    expect(withWallet(25).unknown).to.deep.equal([]);
    const asked = { key: 'wallet', at: 'x', state: 'unknown', since: 0, code: undefined, wrongAnswers: 0 };
    const { unknown } = ofIssuing({ mints: undefined, signers: [asked as never] });
    expect(unknown).to.deep.equal(['signer_away', 'mint_deferred']);
  });

  it('makes the service unhealthy only if a feed is not read, and a restart may help', () => {
    const failing = { state: 'failing', since: NOW - MINUTE } as const;
    const unwell = [{ state: 'stopped' } as const, failing, { ...failing, state: 'starting' } as const];
    for (const status of unwell) expect(isWell(feedOf(status), NOW), status.state).to.equal(false);
    const catchingUp = { ...catchUp(9 * MINUTE), state: 'failing', since: NOW - MINUTE + 1 } as const;
    const well = [{}, ahead, catchUp(2 * MINUTE), catchingUp, { state: 'standby' } as const];
    for (const status of well) expect(isWell(feedOf(status), NOW), JSON.stringify(status)).to.equal(true);
    expect(isWell(feedOf({ ...failing, since: NOW - MINUTE + 1 }), NOW)).to.equal(true);
  });
});

describe('an operational event', () => {
  const uuid = '01890000-0000-4000-8000-000000000000';
  const detail: Condition['detail'] = {
    subscription: uuid,
    chainId: 80002,
    registryAddress: REGISTRY,
    code: 'RPC_UNREACHABLE',
    reason: 'no answer',
    node: 'http://node.example',
    difference: '0 logs instead of 5 logs',
    block: '7',
    wallet: `0x${'aa'.repeat(20)}`,
    mintsAffordable: 3,
    key: 'wallet',
    signer: 'http://signer.example',
    event: uuid,
    eventType: 'com.service.etr.minted',
    attempts: 50,
    status: 500,
    error: 'status 500',
    secret: 'is in no schema',
  };
  const suffixes = OPERATIONAL_TYPES.map((type) => type.split('.').at(-1) as OperationSuffix);

  for (const suffix of suffixes)
    it(`${suffix} has the members of its schema, and no others`, () => {
      const event = operationalEventOf(suffix, { subject: 'a', since: NOW, detail }, NOW + 1);
      expect(schemaProblem(event)).to.equal(undefined);
      expect(EVENT_SCHEMAS).to.have.property(event.type);
    });

  it('has the same id whoever tells it, and another one for each begin and each end', () => {
    const idOf = (suffix: OperationSuffix, since: number, now: number): string =>
      operationalEventOf(suffix, { subject: 'wallet', since, detail }, now).id;
    expect(idOf('wallet_low', NOW, 1)).to.equal(idOf('wallet_low', NOW, 2));
    const ids = [idOf('wallet_low', NOW, 1), idOf('wallet_filled', NOW, 1), idOf('wallet_low', NOW + 1, 1)];
    expect(new Set(ids).size).to.equal(3);
  });

  it('tells of the begin of each condition whose end is told', () => {
    const kinds: ConditionKind[] = ['wallet_low', 'feed_behind', 'subscription_gone', 'database_missing'];
    for (const kind of kinds) expect([beginOf(kind), typeof endOf(kind)]).to.deep.equal([kind, 'string']);
    expect([beginOf('subscription_slow'), endOf('subscription_slow')]).to.deep.equal([undefined, undefined]);
  });
});
