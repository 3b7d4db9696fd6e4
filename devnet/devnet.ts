import type { JsonRpcProvider } from 'ethers';
import type { Account, Operated, OperationName } from './operations';
import type { FateOfTransactions, Reorganisation } from './reorganise';
import type { Issued } from './service-requests';
import type { Webhooks } from './webhook-inbox';

/** Options of `startDevnet`. */
export interface DevnetOptions {
  /** URL of your own receiver. `webhooks` and `receiver` of the devnet then do not exist. */
  receiver?: string;
  /** Port of the service; the node has the next, the receiver the one after. By default, free ports. */
  port?: number;
  /** Seconds between blocks. 0, the default on a local network: each transaction is mined at once. */
  blockTime?: number;
  /**
   * The network that the node stands in for, for example `amoy`: its chain id, its contracts at their
   * published addresses, and its confirmations. By default `localhost`.
   */
  network?: string;
  /** Blocks on top of an event's block before it is delivered. By default, those of the network. */
  confirmations?: number;
  /** Whether the receiver is told of events that a reorganisation took back. By default not. */
  retractions?: boolean;
  /** Whether chain, database and keys stay in the folder, and the next devnet there goes on with them. */
  keep?: boolean;
  /**
   * Folder for keys, database, received events and logs. By default `.devnet/kept` with `keep`, and otherwise
   * a temporary one, which `stop` removes.
   */
  folder?: string;
}

/** How an operation is sent. */
export interface Sending {
  /** The account that sends: its number at the node, or its address. By default the one that may. */
  as?: Account;
  /** Text, or hex (`0x…`): at most 120 bytes. */
  remark?: string;
}

/** How an operation is sent that gives a role to `to`. */
export interface Giving extends Sending {
  to: Account;
}

type Reject = (tokenId: string | bigint, sending?: Sending) => Promise<Operated>;
type Give = (tokenId: string | bigint, giving: Giving) => Promise<Operated>;

/**
 * The operations of the contracts, by their names there. Each resolves when it is mined. A token id is 64
 * hexadecimal digits, `0x` and hexadecimal digits, decimal digits or a bigint.
 *
 * Each rejects with an error with the code OPERATION_REFUSED, whose `reason` is the name of the contract's
 * error, for example `CallerNotHolder`, if the contract refuses; then nothing was sent.
 */
export interface Operations extends Record<OperationName, (...args: never[]) => Promise<Operated>> {
  nominate: Give;
  transferBeneficiary: Give;
  transferHolder: Give;
  /** `to` becomes the beneficiary, and `holder`, by default `to`, the holder. */
  transferOwners: (tokenId: string | bigint, giving: Giving & { holder?: Account }) => Promise<Operated>;
  rejectTransferBeneficiary: Reject;
  rejectTransferHolder: Reject;
  rejectTransferOwners: Reject;
  returnToIssuer: Reject;
  restore: Reject;
  burn: Reject;
  pause: (sending?: Sending) => Promise<Operated>;
  unpause: (sending?: Sending) => Promise<Operated>;
}

/** Everything that a test, a shell or a receiver needs to use a devnet. */
export interface DevnetFacts {
  serviceUrl: string;
  nodeUrl: string;
  chainId: number;
  registryAddress: string;
  /** Where events are delivered. */
  receiverUrl: string;
  /** Key of the API of subscriptions and registries. */
  adminApiKey: string;
  /** The node's accounts: it signs for them. Account 0 mints and is the registry's admin. */
  accounts: readonly string[];
  folder: string;
  /** PEM of the key that verifies webhooks. */
  publicKeyFile: string;
  didDocumentFile: string;
  /** The settings of the service: `ENV_FILE=… npx tdoc …` uses them. */
  envFile: string;
}

/** Orders of a test to the receiver. */
export interface ReceiverControl {
  /**
   * From now on every delivery is answered with this status, 300 to 599 (by default 503), and not stored.
   * After 410 the service sends nothing more, unless the subscription is resumed.
   */
  refuse(status?: number): void;
  /** Ends `refuse`. */
  accept(): void;
}

/** A running chain, service and receiver. */
export interface Devnet extends DevnetFacts, Operations {
  /** A client of the node. */
  client: JsonRpcProvider;
  /** Whether it goes on where an earlier one ended. */
  isContinued: boolean;
  /** The webhooks that the devnet's own receiver verified. */
  readonly webhooks: Webhooks;
  /** The devnet's own receiver. */
  readonly receiver: ReceiverControl;
  /**
   * Issues a Bill of Lading, by default a sample. `owner`, the first beneficiary, is account 1 by default;
   * `holder` is `owner` by default.
   */
  issue(
    subject?: Record<string, unknown>,
    parties?: { owner?: Account; holder?: Account; remarks?: string },
  ): Promise<Issued>;
  /**
   * Takes back the last blocks and puts a branch in their place that is one block longer. By default the
   * branch has the same transactions; with `dropped` it has none of them.
   */
  reorganise(depth: number, options?: { transactions?: FateOfTransactions }): Promise<Reorganisation>;
  /**
   * Makes a link to the console that logs in once, within 15 minutes. `page`: what it shows, for example
   * `token?id=…`; the overview by default.
   */
  consoleLink(page?: string): Promise<string>;
  /** Ends the service and starts it again. */
  restartService(): Promise<void>;
  /** Rejects if the node or the service ends by itself. */
  failure: Promise<never>;
  /** Ends everything. */
  stop(this: void): Promise<void>;
}
