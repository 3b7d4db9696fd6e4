import { registryName } from '../base/registry-name';
import { NOT_ASKED, type NodeReport } from '../chain/node-states';
import { aboutFeed, type Condition } from '../events/conditions';
import type { JournalScope } from '../journal/issuance';
import type { Sight } from '../outbox/conditions';
import { progressOf, type FollowedFeed, type Progress } from '../watcher/feed-status';
import type { IssuingReport } from './issuing-report';

// The decisions what is wrong. They are pure: from figures to conditions.

/** A node that restarts is back by then, and a catch-up is over. */
const PATIENCE_MS = 60_000;
/** The wallet is low below this number of mints, and filled from the other one on: fees go up and down. */
const FEW_MINTS = 20;
const ENOUGH_MINTS = 25;
/** A mint that is not mined for so long is deferred. */
const LONG_MINT_SECONDS = 600;
/** An older failure of a mint is history. */
const RECENT_MS = 3_600_000;

const OF_FEED = ['feed_stopped', 'feed_behind', 'feed_ahead', 'reorganisation_too_deep'] as const;

/**
 * The condition of a feed. `unknown`: it began to fail, or to catch up, a moment ago, and may soon be well.
 * An earlier condition lasts until then.
 */
export function conditionOfFeed(
  { name, status }: FollowedFeed,
  now: number,
): Condition | 'unknown' | undefined {
  const { state, since, code, reason, remedy, catchUp } = status;
  const { subject, detail } = aboutFeed(name);
  const all = { subject, since, detail: { ...detail, code, reason, remedy } };
  if (state === 'stopped')
    return { what: code === 'CHAIN_REORGANISED' ? 'reorganisation_too_deep' : 'feed_stopped', ...all };
  if (code === 'START_BLOCK_AHEAD') return { what: 'feed_ahead', ...all };
  const behindSince = Math.min(isRead(status) ? Infinity : since, catchUp?.since ?? Infinity);
  if (behindSince === Infinity) return undefined;
  const behind = { what: 'feed_behind', subject, since: behindSince } as const;
  if (isStuck(status, now))
    return { ...behind, detail: { ...detail, code, reason: reason ?? 'its node does not answer', remedy } };
  // While blocks are read between failures, the catch-up has their reason.
  const progress = now - behindSince < PATIENCE_MS ? undefined : progressOf(status, now);
  return progress ? { ...behind, detail: { ...detail, ...slowness(progress) } } : 'unknown';
}

function isRead({ state }: FollowedFeed['status']): boolean {
  return state === 'following' || state === 'standby';
}

/** Whether a feed could not be read for a minute. */
function isStuck(status: FollowedFeed['status'], now: number): boolean {
  const { since, code } = status;
  return !isRead(status) && code !== 'START_BLOCK_AHEAD' && now - since >= PATIENCE_MS;
}

/** Why a feed is read, and behind. The rates are rounded, because each other detail is stored. */
function slowness({ isEndless, code, reason, remedy, ...rates }: Progress): Condition['detail'] {
  const { blocksPerSecond, chainBlocksPerSecond } = rates;
  const [read, made] = [blocksPerSecond, chainBlocksPerSecond].map((rate) => Number(rate.toPrecision(1)));
  const speeds = `it reads about ${read} blocks a second, and the chain makes about ${made}`;
  const end = isEndless ? ': at this rate it never catches up' : '';
  const why = reason ? ` ${reason}` : '';
  const byItself = isEndless
    ? 'Set RPC_URL to a node that answers faster.'
    : 'It catches up by itself. A faster node shortens this.';
  return { code, reason: `${speeds}${end}.${why}`, blocksPerSecond: read, remedy: remedy ?? byItself };
}

/**
 * Whether a feed is read, or a restart would not help: it would neither speed up a catch-up nor bring the
 * chain to the block at which the feed begins.
 */
export function isWell({ status }: FollowedFeed, now: number): boolean {
  return status.state !== 'stopped' && !isStuck(status, now);
}

/** The sight of a feed's reader: the feed and its nodes. */
export function sightOfFeed(feed: FollowedFeed, now: number): Sight {
  const condition = conditionOfFeed(feed, now);
  const { conditions, unknown = [] } = sightOfNodes(feed.nodes?.());
  if (condition === 'unknown') return { conditions, unknown: [...unknown, ...OF_FEED] };
  return { conditions: condition === undefined ? conditions : [condition, ...conditions], unknown };
}

/** The sight of the nodes of a chain with several. */
function sightOfNodes(nodes: readonly NodeReport[] = []): Sight {
  const conditions = nodes.flatMap(({ url: node, state, since, reason, lastDifference }) => {
    const subject = `node/${node}`;
    const found: Condition[] = [];
    if (state === 'away' && reason !== NOT_ASKED)
      found.push({ what: 'node_away', subject, since, detail: { node, reason } });
    if (lastDifference !== undefined) {
      const { at, block, difference } = lastDifference;
      found.push({ what: 'node_differing', subject, since: at, detail: { node, difference, block } });
    }
    return found;
  });
  const isAsked = nodes.every(({ reason }) => reason !== NOT_ASKED);
  return { conditions, unknown: isAsked ? [] : ['node_away'] };
}

/** The sight of the process that mints. */
export function sightOfIssuing(
  { mints, nodes, signers, wallet }: IssuingReport,
  { chainId, registryAddress }: JournalScope,
  now: number,
): Sight {
  const sight = sightOfNodes(nodes);
  const conditions = [...sight.conditions];
  const unknown = [...(sight.unknown ?? [])];
  const left = wallet?.mintsAffordable ?? Infinity;
  if (wallet === undefined || (left >= FEW_MINTS && left < ENOUGH_MINTS)) unknown.push('wallet_low');
  else if (left < FEW_MINTS) {
    const detail = { wallet: wallet.address.toLowerCase(), mintsAffordable: left };
    conditions.push({ what: 'wallet_low', subject: 'wallet', since: wallet.readAt, detail });
  }
  for (const { key, at: signer, state, since, code } of signers)
    if (state === 'unknown') unknown.push('signer_away');
    else if (state === 'failing') {
      const detail = { key, signer, code };
      conditions.push({ what: 'signer_away', subject: `signer/${key}`, since, detail });
    }
  const { detail } = aboutFeed(registryName(chainId, registryAddress));
  const { oldestSeconds = 0, lastFailure } = mints ?? {};
  const subject = `mints/${chainId}:${detail.registryAddress}`;
  if (mints === undefined) unknown.push('mint_deferred');
  else if (oldestSeconds >= LONG_MINT_SECONDS)
    conditions.push({ what: 'mint_deferred', subject, since: now - oldestSeconds * 1_000, detail });
  if (lastFailure !== undefined && now - lastFailure.at < RECENT_MS) {
    const { at: since, code } = lastFailure;
    conditions.push({ what: 'mint_failed', subject, since, detail: { ...detail, code } });
  }
  return { conditions, unknown };
}
