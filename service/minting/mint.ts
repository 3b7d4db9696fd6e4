import { Transaction } from 'ethers';
import type { ChainError } from '../base/errors';
import type { Refusal } from '../chain/node-errors';
import type { TransactionFees } from '../chain/transactions';
import type { Issuance, MinedMint, MintTransaction } from '../journal/issuance';
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
 * | from      | what happens                                              | to        |
 * | --------- | --------------------------------------------------------- | --------- |
 * | preparing | it was just added, or could not be prepared now           | waiting   |
 * | preparing | it was signed, and its transaction is in the journal      | ready     |
 * | preparing | it cannot be made now: no funds, no registry, a pause     | deferred  |
 * | preparing | it turns out to be on the chain                           | mined     |
 * | preparing | it cannot be made at all                                  | settled   |
 * | waiting   | its turn has come                                         | preparing |
 * | deferred  | its time has come                                         | waiting   |
 * | deferred  | nothing that was sent can make it any more                | settled   |
 * | deferred  | nodes refused it, and nobody has taken its nonce          | ready     |
 * | deferred  | it turns out to be on the chain                           | mined     |
 * | ready     | its bytes are given to a node                             | sending   |
 * | ready     | its nonce is another's, or a lower one is free            | waiting   |
 * | ready     | nodes refuse it: its nonce goes to another mint           | deferred  |
 * | ready     | it was mined while it waited to be sent again             | mined     |
 * | sending   | a node has it, or may have it                             | pending   |
 * | sending   | a node refused it, which may pass                         | ready     |
 * | sending   | its nonce is used at depth, and there is no token         | waiting   |
 * | sending   | it was mined before the node answered                     | mined     |
 * | pending   | nodes lost it, or never acknowledged it                   | ready     |
 * | pending   | its nonce is used at depth, or a lower one is free        | waiting   |
 * | pending   | it was mined                                              | mined     |
 * | pending   | it reverted, which is certain at depth                    | settled   |
 * | pending   | it reverted, and another transaction may still make it    | deferred  |
 * | mined     | its block is final                                       | settled   |
 * | mined     | its block is gone: it is placed anew                      | preparing |
 *
 * After a deeper reorganisation, a settled mint is added anew.
 */
export type MintState =
  | { name: 'preparing' | 'waiting' }
  | { name: 'deferred'; until: number }
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

