import { otherFormsOf } from '../config/warnings';
import type { Condition, ConditionKind } from '../events/conditions';

/** Something that is wrong, and what to do about it. */
export interface Problem {
  severity: 'error' | 'warning';
  /** One sentence. */
  message: string;
  remedy: string;
  /** The page of the console that shows more: `#/deliveries?state=dead`, for example. */
  href?: string;
}

/** A condition as it is shown. */
export type ShownCondition = Condition & Problem;

/** A signer that restarts is back by then. */
const PATIENCE_MS = 60_000;

/** The conditions as health and the console show them. The errors come first. */
export function shownConditions(conditions: readonly Condition[], now: number): ShownCondition[] {
  const shown = conditions.map((one): ShownCondition => {
    const [severity, message, remedy, href] = PROBLEMS[one.what](one, now);
    const { what, subject, since, detail } = one;
    return { what, subject, since, detail, severity, message, remedy, ...(href !== undefined && { href }) };
  });
  const isError = ({ severity }: Problem): boolean => severity === 'error';
  return [...shown.filter(isError), ...shown.filter((problem) => !isError(problem))];
}

/** The problem of a process that issues no documents, because settings are missing. */
export function missingSettings(missing: readonly string[]): Problem[] {
  if (missing.length === 0) return [];
  const verb = missing.length === 1 ? 'is' : 'are';
  const message = `Documents cannot be issued: ${missing.join(', ')} ${verb} not configured.`;
  const remedy = `Set them, then restart the service.${otherFormsOf(missing)}`;
  return [{ severity: 'warning', message, remedy }];
}

type Words = readonly [severity: Problem['severity'], message: string, remedy: string, href?: string];

/** A sentence with its reason, if there is one. Some reasons end with a full stop, or with the remedy. */
function because(sentence: string, reason: string | number = '', remedy: string | number = ''): string {
  const why = String(reason).replace(String(remedy), '').trim().replace(/\.$/, '');
  return why === '' ? `${sentence}.` : `${sentence}: ${why}.`;
}

const feedOf = ({ registryAddress, chainId }: Condition['detail']): string =>
  `${registryAddress} on the chain ${chainId}`;

const SUBSCRIPTIONS = '#/subscriptions';
const TRIES_AGAIN = 'The service tries again by itself. Check the node.';
const CORRECT_PIN = 'Correct the PIN, run `npx tdoc keys --retry`, then restart the service.';
const GOES_ON = 'The service goes on by itself when it signs again.';
/** By the code of the signer's failure. */
const SIGNER_REMEDIES: Readonly<Record<string, string>> = {
  SIGNER_PIN_REFUSED: CORRECT_PIN,
  SIGNER_UNREACHABLE: `Start the signer. ${GOES_ON}`,
  SIGNER_REFUSED: `Check that the signer has the key once, and allows this service to sign. ${GOES_ON}`,
  SIGNER_ANSWER_WRONG: "Find out who answers in the signer's place.",
};
const FOLLOW = 'Follow it with `npx tdoc registries add`, or give it up with `npx tdoc registries remove`.';

const noDelivery = (severity: Problem['severity'], { detail, since }: Condition, now: number): Words => [
  severity,
  `No delivery to the subscription ${detail.subscription} has succeeded for ` +
    `${counted(Math.floor((now - since) / 60_000), 'minute')}.`,
  'Look at the error of its last attempt, and correct the sink.',
  `#/deliveries?state=failed&subscription=${encodeURIComponent(String(detail.subscription))}`,
];

const stopped = ({ detail }: Condition): Words => [
  'error',
  because(`The events of ${feedOf(detail)} are no longer read`, detail.reason, detail.remedy),
  `${detail.remedy ?? 'Correct the cause.'} Then restart the service.`,
];

