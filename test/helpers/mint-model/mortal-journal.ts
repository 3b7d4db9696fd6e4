import type { Journal } from '../../../service/journal/journal';
import type { SeededRandom } from '../seeded-random';
import type { Mortal, ScenarioParts } from './scenario-parts';

type Statement = (...given: unknown[]) => Promise<unknown>;

const LONGEST_STATEMENT_MS = 20;

/**
 * A journal for a process that may be killed before or after every statement, and whose database may be
 * unreachable.
 */
export function mortalJournal(
  journal: Journal,
  { time, faults, history }: ScenarioParts,
  random: SeededRandom,
  mortal: Mortal,
): Journal {
  const requireAlive = (): void => {
    if (mortal.isDead()) throw new Error('the process is dead');
  };
  const statement =
    (name: string): Statement =>
    async (...given) => {
      const isAway = random.chance(faults.chanceOf('journal away', time.now()));
      const isAwayBefore = isAway && random.chance(0.5);
      await time.sleep(1 + random.below(LONGEST_STATEMENT_MS));
      requireAlive();
      mortal.step('before');
      requireAlive();
      if (isAway) faults.count('journal away');
      if (isAwayBefore) throw new Error('the database is away');
      const statements = journal as unknown as Record<string, Statement | undefined>;
      const result = await time.real(statements[name]?.(...given) ?? Promise.resolve());
      history.note(`journal: ${name} ${given.map(inFewWords).join(' ')}${isAway ? ', unanswered' : ''}`);
      mortal.step('after');
      await time.sleep(1 + random.below(LONGEST_STATEMENT_MS));
      requireAlive();
      if (isAway) throw new Error('the answer of the database was lost');
      return result;
    };
  return new Proxy(journal, { get: (_, name) => statement(String(name)) });
}

/** The arguments of a statement, in short. */
function inFewWords(given: unknown): string {
  if (Array.isArray(given)) return `[${given.map(inFewWords).join(', ')}]`;
  if (typeof given !== 'object' || given === null) return String(given);
  const { tokenId, nonce, hash, txHash, block, key, code } = given as Record<string, unknown>;
  const words = [
    tokenId,
    nonce,
    hash,
    txHash,
    block === undefined ? undefined : inFewWords(block),
    key,
    code,
  ];
  return words.flatMap((word) => (word === undefined ? [] : String(word as string))).join(' ');
}
