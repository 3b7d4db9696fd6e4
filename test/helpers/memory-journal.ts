import type { Failure, Issuance, MintTransaction } from '../../service/journal/issuance';
import type { LaneJournal } from '../../service/minting/lane-state';

/** A journal of mints in memory: what is in it survives a lane, as a database survives the service's process. */
export interface MemoryJournal extends LaneJournal {
  /** Puts an issuance into it, as `Journal.add` does. */
  add(issuance: Issuance): Issuance;
  issuances: Map<string, Issuance>;
  transactions: MintTransaction[];
  /** What happened to it in the wrong order. */
  violations: string[];
  /** Says whether signed bytes may be sent: only what was kept before. */
  mayBeSent(raw: string): boolean;
  /** Calls of each method so far. */
  calls: Record<'keepTransactions' | 'submitted' | 'mined' | 'failed', number>;
  /** Runs before each change; one that throws makes it fail. */
  onChange: (change: keyof MemoryJournal['calls']) => void | Promise<void>;
}

/** Longer than a call of the node: what does not wait for the journal is seen to be sent before it is kept. */
const CHANGE_MS = 8;

/** Creates an empty journal. Each change takes a moment, as in a database. */
export function createMemoryJournal(): MemoryJournal {
  const issuances = new Map<string, Issuance>();
  const transactions: MintTransaction[] = [];
  const violations: string[] = [];
  const calls = { keepTransactions: 0, submitted: 0, mined: 0, failed: 0 };

  async function change(name: keyof typeof calls): Promise<void> {
    calls[name]++;
    await journal.onChange(name);
    await new Promise((resolve) => setTimeout(resolve, CHANGE_MS));
  }

  function open(tokenId: string, to: string): Issuance {
    const issuance = issuances.get(tokenId);
    if (issuance === undefined) throw new Error(`${to}: there is no issuance ${tokenId}`);
    if (issuance.state === 'mined' || issuance.state === 'failed')
      violations.push(`${issuance.state} → ${to}: ${tokenId}`);
    return issuance;
  }

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
    async unfinished() {
      return [...issuances.values()]
        .filter(({ state }) => state === 'signed' || state === 'submitted')
        .map((issuance) => ({
          issuance: { ...issuance },
          transactions: transactions.filter(({ tokenId }) => tokenId === issuance.tokenId),
        }));
    },
    async keepTransactions(signed) {
      await change('keepTransactions');
      for (const { tokenId } of signed) open(tokenId, 'signed again');
      transactions.push(...signed);
    },
    async submitted(tokenIds) {
      await change('submitted');
      for (const tokenId of tokenIds) open(tokenId, 'submitted').state = 'submitted';
    },
    async mined(tokenId, txHash) {
      await change('mined');
      Object.assign(open(tokenId, 'mined'), { state: 'mined', txHash });
    },
    async failed(tokenId: string, failure: Failure) {
      await change('failed');
      Object.assign(open(tokenId, 'failed'), { state: 'failed', failure });
    },
  };
  return journal;
}
