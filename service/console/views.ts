/**
 * The JSON that the console's page gets from its service. Both sides are built together: these shapes are no
 * interface for others. Times are in epoch milliseconds, token ids 64 hexadecimal digits, unless another unit
 * is named. Texts may contain what strangers wrote.
 */

import type { Holder } from '../access/access-keys';
import type { Confirmations } from '../chain/networks';
import type { IssuingReport } from '../observability/issuing-report';
import type { Problem } from '../observability/problems';
import type { OutboxFigures } from '../outbox/outbox-figures';
import type { FeedStatus, FollowedFeed, Progress } from '../watcher/feed-status';

/**
 * `operator` (ADMIN_API_KEY) may change things; `reader` (CONSOLE_READ_KEY) only looks; `holder` has a key
 * with a scope.
 */
export type Role = 'operator' | 'reader' | 'holder';

/** GET and POST /console/api/session. GET answers 204 if nobody is logged in. */
export interface Session {
  role: Role;
  /** The owner of a holder's key, or else the role. A page keeps and sends things of one owner. */
  owner: string;
  expiresAt: number;
  /** The key of a holder. */
  holder?: Pick<Holder, 'name' | 'may'>;
}

/** The body of POST /console/api/session: a key, or the token of a link that logs in once. */
export type LogIn = { key: string } | { link: string };

/** One measurement for a plot: `at`, and the value. */
export type Sample = readonly [at: number, value: number];

/** A registry that is followed, and the state of its feed. A number that is not known now is absent. */
export interface RegistryView
  extends
    Omit<FollowedFeed, 'name' | 'status' | 'nodes'>,
    Omit<FeedStatus, 'catchUp'>,
    Partial<Omit<OutboxFigures, 'registry' | 'nextBlock'>> {
  /** `headBlock` minus the last block that was read. */
  lagBlocks: number | undefined;
  /** Absent while the feed is up to date. */
  catchUp: Progress | undefined;
}

/** The wallet, with its balance in the currency. */
export interface WalletView extends Pick<
  NonNullable<IssuingReport['wallet']>,
  'address' | 'mintsAffordable' | 'isGasEstimated'
> {
  balance: string;
  currency: string;
}

/** GET /console/api/overview. Its ETag names all but `at`. */
export interface Overview {
  at: number;
  /** Changes whenever the chain, a mint or a delivery moved: a page that shows those reads them again. */
  revision: string;
  /** The errors first. Empty: all is well. */
  problems: Problem[];
  registries: RegistryView[];
  /** Null while documents cannot be issued. */
  issuing: (Pick<IssuingReport, 'mints' | 'signing'> & { wallet: WalletView | undefined }) | null;
  subscriptions: { active: number; paused: number; gone: number };
  /** The last half hour. `lag`: blocks of the registry that is furthest behind. */
  plots: { lag: Sample[]; deliveriesPerMinute: Sample[] };
}

/** GET /console/api/facts: what does not change while the service runs. */
export interface Facts {
  network: { name: string; isLocal: boolean };
  confirmations: Confirmations;
  canIssue: boolean;
  /** Accounts of a local node, for the form. Empty on a public network. */
  accounts: string[];
  version: string;
  /** Terms of a Bill of Lading, for the form, in the order of the context. */
  terms: string[];
}

/** The body of POST /console/api/validate: that of POST /create, as far as it is filled in. */
export interface ValidateBody {
  credentialSubject: unknown;
  owner: string;
  holder: string;
  remarks: string;
}
