import { Transaction } from 'ethers';
import type { ChainError } from '../base/errors';
import type { Lifecycle } from '../base/lifecycle';
import type { Logger } from '../base/logger';
import type { Time } from '../base/time';
import type { Chain } from '../chain/chain';
import type { Confirmations, Network } from '../chain/networks';
import type { Refusal } from '../chain/node-errors';
import type { TransactionFees } from '../chain/transactions';
import type { Issuance, IssuanceState, MinedMint, MintTransaction, Unfinished } from '../journal/issuance';
import type { MintProgress } from '../journal/mint-progress';
import type { TransactionSigner } from '../keys/transaction-signer';
import { decideRejection, type Remedy, type SeenRefusal } from './decide-rejection';

// A mint is one attempt to make one token. A signed mint is a transaction that makes it. A mint holds a nonce
// while its newest transaction is sent or waits to be mined; its versions are its transactions with that
// nonce, each with higher fees than the one before. Times are by `elapsed`.

/** A transaction that mints a token, with its gas limit and fees. */
export interface SignedMint extends MintTransaction {
  /** Checksummed address of the wallet that signed it. */
  from: string;
  gasLimit: bigint;
  fees: TransactionFees;
  /**
   * The nodes that have it, judged by their answers. `refused`: it was given to a node, and no node is known
   * to have it; it can still be mined until its nonce is used. `none`: it was never given to a node.
   */
  reach: 'none' | 'refused' | 'possible';
}

/** The states of a mint that holds a nonce. */
export const HELD_STATES = ['ready', 'sending', 'pending'] as const;
export type HeldState = (typeof HELD_STATES)[number];

/** A mint's hold on a nonce, which it shares with no other mint. */
export interface Held {
  name: HeldState;
  nonce: number;
  /** Address of the wallet whose nonce it is. */
  from: string;
  /** When the newest version was sent. Before it is sent: when it was signed. */
  sentAt: number;
  /** Consecutive sends that no node acknowledged. */
  attempts: number;
  /** The class of its last refusal, and how many in a row were of it. */
  lastRefusal?: { refusal: Refusal; times: number } | undefined;
  /** When its nonce was first seen as used without a mined token. */
  missingSince?: number;
  /** How often it was replaced because it was not mined in time. */
  replacements: number;
}

/**
 * The state of a mint:
 *
 * | from    | what happens                                                | to      |
 * | ------- | ----------------------------------------------------------- | ------- |
 * | waiting | it was signed, and its transaction is in the journal        | ready   |
 * | waiting | it cannot be made now: no funds, no registry, a pause       | waiting |
 * | waiting | it turns out to be on the chain                             | mined   |
 * | waiting | nothing that was sent can make it any more, or nothing was  | settled |
 * | ready   | its bytes are given to a node                               | sending |
 * | ready   | its nonce is another's, or a lower one is free              | waiting |
 * | ready   | nodes refuse it, or too little gas: its nonce is taken back | waiting |
 * | ready   | it was mined while it waited to be sent again               | mined   |
 * | sending | a node has it, or may have it                               | pending |
 * | sending | a node refused it, which may pass                           | ready   |
 * | sending | its nonce is used at depth, and there is no token           | waiting |
 * | sending | it was mined before the node answered                       | mined   |
 * | pending | nodes lost it, or never acknowledged it                     | ready   |
 * | pending | its nonce is used at depth, or a lower one is free          | waiting |
 * | pending | it reverted, and another transaction may still make it      | waiting |
 * | pending | it was mined                                                | mined   |
 * | pending | it reverted, which is certain at depth                      | settled |
 * | mined   | its block is final                                          | settled |
 * | mined   | its block is gone: it is placed anew                        | waiting |
 *
 * After a deeper reorganisation, a settled mint is added anew.
 */
export type MintState =
  /** It needs a nonce. `until`: it is not tried before; 0: at once. */
  | { name: 'waiting'; until: number }
  | Held
  /** `goneSince`: when its block was first missing from the chain. */
  | { name: 'mined'; mined: MinedMint; goneSince?: number }
  | { name: 'settled'; mined: MinedMint }
  | { name: 'settled'; error: ChainError };

