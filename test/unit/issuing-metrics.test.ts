import { expect } from 'chai';
import { registryName } from '../../service/base/registry-name';
import { createLifecycle } from '../../service/base/lifecycle';
import { systemTime } from '../../service/base/time';
import { healthOf } from '../../service/observability/health';
import { mintReport, type IssuingReport, type MintReport } from '../../service/observability/issuing-report';
import { createSnapshots, type IssuingFigures } from '../../service/observability/snapshot';
import type { HealthReport } from '../../service/http/routes/published';
import { createMetrics, type Metrics } from '../../service/observability/metrics';
import type { SeenCondition } from '../../service/outbox/conditions';
import type { NodeReport } from '../../service/chain/node-states';
import { newFeedStatus, type FeedState, type FollowedFeed } from '../../service/watcher/feed-status';
import { quoted, readDocument, tables } from '../helpers/pages/markdown';

const signing = { waiting: 4, busy: 2, threads: 2 };
const wallet = {
  address: `0x${'12'.repeat(20)}`,
  balanceWei: 1_500_000_000_000_000_000n,
  mintsAffordable: 42,
  gasOfMint: 350_000,
  isGasEstimated: true,
  readAt: 5_000,
};
const signer = { state: 'up', since: 6_000, code: undefined, wrongAnswers: 1 } as const;
const signers = [
  { ...signer, key: 'wallet', at: 'https://signer.example', state: 'failing' },
  { ...signer, key: 'issuer', at: '/lib/module.so, token tdoc' },
] as const;
const mints = { waiting: 3, inFlight: 2, mined: 1, oldestSeconds: 90, lastFailure: undefined };

const WHEN = '1970-01-01T00:00:06.000Z';

const NOTHING = { feeds: [], outboxes: [], conditions: undefined, subscriptions: undefined, now: 0 };

/** The value lines of a metric. */
async function valuesOf(
  metrics: Metrics,
  issuing: IssuingReport | undefined,
  name: string,
): Promise<string[]> {
  const text = await metrics({ ...NOTHING, issuing });
  return text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
}

describe('the metrics of issuing', () => {
  it('report mints, signing, the wallet and remote signers', async () => {
    const metrics = createMetrics(createLifecycle());
    const expected = {
      etr_mints: ['{state="waiting"} 3', '{state="in_flight"} 2', '{state="mined"} 1'],
      etr_mint_oldest_seconds: [' 90'],
      etr_signing_waiting: [' 4'],
      etr_signing_busy: [' 2'],
      etr_signer_up: ['{key="wallet"} 0', '{key="issuer"} 1'],
      etr_signer_wrong_answers_total: ['{key="wallet"} 1', '{key="issuer"} 1'],
      etr_wallet_balance_wei: [' 1500000000000000000'],
      etr_wallet_mints_affordable: [' 42'],
    };
    for (const [name, values] of Object.entries(expected)) {
      const lines = await valuesOf(metrics, { mints, signing, signers, wallet }, name);
      expect(lines).to.deep.equal(values.map((value) => `${name}${value}`));
    }
  });

  it('have no value for unknown figures, and the age 0 when no mint is open', async () => {
    const metrics = createMetrics(createLifecycle());
    await metrics({ ...NOTHING, issuing: { mints, signing, signers, wallet } });
    const idle = { ...mints, oldestSeconds: undefined };
    const free = { ...wallet, mintsAffordable: undefined };
    const empty = { ...wallet, balanceWei: 0n, mintsAffordable: 0 };
    const none: string[] = [];
    const now = { mints: idle, signing, signers: [], wallet: free };
    const age = await valuesOf(metrics, now, 'etr_mint_oldest_seconds');
    expect(age).to.deep.equal(['etr_mint_oldest_seconds 0']);
    for (const name of ['etr_wallet_balance_wei', 'etr_wallet_mints_affordable'])
      expect(await valuesOf(metrics, { ...now, wallet: empty }, name)).to.deep.equal([`${name} 0`]);
    expect(await valuesOf(metrics, now, 'etr_wallet_mints_affordable')).to.deep.equal(none);
    expect(await valuesOf(metrics, now, 'etr_signer_up')).to.deep.equal(none);
    const away = { mints: undefined, signing, signers: [], wallet: undefined };
    for (const name of ['etr_mints', 'etr_mint_oldest_seconds', 'etr_wallet_balance_wei'])
      expect(await valuesOf(metrics, away, name)).to.deep.equal(none);
    for (const name of ['etr_mints', 'etr_signing_waiting', 'etr_signing_busy'])
      expect(await valuesOf(metrics, undefined, name)).to.deep.equal(none);
  });

  it('count failed mints by code, and mints undone by a reorganisation', async () => {
    const lifecycle = createLifecycle();
    const metrics = createMetrics(lifecycle);
    lifecycle.emit('mint failed', 'MINT_REVERTED');
    lifecycle.emit('mint failed', 'MINT_REVERTED');
    lifecycle.emit('mint failed', 'TRANSACTION_REJECTED');
    lifecycle.emit('mints reorganised', 3);
    expect(await valuesOf(metrics, undefined, 'etr_mints_failed_total')).to.deep.equal([
      'etr_mints_failed_total{code="MINT_REVERTED"} 2',
      'etr_mints_failed_total{code="TRANSACTION_REJECTED"} 1',
    ]);
    expect(await valuesOf(metrics, undefined, 'etr_mints_reorganised_total')).to.deep.equal([
      'etr_mints_reorganised_total 3',
    ]);
  });
});

