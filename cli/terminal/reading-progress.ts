import { systemClock, type Clock } from '../../service/base/clock';

const QUIET_MS = 2_000;

/**
 * Reports the progress of a long reading, with a hint where it ends: the first line after two seconds, then
 * one every two seconds.
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