/** One token, from when it is added to the queue until it is final or failed. */
export interface Mint {
  readonly state: MintState;
  /** With `txHash`, its token existed once: its document was handed out, and the mint never fails. */
  readonly issuance: Issuance;
  /**
   * Whether an earlier run of the service began it. Nobody waits for it, so it does not fail for lack of
   * funds.
   */
  readonly isRecovered: boolean;
  /** The oldest first. */
  readonly transactions: readonly SignedMint[];
  /** How often its gas could not be estimated. */
  readonly deferrals: number;
  /** How often its gas was estimated again. */
  readonly estimates: number;
  /**
   * The nodes' repeated refusal. It becomes the mint's failure once no sent transaction can make the token.
   */
  readonly refusal: ChainError | undefined;
  /** Whether the wallet could not pay for it when it was last sent or estimated. */
  readonly isUnfunded: boolean;
}

/** It may be tried at once. */
const NOW = { name: 'waiting', until: 0 } as const;
const NEW = { deferrals: 0, estimates: 0, refusal: undefined, isUnfunded: false };

/** A mint that was just added. */
export function newMint(issuance: Issuance): Mint {
  return { ...NEW, state: NOW, issuance, isRecovered: false, transactions: [] };
}

/** A mint of an earlier run. */
export function recoveredMint({ issuance, transactions, mined }: Unfinished): Mint {
  const state: MintState = mined ? { name: 'mined', mined } : NOW;
  return { ...NEW, state, issuance, isRecovered: true, transactions: transactions.map(readSignedMint) };
}

/** A mint's hold on a nonce, if it has one. */
export function heldBy({ state }: Mint): Held | undefined {
  return 'nonce' in state ? state : undefined;
}

/** The nonce that a mint holds; -1 if it holds none. */
export function nonceOf(mint: Mint): number {
  return heldBy(mint)?.nonce ?? -1;
}

/** The transactions with the nonce that a mint holds, the oldest first: any of them may be mined. */
export function versionsOf(mint: Mint): SignedMint[] {
  const held = heldBy(mint);
  return mint.transactions.filter(({ nonce, from }) => nonce === held?.nonce && from === held.from);
}

/** The transaction that a wallet signed last for a mint. */
export function lastSignedBy(wallet: string, { transactions }: Mint): SignedMint | undefined {
  return transactions.findLast(({ from }) => from === wallet);
}

/** The block that a mint is mined in. */
export function minedIn({ state }: Mint): MinedMint | undefined {
  return 'mined' in state ? state.mined : undefined;
}

/** The state that the journal gets for a mint that a node may have had. */
export function issuanceStateOf({ state }: Mint): IssuanceState {
  if (state.name !== 'settled') return state.name === 'mined' ? 'mined' : 'submitted';
  return 'error' in state ? 'failed' : 'final';
}

/**
 * Reads a transaction of the journal. The journal does not record whether it was sent, so it counts as sent.
 */
