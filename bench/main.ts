import { nothingIsLeftRunning } from '../test/helpers/resources';
import * as backlog from './backlog';
import * as catchUp from './catch-up';
import * as consoles from './console';
import * as cost from './cost';
import * as create from './create-latency';
import * as delivery from './delivery';
import * as fanOut from './fan-out';
import * as growth from './growth';
import * as issuing from './issuing';
import * as latency from './latency';
import * as memory from './memory';
import * as responsiveness from './responsiveness';
import * as scale from './scale';
import * as signing from './signing';

/** Every benchmark by name, in the order in which all of them run. */
const BENCHES = {
  signing,
  create,
  cost,
  issuing,
  growth,
  responsiveness,
  delivery,
  'fan-out': fanOut,
  scale,
  backlog,
  latency,
  'catch-up': catchUp,
  memory,
  console: consoles,
};

/** `npm run bench` runs all benchmarks, `npm run bench -- delivery` one. */
async function main(asked: string[]): Promise<void> {
  const names = Object.keys(BENCHES);
  const unknown = asked.filter((name) => !names.includes(name));
  if (unknown.length > 0)
    throw new Error(`no benchmark ${unknown.join(', ')}: there are ${names.join(', ')}`);
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (asked.length > 0 && !asked.includes(name)) continue;
    console.log(`\n== ${name}`);
    await bench.run();
  }
}

function fail(error: unknown): void {
  console.error(error);
  process.exitCode = 1;
}

void main(process.argv.slice(2)).catch(fail).then(nothingIsLeftRunning).catch(fail);