/** The problem of each kind of condition. */
const PROBLEMS: Record<ConditionKind, (condition: Condition, now: number) => Words> = {
  subscription_failing: (condition, now) => noDelivery('error', condition, now),
  subscription_slow: (condition, now) => noDelivery('warning', condition, now),
  subscription_gone: ({ detail }) => [
    'error',
    `The sink of the subscription ${detail.subscription} answered that it is gone.`,
    'Resume the subscription when its sink accepts events again.',
    SUBSCRIPTIONS,
  ],
  subscription_paused: ({ detail }) => [
    'warning',
    `The subscription ${detail.subscription} is paused: its events wait.`,
    'Resume it, or let its owner get a new key if the last one has ended.',
    SUBSCRIPTIONS,
  ],
  dead_letters: ({ detail }) => [
    'error',
    `The subscription ${detail.subscription} has dead letters: events that are not sent again.`,
    'Correct the sink. Then choose its subscription in Deliveries, and deliver them again.',
    '#/deliveries?state=dead',
  ],
  feed_stopped: stopped,
  reorganisation_too_deep: stopped,
  feed_behind: ({ detail: { reason, remedy = TRIES_AGAIN, blocksPerSecond, ...feed } }) =>
    blocksPerSecond === undefined
      ? ['error', because(`The events of ${feedOf(feed)} cannot be read`, reason, remedy), String(remedy)]
      : ['warning', because(`The service is behind ${feedOf(feed)}`, reason, remedy), String(remedy)],
  feed_ahead: ({ detail }) => [
    'warning',
    because(`The events of ${feedOf(detail)} are not read yet`, detail.reason),
    'Nothing is recorded yet, so the feed begins where it is told after a restart.',
  ],
  feed_unreceived: ({ detail }) => [
    'warning',
    `Nothing receives the events of ${feedOf(detail)}: they wait.`,
    'Set WEBHOOK_URL, or make a subscription.',
    SUBSCRIPTIONS,
  ],
  feed_unfollowed: ({ detail }) => [
    'warning',
    `The events of ${detail.registry} are not delivered, because no setting follows it.`,
    FOLLOW,
  ],
  node_away: ({ detail }) => [
    'warning',
    because(`The node ${detail.node} is left out`, detail.reason),
    'The service asks it again by itself. While one node is left, no other confirms what it says.',
  ],
  node_differing: ({ detail }) => [
    'warning',
    because(`The node ${detail.node} gave another answer than two others`, detail.difference),
    'Its answer was not believed. If this happens again, take it out of RPC_URL.',
  ],
  wallet_low: ({ detail: { wallet, mintsAffordable: left } }) => [
    left === 0 ? 'error' : 'warning',
    `The wallet ${wallet} ` +
      `${left === 0 ? 'cannot pay for a mint' : `can pay for ${counted(Number(left), 'more mint')} only`}.`,
    'Send it funds.',
  ],
  signer_away: ({ detail, since }, now) => [
    now - since >= PATIENCE_MS ? 'error' : 'warning',
    `${detail.key === 'wallet' ? 'Mints wait' : 'No document can be issued'}: ` +
      `the ${detail.key}'s signer at ${detail.signer} does not sign (${detail.code}).`,
    SIGNER_REMEDIES[String(detail.code)] ?? `Check the signer. ${GOES_ON}`,
  ],
  mint_deferred: ({ since }, now) => [
    'warning',
    `A mint has not been mined for ${counted(Math.floor((now - since) / 60_000), 'minute')}.`,
    'Check the node, and whether the fees of the network have risen.',
  ],
  mint_failed: ({ detail, since }) => [
    'warning',
    `A mint failed at ${new Date(since).toISOString()} with ${detail.code}.`,
    'docs/error-codes.md explains the code, and GET /documents?state=failed has the reason.',
  ],
  documents_unfollowed: ({ detail: { unfinished, issuer, registry } }) => [
    'warning',
    `${counted(Number(unfinished), 'document')} of ${issuer} in ${registry} ` +
      `${unfinished === 1 ? 'waits' : 'wait'} to be issued.`,
    'Start the service with their TOKEN_REGISTRY_ADDRESS and DID_KEY_PAIRS.',
  ],
  database_missing: () => [
    'error',
    'The files of the database were removed: everything is lost when the service ends.',
    'Do not end it. Move the files back, or run the command that the log shows.',
  ],
  database_unwritable: ({ detail }) => [
    'error',
    because('Nothing can be stored: no document, no event and no delivery', detail.code),
    'Free space on the disk of the database, or let the service write to it. It goes on by itself.',
  ],
};

function counted(count: number, what: string): string {
  return `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;
}