function readSignedMint(transaction: MintTransaction): SignedMint {
  const { from, gasLimit, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = Transaction.from(transaction.raw);
  const fees: TransactionFees =
    maxFeePerGas !== null && maxPriorityFeePerGas !== null
      ? { type: 2, maxFeePerGas, maxPriorityFeePerGas }
      : { type: 0, gasPrice: gasPrice ?? 0n };
  return { ...transaction, from: from ?? '', gasLimit, fees, reach: 'possible' };
}

/** What the queue may see of a mint. */
export type Observation =
  /** `no nonce`: it has none, or not this one. `out of gas`: its gas limit was too low. */
  | { saw: 'no nonce' | 'out of gas' }
  | { saw: 'obstacle'; until: number }
  | { saw: 'not estimated' | 'no funds' }
  /** Its refusals count no longer: it is signed anew. */
  | { saw: 'nothing in its way' }
  | { saw: 'signed'; transaction: SignedMint }
  /** Its transactions of this wallet with this nonce are in the journal, and no other mint holds it. */
  | { saw: 'sendable'; from: string; nonce: number; at: number }
  /**
   * `sent`: its newest version is given to a node. `replaced`: so it is, beside the one that is pending.
   * `no token`: its nonce is used, and no token is seen.
   */
  | { saw: 'sent' | 'replaced' | 'no token'; at: number }
  /** A node has this version. */
  | { saw: 'taken'; hash: string }
  /** Nodes do not have this version. */
  | { saw: 'denied'; hash: string }
  /** A node refused its newest version, which has this reach now. */
  | ({ saw: 'refused'; reach: SignedMint['reach'] } & SeenRefusal & Hopeless)
  /** No fees would help. */
  | ({ saw: 'no way' } & Hopeless)
  /** `open`: a node did not answer. `unsent`: it must be sent again. `another chain`: no node has it. */
  | { saw: 'open' | 'unsent' | 'another chain' }
  | { saw: 'token'; mined: MinedMint; isFinal: boolean }
  | { saw: 'block there' | 'block gone' | 'final block' }
  | { saw: 'no block'; at: number }
  /** `no issuance`: the journal does not have it, or has it as failed. */
  | { saw: 'failure' | 'no issuance'; error: ChainError };

/** A refused mint's failure, if it fails, and when it is tried again otherwise. */
interface Hopeless {
  error: ChainError;
  until: number;
}

/** A mint after an observation, and what the queue must do. `record`: write its state to the journal. */
export interface Step {
  mint: Mint;
  command?: Remedy | 'record';
}

/**
 * The next state of a mint. An observation may come late: one part of the queue may find the token while
 * another waits for an answer about the same mint. A mint that is settled does not change, and one that is
 * mined only by what is seen of its token and its block.
 */
export function step(mint: Mint, observation: Observation): Step {
  const { state, transactions } = mint;
  if (state.name === 'settled') return { mint };
  if (observation.saw === 'no issuance') return to(mint, { name: 'settled', error: observation.error });
  if (state.name === 'mined') return stepMined(mint, state, observation);
  switch (observation.saw) {
    case 'no nonce':
      return to(mint, NOW);
    case 'obstacle':
      return to(mint, { name: 'waiting', until: observation.until });
    case 'not estimated':
      return to(mint, state, { deferrals: mint.deferrals + 1 });
    case 'no funds':
      return to(mint, state, { isUnfunded: true });
    case 'out of gas':
      return to(mint, NOW, { estimates: mint.estimates + 1 });
    case 'nothing in its way':
      return to(mint, state, { refusal: undefined, isUnfunded: false });
    case 'signed':
      return to(mint, state, { transactions: [...transactions, observation.transaction] });
    case 'sendable': {
      const { from, nonce, at: sentAt } = observation;
      return to(mint, { name: 'ready', from, nonce, sentAt, attempts: 0, replacements: 0 });
    }
    case 'another chain':
      return to(mint, 'nonce' in state ? NOW : state, {
        transactions: transactions.map((one) => ({ ...one, reach: 'none' })),
      });
    case 'token':
      return made(mint, observation);
    case 'failure':
      return { ...to(mint, { name: 'settled', error: observation.error }), command: 'record' };
    default:
      return 'nonce' in state ? stepHeld(mint, state, observation) : { mint };
  }
}

function to(mint: Mint, state: MintState, changes: Partial<Mint> = {}): Step {
  return { mint: { ...mint, ...changes, state } };
}

function reaching({ transactions }: Mint, hash: string, reach: SignedMint['reach']): Partial<Mint> {
  return { transactions: transactions.map((one) => (one.hash === hash ? { ...one, reach } : one)) };
}

function made(mint: Mint, { mined, isFinal }: Observation & { saw: 'token' }): Step {
  const issuance = { ...mint.issuance, txHash: mined.txHash };
  const state: MintState = isFinal ? { name: 'settled', mined } : { name: 'mined', mined };
  return { ...to(mint, state, { issuance }), command: 'record' };
}

function stepMined(mint: Mint, state: MintState & { name: 'mined' }, observation: Observation): Step {
  const { mined } = state;
  switch (observation.saw) {
    case 'token':
      return observation.mined.block.hash === mined.block.hash ? { mint } : made(mint, observation);
    case 'block there':
      return to(mint, { name: 'mined', mined });
    case 'no block':
      return to(mint, { goneSince: observation.at, ...state });
    case 'block gone':
      return { ...to(mint, NOW), command: 'record' };
    case 'final block':
      return to(mint, { name: 'settled', mined });
    default:
      return { mint };
  }
}

function stepHeld(mint: Mint, held: Held, observation: Observation): Step {
  const newest = versionsOf(mint).at(-1)?.hash ?? '';
  switch (observation.saw) {
    case 'sent':
    case 'replaced': {
      const { name, replacements } = held;
      const given: Partial<Held> =
        observation.saw === 'sent' ? { name: 'sending' } : { name, replacements: replacements + 1 };
      return to(mint, { ...held, ...given, sentAt: observation.at }, reaching(mint, newest, 'possible'));
    }
    case 'taken': {
      const isSent =
        held.name === 'sending' && versionsOf(mint).some(({ hash }) => hash === observation.hash);
      const taken = { ...held, name: 'pending', attempts: 0, lastRefusal: undefined } as const;
      return to(mint, isSent ? taken : held, { refusal: undefined, isUnfunded: false });
    }
    case 'denied':
      return to(mint, held, reaching(mint, observation.hash, 'refused'));
    case 'open':
      return to(mint, { ...held, name: 'pending', attempts: held.attempts + 1 });
    case 'unsent':
      return to(mint, { ...held, name: 'ready' });
    case 'no token':
      return to(mint, { missingSince: observation.at, ...held });
    case 'refused':
      return afterRefusal({ ...mint, ...reaching(mint, newest, observation.reach) }, held, observation);
    case 'no way': {
      const { until, error: refusal } = observation;
      return { ...to(mint, { name: 'waiting', until }, { refusal }), command: 'give up' };
    }
    default:
      return { mint };
  }
}

function afterRefusal(
  mint: Mint,
  held: Held,
  { until, error, reach, ...seen }: Observation & { saw: 'refused' },
): Step {
  const { refusal, attempts } = seen;
  const { nonce, lastRefusal } = held;
  const { estimates } = mint;
  const alike = lastRefusal?.refusal === refusal ? lastRefusal.times + 1 : 1;
  const mayBeTaken = versionsOf(mint).some((version) => version.reach === 'possible');
  const remedy = decideRejection({ ...seen, nonce, alike, estimates, mayBeTaken });
  const stay = (name: 'ready' | 'pending'): Step =>
    to(mint, { ...held, name, attempts, lastRefusal: { refusal, times: alike } });
  const steps: Record<Remedy, () => Step> = {
    'send again': () => stay('ready'),
    // It may be mined during the pause, so it is watched as pending.
    'send again later': () => stay(reach === 'possible' ? 'pending' : 'ready'),
    'sign anew': () => to(mint, NOW),
    watch: () => stay('pending'),
    'send those before again': () => stay('ready'),
    'fill hole': () => stay('ready'),
    'reset nonces': () => stay('ready'),
    'offer more': () => stay('ready'),
    'estimate again': () => to(mint, NOW, { estimates: estimates + 1 }),
    'wait for funds': () => to(mint, { name: 'waiting', until }, { isUnfunded: true }),
    'give up': () => to(mint, { name: 'waiting', until }, { refusal: error }),
  };
  return { ...steps[remedy](), command: remedy };
}

/** Everything that a queue needs. */
export interface MintQueueOptions {
  client: Chain;
  network: Network;
  /** When a mint's block is final. */
  confirmations: Confirmations;
  wallet: TransactionSigner;
  registryAddress: string;
  journal: MintProgress;
  /** Rejects when the node cannot be asked or belongs to another chain. */
  checkChain: () => Promise<void>;
  /** Fees of the next transaction. */
  readFees: () => Promise<TransactionFees>;
  logger: Logger;
  /** Masks secrets in the failure messages that the journal keeps. */
  mask: (text: string) => string;
  lifecycle: Lifecycle;
  time: Time;
}
