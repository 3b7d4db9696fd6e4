import { otherFormsOf } from '../config/warnings';
import type { Difference, NodeReport } from '../chain/node-states';
import type { IssuingReport } from '../observability/issuing-report';
import type { Unfollowed } from '../observability/unfollowed';
import type { SubscriptionsHealth } from '../subscriptions/subscription-health';
import type { FollowedFeed } from '../watcher/feed-status';
import type { Problem, RegistryView } from './views';

/** The figures in which problems are found. Undefined: it is not known now. */
export interface Observed {
  now: number;
  feeds: readonly FollowedFeed[];
  registries: readonly RegistryView[];
  /** The names of missing settings; empty if documents can be issued. */
  missing: readonly string[];
  issuing: IssuingReport | undefined;
  /** Undefined too while there is nothing to know. */
  subscriptions: SubscriptionsHealth | undefined;
  /** Failures that began at this time or earlier are not only slow, but failing. */
  failingBefore: number;
  unfollowed: Unfollowed | undefined;
}

/** A catch-up that lasts longer is a problem. */
const LAGGING_AFTER_MS = 60_000;
/** A node that restarts is back by then. */
const FAILING_AFTER_MS = 60_000;
const FEW_MINTS = 20;
const LONG_MINT_SECONDS = 600;
/** An older failure of a mint is history. */
const RECENT_MS = 3_600_000;

/** Finds what is wrong. The errors come first. */
export function problemsOf(observed: Observed): Problem[] {
  const problems = [
    ...observed.feeds.flatMap((feed) => [...feedProblems(feed, observed.now)]),
    ...nodeProblems(observed),
    ...walletProblems(observed),
    ...signerProblems(observed),
    ...deliveryProblems(observed),
    ...subscriptionProblems(observed),
    ...mintProblems(observed),
    ...settingProblems(observed),
    ...unfollowedProblems(observed),
  ];
  const isError = ({ severity }: Problem): boolean => severity === 'error';
  return [...problems.filter(isError), ...problems.filter((problem) => !isError(problem))];
}

function* feedProblems({ network, registry, status }: FollowedFeed, now: number): Iterable<Problem> {
  const { state, since, code, reason, catchUp } = status;
  const name = `${registry} on ${network}`;
  const why = sentenceEnd(reason ?? (state === 'stopped' ? 'see the log' : 'its node does not answer'));
  if (state === 'stopped') {
    const message = `The events of ${name} are no longer read: ${why}`;
    yield { severity: 'error', message, remedy: 'Correct the cause, then restart the service.' };
  } else if (code === 'START_BLOCK_AHEAD') {
    const message = `The events of ${name} are not read yet. ${why}`;
    const remedy = 'Nothing is recorded yet, so the feed begins where it is told after a restart.';
    yield { severity: 'warning', message, remedy };
  } else if (state === 'failing' || (state === 'starting' && now - since >= FAILING_AFTER_MS)) {
    const message = `The events of ${name} cannot be read: ${why}`;
    const severity = now - since >= FAILING_AFTER_MS ? 'error' : 'warning';
    yield { severity, message, remedy: 'The service tries again by itself. Check the node.' };
  } else if (catchUp !== undefined && now - catchUp.since >= LAGGING_AFTER_MS) {
    const blocks = catchUp.toBlock + 1 - (status.nextBlock ?? catchUp.fromBlock);
    const message = `The service is ${blocks} blocks behind the chain of ${name}.`;
    yield { severity: 'warning', message, remedy: 'It catches up by itself. A faster node shortens this.' };
  }
}

/** The nodes of a chain with several. A feed and issuing may each know the same node. */
function* nodeProblems({ feeds, issuing }: Observed): Iterable<Problem> {
  const all = [...feeds.flatMap(({ nodes }) => nodes?.() ?? []), ...(issuing?.nodes ?? [])];
  const isAway = ({ state }: NodeReport): boolean => state === 'away';
  const away = new Map(all.filter(isAway).map((node) => [node.url, node]));
  for (const { url, reason } of away.values())
    yield {
      severity: 'warning',
      message: `The node ${url} is left out: ${sentenceEnd(reason ?? 'it is away')}`,
      remedy: 'The service asks it again by itself. While one node is left, no other confirms what it says.',
    };
  const odd = new Map<string, Difference>(
    all.flatMap((node) => (node.lastDifference ? [[node.url, node.lastDifference]] : [])),
  );
  for (const [url, { difference }] of odd)
    yield {
      severity: 'warning',
      message: `The node ${url} gave another answer than two others: ${sentenceEnd(difference)}`,
      remedy: 'Its answer was not believed. If this happens again, take it out of RPC_URL.',
    };
}

/** Some reasons end with a full stop, some without. */
function sentenceEnd(reason: string): string {
  return `${reason.replace(/\.$/, '')}.`;
}

function* walletProblems({ issuing }: Observed): Iterable<Problem> {
  const { wallet } = issuing ?? {};
  const left = wallet?.mintsAffordable;
  if (wallet === undefined || left === undefined || left >= FEW_MINTS) return;
  const message =
    left === 0
      ? `The wallet ${wallet.address} cannot pay for a mint.`
      : `The wallet ${wallet.address} can pay for ${counted(left, 'more mint')} only.`;
  yield { severity: left === 0 ? 'error' : 'warning', message, remedy: 'Send it funds.' };
}