/** A mint that was just added. `recovered`: one of an earlier run, with its block if it is mined. */
export function newMint(
  issuance: Issuance,
  recovered?: { transactions: readonly SignedMint[]; mined: MinedMint | undefined },
): Mint {
  const { transactions = [], mined } = recovered ?? {};
  return {
    state: mined === undefined ? { name: 'preparing' } : { name: 'mined', mined },
    issuance,
    isRecovered: recovered !== undefined,
    transactions,
    deferrals: 0,
    estimates: 0,
    refusal: undefined,
    isUnfunded: false,
  };
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

/** What the journal has of a mint. */
export type JournalChange =
  | { state: 'submitted' }
  | { state: 'mined' | 'final'; mined: MinedMint }
  | { state: 'failed'; error: ChainError };

/** The state of a mint that holds a nonce, or once did, in the journal. */
export function journalChangeOf({ state }: Mint): JournalChange {
  if ('error' in state) return { state: 'failed', error: state.error };
  if (!('mined' in state)) return { state: 'submitted' };
  return { state: state.name === 'settled' ? 'final' : 'mined', mined: state.mined };
}

/**
 * Reads a transaction of the journal. The journal does not record whether it was sent, so it counts as sent.
 */
export function readSignedMint({ tokenId, hash, nonce, raw }: MintTransaction): SignedMint {
  const { from, gasLimit, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = Transaction.from(raw);
  const fees: TransactionFees =
    maxFeePerGas !== null && maxPriorityFeePerGas !== null
      ? { type: 2, maxFeePerGas, maxPriorityFeePerGas }
      : { type: 0, gasPrice: gasPrice ?? 0n };
  return { tokenId, hash, nonce, raw, from: from ?? '', gasLimit, fees, reach: 'possible' };
}

/** What the queue may see of a mint. */
export type Observation =
  /** `turn`: it is taken from those that wait. `no nonce`: it has none now, and waits for one. */
  | { saw: 'turn' | 'no nonce' }
  | { saw: 'obstacle'; until: number }
  | { saw: 'not estimated' | 'no funds' | 'out of gas' }
  /** Its refusals count no longer: it is signed anew. */
  | { saw: 'nothing in its way' }
  | { saw: 'signed'; transaction: SignedMint }
  /** Its transactions of this wallet with this nonce are in the journal, and no other mint holds it. */
  | { saw: 'sendable'; from: string; nonce: number; at: number }
  /** `sent`: its newest version is given to a node. `no token`: its nonce is used, and no token is seen. */
  | { saw: 'sent' | 'no token'; at: number }
  /** A node has this version. */
  | { saw: 'taken'; hash: string }
  /** A node refused this version, or did not answer. `isAttempt`: the refusal does not pass by itself. */
  | { saw: 'rejected'; hash: string; reach: SignedMint['reach']; isAttempt: boolean }
  /** Its newest version is to be watched: a node may have it. */
  | { saw: 'open' }
  /** Its newest version must be sent again. */
  | { saw: 'unsent' }
  /** The refusal of its newest version, after `rejected`. */
  | ({ saw: 'refused' } & SeenRefusal & Hopeless)
  /** No fees would help. */
  | ({ saw: 'no way' } & Hopeless)
  /** No node has any of its transactions: the chain is another one. */
  | { saw: 'another chain' }
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

const OF_MINED: readonly Observation['saw'][] = [
  'token',
  'block there',
  'no block',
  'block gone',
  'final block',
];

/**
 * The next state of a mint. An observation may come late: one part of the queue may find the token while
 * another waits for an answer about the same mint. A mint that is settled does not change, and one that is
 * mined only by what is seen of its token and its block.
 */
export function step(mint: Mint, observation: Observation): Step {
  const { state } = mint;
  if (state.name === 'settled') return { mint };
  if (observation.saw === 'no issuance') return to(mint, { name: 'settled', error: observation.error });
  if (state.name === 'mined')
    return OF_MINED.includes(observation.saw) ? stepMined(mint, state, observation) : { mint };
  switch (observation.saw) {
    case 'turn':
      return to(mint, { name: 'preparing' });
    case 'no nonce':
      return to(mint, { name: 'waiting' });
    case 'obstacle':
      return to(mint, { name: 'deferred', until: observation.until });
    case 'not estimated':
      return to(mint, state, { deferrals: mint.deferrals + 1 });
    case 'no funds':
      return to(mint, state, { isUnfunded: true });
    case 'out of gas':
      return to(mint, { name: 'waiting' }, { estimates: mint.estimates + 1 });
    case 'nothing in its way':
      return to(mint, state, { refusal: undefined, isUnfunded: false });
    case 'signed':
      return to(mint, state, { transactions: [...mint.transactions, observation.transaction] });
    case 'sendable': {
      const { from, nonce, at: sentAt } = observation;
      return to(mint, { name: 'ready', from, nonce, sentAt, attempts: 0, replacements: 0 });
    }
    case 'another chain': {
      const transactions = mint.transactions.map((one) => ({ ...one, reach: 'none' as const }));
      return to(mint, 'nonce' in state ? { name: 'waiting' } : state, { transactions });
    }
    case 'token':
      return made(mint, observation.mined, observation.isFinal);
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

function made(mint: Mint, mined: MinedMint, isFinal: boolean): Step {
  const issuance = { ...mint.issuance, txHash: mined.txHash };
  const state = isFinal ? { name: 'settled' as const, mined } : { name: 'mined' as const, mined };
  return { ...to(mint, state, { issuance }), command: 'record' };
}

function stepMined(mint: Mint, state: MintState & { name: 'mined' }, observation: Observation): Step {
  const { mined } = state;
  switch (observation.saw) {
    case 'token':
      if (observation.mined.block.hash === mined.block.hash) return { mint };
      return made(mint, observation.mined, observation.isFinal);
    case 'block there':
      return to(mint, { name: 'mined', mined });
    case 'no block':
      return to(mint, { goneSince: observation.at, ...state });
    case 'block gone':
      return { ...to(mint, { name: 'preparing' }), command: 'record' };
    case 'final block':
      return to(mint, { name: 'settled', mined });
    default:
      return { mint };
  }
}

function stepHeld(mint: Mint, held: Held, observation: Observation): Step {
  const newest = versionsOf(mint).at(-1)?.hash ?? '';
  switch (observation.saw) {
    case 'sent': {
      const sent = { ...held, sentAt: observation.at };
      const replacements = held.replacements + 1;
      const isReplacement = held.name === 'pending';
      const state = isReplacement ? { ...sent, replacements } : { ...sent, name: 'sending' as const };
      return to(mint, state, reaching(mint, newest, 'possible'));
    }
    case 'taken': {
      const isSent = held.name === 'sending' && newest === observation.hash;
      const taken = { ...held, name: 'pending', attempts: 0, lastRefusal: undefined } as const;
      return to(mint, isSent ? taken : held, { refusal: undefined, isUnfunded: false });
    }
    case 'rejected': {
      const attempts = held.attempts + (observation.isAttempt ? 1 : 0);
      return to(mint, { ...held, attempts }, reaching(mint, observation.hash, observation.reach));
    }
    case 'open':
      return to(mint, { ...held, name: 'pending' });
    case 'unsent':
      return to(mint, { ...held, name: 'ready' });
    case 'no token':
      return to(mint, { missingSince: observation.at, ...held });
    case 'refused':
      return afterRefusal(mint, held, observation);
    case 'no way': {
      const { until, error: refusal } = observation;
      return { ...to(mint, { name: 'deferred', until }, { refusal }), command: 'give up' };
    }
    default:
      return { mint };
  }
}

function afterRefusal(
  mint: Mint,
  held: Held,
  { until, error, ...seen }: Observation & { saw: 'refused' },
): Step {
  const { refusal } = seen;
  const { nonce, attempts, lastRefusal } = held;
  const { estimates } = mint;
  const alike = lastRefusal?.refusal === refusal ? lastRefusal.times + 1 : 1;
  const versions = versionsOf(mint);
  const mayBeTaken = versions.some(({ reach }) => reach === 'possible');
  const remedy = decideRejection({ ...seen, nonce, attempts, alike, estimates, mayBeTaken });
  const stay = (name: 'ready' | 'pending'): Step =>
    to(mint, { ...held, name, lastRefusal: { refusal, times: alike } });
  const steps: Record<Remedy, () => Step> = {
    'send again': () => stay('ready'),
    // It may be mined during the pause, so it is watched as pending.
    'send again later': () => stay(versions.at(-1)?.reach === 'possible' ? 'pending' : 'ready'),
    'sign anew': () => to(mint, { name: 'waiting' }),
    watch: () => stay('pending'),
    'send those before again': () => stay('ready'),
    'fill hole': () => stay('ready'),
    'reset nonces': () => stay('ready'),
    'offer more': () => stay('ready'),
    'estimate again': () => to(mint, { name: 'waiting' }, { estimates: estimates + 1 }),
    'wait for funds': () => to(mint, { name: 'deferred', until }, { isUnfunded: true }),
    'give up': () => to(mint, { name: 'deferred', until }, { refusal: error }),
  };
  return { ...steps[remedy](), command: remedy };
}
