import { join } from 'node:path';
import { messageOf } from '../service/base/errors';
import { PROJECT_ROOT } from '../service/base/project-root';
import { startChild } from './child-process';
import type { Cleanup, Stack } from './stack';

/** Builds whenever the sources change, and restarts the service after every build without errors. */
export function restartOnChange(stack: Stack, say: (line: string) => void, cleanup: Cleanup): void {
  const script = join(PROJECT_ROOT, 'cli/bundle.cjs');
  const bundler = startChild('esbuild', script, ['--watch'], {}, join(stack.folder, 'esbuild.log'));
  cleanup.push(() => bundler.stop());
  let isFirst = true;
  let isBroken = false;
  let restarting = Promise.resolve();
  bundler.onLine((line) => {
    isBroken ||= line.includes('[ERROR]');
    // The message, and the place of the error.
    if (line.includes('[ERROR]') || /^ +\S+:\d+:\d+:$/.test(line)) say(line);
    if (!line.includes('build finished')) return;
    if (isFirst) say('watching the sources: the service restarts when they change');
    else if (!isBroken) restarting = restarting.then(() => restart(stack, say));
    isFirst = false;
    isBroken = false;
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