function* signerProblems({ issuing, now }: Observed): Iterable<Problem> {
  for (const { key, at, state, since, code } of issuing?.signers ?? [])
    if (state === 'failing')
      yield {
        severity: now - since >= FAILING_AFTER_MS ? 'error' : 'warning',
        message: `${UNSIGNED[key]}: the ${key}'s signer at ${at} does not sign (${code}).`,
        remedy: code === 'SIGNER_PIN_REFUSED' ? CORRECT_PIN : CHECK_SIGNER,
      };
}

const CORRECT_PIN = 'Correct the PIN, run `npx tdoc keys --retry`, then restart the service.';
const CHECK_SIGNER =
  'Do as the log says, or check the signer. The service goes on by itself when it signs again.';

/** The effect of a missing signer, by its key. */
const UNSIGNED = { wallet: 'Mints wait', issuer: 'No document can be issued' };

function* deliveryProblems({ registries, subscriptions }: Observed): Iterable<Problem> {
  const sum = (key: 'waiting' | 'deadLetters'): number =>
    registries.reduce((total, registry) => total + (registry[key] ?? 0), 0);
  const dead = sum('deadLetters');
  if (dead > 0)
    yield {
      severity: 'error',
      message: `${counted(dead, 'dead letter')} ${dead === 1 ? 'is' : 'are'} not sent again.`,
      remedy: 'Correct the sink. Then choose its subscription in Deliveries, and deliver them again.',
      href: '#/deliveries?state=dead',
    };
  const waiting = sum('waiting');
  const known = subscriptions && Object.values(subscriptions.byState).reduce((all, one) => all + one, 0);
  if (waiting > 0 && known === 0)
    yield {
      severity: 'warning',
      message: `Nothing receives events: ${counted(waiting, 'event')} ${waiting === 1 ? 'waits' : 'wait'}.`,
      remedy: 'Set WEBHOOK_URL, or make a subscription.',
      href: '#/subscriptions',
    };
}

function* subscriptionProblems({ subscriptions, failingBefore, now }: Observed): Iterable<Problem> {
  const href = '#/subscriptions';
  for (const { id, state, failingSince } of subscriptions?.troubled.slice(0, MOST_NAMED) ?? [])
    if (state === 'gone') {
      const message = `The sink of the subscription ${id} answered that it is gone.`;
      const remedy = 'Resume the subscription when its sink accepts events again.';
      yield { severity: 'error', message, remedy, href };
    } else if (state === 'paused' || failingSince === undefined) {
      const message = `The subscription ${id} is paused: its events wait.`;
      yield { severity: 'warning', message, remedy: 'Resume it.', href };
    } else {
      const minutes = Math.floor((now - failingSince) / 60_000);
      yield {
        severity: failingSince <= failingBefore ? 'error' : 'warning',
        message: `No delivery to the subscription ${id} has succeeded for ${counted(minutes, 'minute')}.`,
        remedy: 'Look at the error of its last attempt, and correct the sink.',
        href: `#/deliveries?state=failed&subscription=${encodeURIComponent(id)}`,
      };
    }
}

/** Subscriptions that are named. The others are on their own page. */
const MOST_NAMED = 10;

function* mintProblems({ issuing, now }: Observed): Iterable<Problem> {
  const { lastFailure, oldestSeconds = 0 } = issuing?.mints ?? {};
  if (oldestSeconds >= LONG_MINT_SECONDS)
    yield {
      severity: 'warning',
      message: `A mint has not been mined for ${counted(Math.floor(oldestSeconds / 60), 'minute')}.`,
      remedy: 'Check the node, and whether the fees of the network have risen.',
    };
  if (lastFailure !== undefined && now - lastFailure.at < RECENT_MS)
    yield {
      severity: 'warning',
      message: `A mint failed at ${new Date(lastFailure.at).toISOString()} with ${lastFailure.code}.`,
      remedy: 'docs/error-codes.md explains the code, and the log has the reason.',
    };
}

function* settingProblems({ missing }: Observed): Iterable<Problem> {
  if (missing.length === 0) return;
  const verb = missing.length === 1 ? 'is' : 'are';
  const message = `Documents cannot be issued: ${missing.join(', ')} ${verb} not configured.`;
  yield {
    severity: 'warning',
    message,
    remedy: `Set them, then restart the service.${otherFormsOf(missing)}`,
  };
}

function* unfollowedProblems({ unfollowed }: Observed): Iterable<Problem> {
  for (const { registry } of unfollowed?.deliveries ?? [])
    yield {
      severity: 'warning',
      message: `The events of ${registry} are not delivered, because no setting follows it.`,
      remedy: 'Follow it with `npx tdoc registries add`, or give it up with `npx tdoc registries remove`.',
    };
  for (const { registry, issuer, unfinished } of unfollowed?.issuances ?? []) {
    const documents = `${counted(unfinished, 'document')} of ${issuer} in ${registry}`;
    yield {
      severity: 'warning',
      message: `${documents} ${unfinished === 1 ? 'waits' : 'wait'} to be issued.`,
      remedy: 'Start the service with their TOKEN_REGISTRY_ADDRESS and DID_KEY_PAIRS.',
    };
  }
}

function counted(count: number, what: string): string {
  return `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;
}
