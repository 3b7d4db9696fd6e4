import { join } from 'node:path';
import { messageOf } from '../service/base/errors';
import { startChild } from './child-process';
import type { Cleanup, Stack } from './stack';

const COMPILED = /Found (\d+) errors?\. Watching/;

/** Compiles the sources whenever they change, and restarts the service after every build without errors. */
export function restartOnChange(stack: Stack, say: (line: string) => void, cleanup: Cleanup): void {
  const args = ['-p', 'tsconfig.build.json', '--watch', '--preserveWatchOutput', '--pretty', 'false'];
  const compiler = startChild(
    'tsc',
    require.resolve('typescript/bin/tsc'),
    args,
    {},
    join(stack.folder, 'tsc.log'),
  );
  cleanup.push(() => compiler.stop());
  let isFirst = true;
  let restarting = Promise.resolve();
  compiler.onLine((line) => {
    if (/error TS\d+/.test(line)) say(line);
    if (COMPILED.exec(line)?.[1] !== '0') return;
    if (isFirst) say('watching the sources: the service restarts when they change');
    else restarting = restarting.then(() => restart(stack, say));
    isFirst = false;
  });
}

async function restart(stack: Stack, say: (line: string) => void): Promise<void> {
  const startedAt = performance.now();
  try {
    await stack.restartService();
    say(`service restarted in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  } catch (error) {
    say(`the service did not start; it is started again after the next change\n${messageOf(error)}`);
  }
}
