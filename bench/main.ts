import { nothingIsLeftRunning } from '../test/helpers/owned';

/** Every benchmark by the name it is asked for, in the order in which all of them run. */
const BENCHES: Record<string, () => Promise<{ run(): Promise<void> }>> = {
  create: () => import('./create-latency'),
  delivery: () => import('./delivery'),
  backlog: () => import('./backlog'),
  latency: () => import('./latency'),
  'catch-up': () => import('./catch-up'),
};

async function main(asked: string[]): Promise<void> {
  const names = Object.keys(BENCHES);
  const unknown = asked.filter((name) => !names.includes(name));
  if (unknown.length > 0)
    throw new Error(`no benchmark ${unknown.join(', ')}: there are ${names.join(', ')}`);
  for (const [name, load] of Object.entries(BENCHES)) {
    if (asked.length > 0 && !asked.includes(name)) continue;
    console.log(`\n== ${name}`);
    await (await load()).run();
  }
}

function fail(error: unknown): void {
  console.error(error);
  process.exitCode = 1;
}

void main(process.argv.slice(2)).catch(fail).then(nothingIsLeftRunning).catch(fail);
