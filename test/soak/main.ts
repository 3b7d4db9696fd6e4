import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inheritedEnvironment } from '../../service/config/config';
import { ENGINES } from '../helpers/database/engines';
import type { ScenarioResult } from '../helpers/scenario';
import { MODELS, type SeedRange } from './models';

/** A process runs only so many scenarios, because its node grows with every mint. */
const SEEDS_OF_A_PROCESS = 100;
/** The end of a failed scenario's history says most, so only that is printed. */
const LAST_LINES = 200;
const HIGHEST_SEED = 1_000_000;
/** A folder in memory, if the machine has it. On a disk, scenarios wait for it. */
const MEMORY_FOLDER = '/dev/shm';

/** The results of all scenarios. */
class Tally {
  scenarios = 0;
  readonly failed: number[] = [];
  readonly #counts: Record<string, number> = {};
  readonly #startedAt = Date.now();

  add({ seed, counts, violations }: ScenarioResult): void {
    this.scenarios++;
    if (violations.length > 0) this.failed.push(seed);
    for (const [what, times] of Object.entries(counts))
      this.#counts[what] = (this.#counts[what] ?? 0) + times;
  }

  toString(): string {
    const seconds = (Date.now() - this.#startedAt) / 1_000;
    const counts = Object.entries(this.#counts).sort(([one], [other]) => (one < other ? -1 : 1));
    return [
      `${this.scenarios} scenarios in ${seconds.toFixed(0)} s, ${this.failed.length} failed`,
      ...counts.map(([what, times]) => `${String(times).padStart(9)}  ${what}`),
    ].join('\n');
  }
}

/** Runs the scenarios of the range, in several processes. */
async function soak(
  range: SeedRange,
  workers: number,
  onResult: (result: ScenarioResult) => void,
): Promise<void> {
  let next = range.first;
  const end = range.first + range.count;
  const until = Date.now() + (range.forMs ?? Infinity);
  const size = Math.min(SEEDS_OF_A_PROCESS, Math.ceil(range.count / workers));
  const work = async (): Promise<void> => {
    while (next < end && Date.now() < until) {
      const first = next;
      next = Math.min(first + size, end);
      await runInProcess({ ...range, first, count: next - first }, onResult);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
}

async function runInProcess(range: SeedRange, onResult: (result: ScenarioResult) => void): Promise<void> {
  const folder = existsSync(MEMORY_FOLDER) ? MEMORY_FOLDER : tmpdir();
  const child = fork(join(__dirname, 'worker.ts'), {
    execArgv: ['--require', 'ts-node/register/transpile-only'],
    env: { ...inheritedEnvironment(), TMPDIR: folder },
  });
  child.on('message', (result) => onResult(result as ScenarioResult));
  child.send(range);
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`the process with the seeds from ${range.first} on ended with ${code}`);
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const options = { model: text, engine: text, seeds: text, seed: text, seconds: text, workers: text };
  const { values } = parseArgs({ options });
  const model = MODELS.find((name) => name === (values.model ?? 'mints'));
  if (model === undefined) throw new Error(`--model is one of ${MODELS.join(', ')}`);
  const engine = ENGINES.find((name) => name === (values.engine ?? 'SQLite'));
  if (engine === undefined) throw new Error(`--engine is one of ${ENGINES.join(', ')}`);
  const first = values.seed === undefined ? randomInt(HIGHEST_SEED) : Number(values.seed);
  const isReplay = values.seed !== undefined && values.seeds === undefined;
  const { seconds } = values;
  const limit = seconds === undefined ? {} : { forMs: Number(seconds) * 1_000 };
  const count = isReplay ? 1 : Number(values.seeds ?? (seconds ? HIGHEST_SEED : SEEDS_OF_A_PROCESS));
  const last = seconds ? `on, for ${seconds} s` : `to ${first + count - 1}`;
  console.log(`seeds from ${first} ${last}`);
  const tally = new Tally();
  await soak(
    { model, engine, first, count, ...limit },
    Math.min(Number(values.workers ?? 2), count),
    (result) => {
      tally.add(result);
      const { seed, violations, history } = result;
      if (isReplay) console.log(history.join('\n'));
      else if (violations.length > 0) console.log(history.slice(-LAST_LINES).join('\n'));
      if (violations.length > 0) console.log(`seed ${seed} failed:\n  ${violations.join('\n  ')}`);
    },
  );
  console.log(tally.toString());
  if (tally.failed.length === 0) return;
  console.log(
    `failed: ${tally.failed.join(' ')}; ` +
      `npm run soak -- --model ${model} --engine ${engine} --seed ${tally.failed[0]} runs that one again`,
  );
  process.exitCode = 1;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