describe('GET /metrics', () => {
  it('has the blocks of feeds, and each node by its worst state', async () => {
    const [registry, url] = [`0x${'ab'.repeat(20)}`, 'https://node.example'];
    const node = { url, state: 'up', headBlock: 9, differences: 2 } as NodeReport;
    const status = { ...newFeedStatus(0), nextBlock: 7, headBlock: 9, finalBlock: 6 };
    const feed = (state: FeedState, nodes: NodeReport[]): FollowedFeed => {
      const [network, chainId] = ['localhost', nodes.length];
      const name = registryName(chainId, registry);
      return { name, network, chainId, registry, status: { ...status, state }, nodes: () => nodes };
    };
    const away: NodeReport = { ...node, state: 'away', headBlock: 8, differences: 3 };
    const feeds = [feed('following', [node]), feed('failing', [node, away])];
    const text = await createMetrics(createLifecycle())({ ...NOTHING, issuing: undefined, feeds });
    const of = (chainId: number, value: number) => `{registry="${chainId}:${registry}"} ${value}`;
    expect(text.split('\n').filter((line) => /^etr_(feed|node)/.test(line))).to.have.members([
      ...[of(1, 1), of(2, 0)].map((value) => `etr_feed_up${value}`),
      ...[of(1, 7), of(2, 7)].map((value) => `etr_feed_next_block${value}`),
      ...[of(1, 9), of(2, 9)].map((value) => `etr_feed_head_block${value}`),
      ...[of(1, 6), of(2, 6)].map((value) => `etr_feed_final_block${value}`),
      `etr_node_up{node="${url}"} 0`,
      `etr_node_head_block{node="${url}"} 8`,
      `etr_node_differences_total{node="${url}"} 3`,
    ]);
  });

  it('has the rates of a feed that is behind, of the last minute', async () => {
    const registry = `0x${'ab'.repeat(20)}`;
    const marks = [{ at: 1_000, nextBlock: 7, toBlock: 90 }] as const;
    const catchUp = { fromBlock: 1, toBlock: 100, since: 0, marks };
    const status = { ...newFeedStatus(0), nextBlock: 47, catchUp };
    const feeds = [{ name: registryName(1, registry), network: 'localhost', chainId: 1, registry, status }];
    const measured = { ...NOTHING, issuing: undefined, feeds, now: 101_000 };
    const text = await createMetrics(createLifecycle())(measured);
    expect(text.split('\n').filter((line) => /^etr_feed\w*_per_second/.test(line))).to.deep.equal([
      `etr_feed_blocks_per_second{registry="1:${registry}"} 0.4`,
      `etr_feed_chain_blocks_per_second{registry="1:${registry}"} 0.1`,
    ]);
  });

  it('has each condition by its kind, 0 if it does not hold, and none when unread', async () => {
    const one = { observer: '', subject: '', since: 0, detail: {} };
    const holding: SeenCondition[] = [
      { ...one, what: 'wallet_low' },
      { ...one, what: 'node_away', subject: 'node/1' },
      { ...one, what: 'node_away', subject: 'node/2' },
    ];
    const of = async (conditions: SeenCondition[] | undefined): Promise<string[]> => {
      const text = await createMetrics(createLifecycle())({
        ...NOTHING,
        issuing: undefined,
        conditions,
      });
      return text.split('\n').filter((line) => line.startsWith('etr_conditions{'));
    };
    expect(await of(holding)).to.include.members([
      'etr_conditions{what="wallet_low"} 1',
      'etr_conditions{what="node_away"} 2',
      'etr_conditions{what="feed_behind"} 0',
    ]);
    expect(await of(undefined)).to.deep.equal([]);
  });

  it('has the age of the oldest event that waits, of each registry', async () => {
    const figures = { nextBlock: 1, waiting: 1, deadLetters: 0, orphaned: 0 };
    const outboxes = [
      { ...figures, registry: registryName(1, '0xaa'), oldestWaitingSince: 6_000 },
      { ...figures, registry: registryName(2, '0xaa'), oldestWaitingSince: undefined },
    ];
    const measured = { ...NOTHING, issuing: undefined, outboxes, now: 10_500 };
    const text = await createMetrics(createLifecycle())(measured);
    expect(text.split('\n').filter((line) => line.startsWith('etr_delivery_oldest'))).to.deep.equal([
      'etr_delivery_oldest_seconds{registry="1:0xaa"} 4.5',
      'etr_delivery_oldest_seconds{registry="2:0xaa"} 0',
    ]);
  });

  it('has how long requests, stages, attempts and the way from the block took, in seconds', async () => {
    const lifecycle = createLifecycle();
    const metrics = createMetrics(lifecycle);
    const registry = registryName(1, '0xaa');
    lifecycle.emit('answered', 'POST /create/{documentId}', 500, 40);
    lifecycle.emit('stage ended', 'mint', 12_000);
    lifecycle.emit('attempted', registry, 'failed', 3_000);
    lifecycle.emit('attempted', registry, 'delivered', 20, 90_000);
    // The clock of the chain may be ahead of this machine's.
    lifecycle.emit('attempted', registry, 'delivered', 20, -5_000);
    // No block has operational events.
    lifecycle.emit('attempted', 'operations', 'delivered', 20, 90_000);
    const sums = {
      etr_http_request_duration_seconds: [
        '{operation="POST /create/{documentId}",status="200"} 0',
        '{operation="POST /create/{documentId}",status="202"} 0',
        '{operation="POST /create/{documentId}",status="500"} 0.04',
        '{operation="POST /create/{documentId}",status="503"} 0',
      ],
      etr_create_stage_duration_seconds: ['{stage="mint"} 12'],
      etr_delivery_attempt_duration_seconds: [
        `{registry="${registry}",outcome="failed"} 3`,
        `{registry="${registry}",outcome="delivered"} 0.04`,
        '{registry="operations",outcome="delivered"} 0.02',
      ],
      etr_block_to_delivery_seconds: [`{registry="${registry}"} 90`],
    };
    for (const [name, values] of Object.entries(sums))
      expect(await valuesOf(metrics, undefined, `${name}_sum`), name).to.have.members(
        values.map((value) => `${name}_sum${value}`),
      );
  });

  it('has the metrics of docs/operations.md', async () => {
    const text = await createMetrics(createLifecycle())({ ...NOTHING, issuing: undefined });
    const names = [...text.matchAll(/^# HELP (etr_\S+)/gm)].map(([, name]) => name);
    const [rows = []] = tables(readDocument('docs/operations.md').section('Metrics'));
    const documented = rows.flatMap(([cell = '']) => {
      const [first = '', ...others] = quoted(cell).map((name) => name.replace(/\{.*/, ''));
      // `…` stands for the first two words.
      return [first, ...others.map((name) => name.replace('…', first.split('_').slice(0, 2).join('_')))];
    });
    expect(names).to.have.members(documented);
  });
});

describe('the report of issuing', () => {
  const mintsNow = async (now = 4_500): Promise<MintReport> =>
    mintReport(
      { waiting: 1, inFlight: 0, mined: 0, oldestAddedAt: 1_000 },
      { code: 'MINT_REVERTED', at: 3_000 },
      now,
    );
  const source: IssuingFigures = {
    countMints: () => mintsNow(),
    ownFigures: async () => ({ signing, signers, wallet }),
  };
  const health = async (issuing: IssuingFigures, withinMs = 1_000): Promise<HealthReport> => {
    const never = async () => expect.fail();
    const unasked = { conditions: never, outboxes: never, subscriptions: never };
    const take = createSnapshots({ ...unasked, feeds: () => [], issuing }, { time: systemTime });
    return healthOf(await take(withinMs, []));
  };

  it('gives ages in seconds, and times and wei as text', async () => {
    expect((await health(source)).issuing).to.deep.equal({
      mints: {
        waiting: 1,
        inFlight: 0,
        mined: 0,
        oldestSeconds: 3,
        lastFailure: { code: 'MINT_REVERTED', at: '1970-01-01T00:00:03.000Z' },
      },
      signing,
      signers: [
        { key: 'wallet', at: 'https://signer.example', state: 'failing', since: WHEN, wrongAnswers: 1 },
        { key: 'issuer', at: '/lib/module.so, token tdoc', state: 'up', since: WHEN, wrongAnswers: 1 },
      ],
      wallet: { ...wallet, balanceWei: '1500000000000000000', readAt: '1970-01-01T00:00:05.000Z' },
    });
  });

  it('leaves the service healthy with an empty wallet, which a restart would not fund', async () => {
    const empty = { ...wallet, balanceWei: 0n, mintsAffordable: 0 };
    const ownFigures = async () => ({ signing, signers, wallet: empty });
    const { status, issuing } = await health({ ...source, ownFigures });
    expect(status).to.equal('ok');
    expect(issuing).to.deep.include({
      wallet: { ...empty, balanceWei: '0', readAt: '1970-01-01T00:00:05.000Z' },
    });
  });

  it('has no negative age when the clock of another process is ahead', async () => {
    expect((await mintsNow(0)).oldestSeconds).to.equal(0);
  });

  it('comes in time, without the mints, when the database fails or hangs', async () => {
    const ownFigures = async () => ({ signing, signers: [], wallet: undefined });
    const failing = async () => Promise.reject(new Error('the database is away'));
    const hanging = () => new Promise<never>(() => undefined);
    for (const countMints of [failing, hanging])
      expect((await health({ countMints, ownFigures }, 5)).issuing).to.deep.equal({ signing, signers: [] });
  });
});
