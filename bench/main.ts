import { stopAll } from '../test/helpers/resources';
import { consoles } from './console';
import { backlog, delivery } from './delivery';
import { evidence } from './evidence';
import { fanOut } from './fan-out';
import { fetching } from './fetch';
import { cost, fullBlocks } from './issuing';
import { largeBodies } from './large-bodies';
import { latency } from './latency';
import { reading } from './reading';
import { severalProcesses } from './several-processes';
import { subscribers } from './subscribers';
import { SMALL, WHOLE, type Size } from './measure';

/** Every program by name, in the order in which all of them run. */
const PROGRAMS: Readonly<Record<string, (size: Size) => Promise<void>>> = {
  cost,
  'full-blocks': fullBlocks,
  latency,
  'large-bodies': largeBodies,
  delivery,
  backlog,
  'fan-out': fanOut,
  subscribers,
  fetch: fetching,
  processes: severalProcesses,
  reading,
  console: consoles,
  evidence,
};

/** `npm run bench` runs all programs, `npm run bench -- delivery` one; with `--small`, a twentieth, once. */
async function main(args: string[]): Promise<void> {
  const asked = args.filter((arg) => arg !== '--small');
  const names = Object.keys(PROGRAMS);
  const unknown = asked.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`no program ${unknown.join(', ')}: there are ${names.join(', ')}`);
  for (const [name, run] of Object.entries(PROGRAMS)) {
    if (asked.length > 0 && !asked.includes(name)) continue;
    console.log(`\n== ${name}`);
    await run(args.includes('--small') ? SMALL : WHOLE);
  }
}

function fail(error: unknown): void {
  console.error(error);
  process.exitCode = 1;
}

void main(process.argv.slice(2))
  .catch(fail)
  .then(() => stopAll())
  .catch(fail);
