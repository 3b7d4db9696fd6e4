import type {
  Failure,
  Issuance,
  MinedMint,
  MintTransaction,
  Unfinished,
} from '../../../service/journal/issuance';
import { systemTime, type Time } from '../../../service/base/time';
import type { MintProgress } from '../../../service/journal/mint-progress';

/**
 * A journal of mints in memory. Its content survives a queue, as a database survives the service's process.
 */
export interface MemoryJournal extends MintProgress {
  /** Adds an issuance, as `Journal.add` does. */
  add(issuance: Issuance): Issuance;
  issuances: Map<string, Issuance>;
  transactions: MintTransaction[];
  /** The changes that came in the wrong order. */
  violations: string[];
  /** Whether signed bytes may be sent: they must have been stored before. */
  mayBeSent(raw: string): boolean;
  /** The number of calls of each method. */
  calls: Record<Change, number>;
  /** Runs before each change. If it throws, the change fails. */
  onChange: (change: Change) => void | Promise<void>;
}

type Change = 'keepTransactions' | 'submitted' | 'mined' | 'final' | 'unmined' | 'failed';

/**
 * Longer than a call of the node: a transaction that is sent without waiting for the journal is detected.
 */
const CHANGE_MS = 32;

/** Creates an empty journal. Each change takes a moment, as in a database. */
export function createMemoryJournal(time: Time = systemTime): MemoryJournal {
  const issuances = new Map<string, Issuance>();
  const mints = new Map<string, MinedMint>();
  const transactions: MintTransaction[] = [];
  const violations: string[] = [];
  const calls = { keepTransactions: 0, submitted: 0, mined: 0, final: 0, unmined: 0, failed: 0 };
  let chain: string | undefined;

  async function change(name: Change): Promise<void> {
    calls[name]++;
    await journal.onChange(name);
    await new Promise<void>((resolve) => void time.later(CHANGE_MS, resolve));
  }

  /** The issuance of a change, which must have one of these states. */
  function issuanceIn(tokenId: string, to: string, states: readonly Issuance['state'][]): Issuance {
    const issuance = issuances.get(tokenId);
    if (issuance === undefined) throw new Error(`${to}: there is no issuance ${tokenId}`);
    if (!states.includes(issuance.state)) violations.push(`${issuance.state} → ${to}: ${tokenId}`);
    return issuance;
  }

  const rowsIn = (...states: Issuance['state'][]): Unfinished[] =>
    [...issuances.values()]
      .filter(({ state }) => states.includes(state))
      .map((issuance) => ({
        issuance: { ...issuance },
        transactions: transactions.filter(({ tokenId }) => tokenId === issuance.tokenId),
        mined: mints.get(issuance.tokenId),
      }));

  const journal: MemoryJournal = {
    issuances,
    transactions,
    violations,
    calls,
    onChange: () => undefined,
    add(issuance) {
      issuances.set(issuance.tokenId, { ...issuance });
      return issuance;
    },
    mayBeSent(raw) {
      if (transactions.some((kept) => kept.raw === raw)) return true;
      violations.push(`sent and not kept: ${raw.slice(0, 40)}`);
      return false;
    },
    unfinished: async () => rowsIn('signed', 'submitted', 'mined'),
    async keepTransactions(signed) {
      await change('keepTransactions');
      for (const { tokenId } of signed) issuanceIn(tokenId, 'signed again', ['signed', 'submitted']);
      transactions.push(...signed);
    },
    async submitted(tokenIds) {
      await change('submitted');
      for (const tokenId of tokenIds)
        issuanceIn(tokenId, 'submitted', ['signed', 'submitted']).state = 'submitted';
    },
    async mined(tokenId, mined, isFinal) {
      await change('mined');
      const issuance = issuanceIn(tokenId, 'mined', ['signed', 'submitted', 'mined', 'final']);
      Object.assign(issuance, { state: isFinal ? 'final' : 'mined', txHash: mined.txHash });
      mints.set(tokenId, mined);
    },
    async final(tokenIds) {
      await change('final');
      for (const tokenId of tokenIds) issuanceIn(tokenId, 'final', ['mined', 'final']).state = 'final';
    },
    async unmined(tokenId) {
      await change('unmined');
      const issuance = issuanceIn(tokenId, 'unmined', ['mined', 'final']);
      issuance.state = 'submitted';
      mints.delete(tokenId);
    },
    async failed(tokenId: string, failure: Failure) {
      await change('failed');
      Object.assign(issuanceIn(tokenId, 'failed', ['signed', 'submitted']), { state: 'failed', failure });
    },
    async enterChain(genesisHash) {
      const isSame = chain === undefined || chain === genesisHash;
      if (!isSame) mints.clear();
      chain = genesisHash;
      return isSame;
    },
    highestFinal: async (below = Infinity) =>
      rowsIn('final')
        .flatMap(({ mined }) => mined?.block ?? [])
        .filter(({ number }) => number < below)
        .sort((left, right) => right.number - left.number)[0],
    finalSince: async (blockNumber) =>
      rowsIn('final').filter(({ mined }) => mined !== undefined && mined.block.number >= blockNumber),
  };
  return journal;
}
