import { systemClock, type Clock } from '../../service/base/clock';

const QUIET_MS = 2_000;

/**
 * Tells how far a long reading is, with a hint where it ends: nothing in its first two seconds, then a line
 * every two seconds.
 */
export function createReadingProgress(
  tell: (line: string) => void,
  hint: string,
  clock: Clock = systemClock,
): (block: number, range: { fromBlock: number; toBlock: number }) => void {
  let told = clock.now();
  return (block, { fromBlock, toBlock }) => {
    if (clock.now() - told < QUIET_MS) return;
    told = clock.now();
    const percent = Math.floor((100 * (toBlock - block + 1)) / (toBlock - fromBlock + 1));
    tell(`reading backwards, at block ${block}: at most ${fromBlock} … ${toBlock}, ${percent} % (${hint})`);
  };
}
