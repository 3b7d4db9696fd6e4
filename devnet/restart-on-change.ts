import { join } from 'node:path';
import { messageOf } from '../service/base/errors';
import { PROJECT_ROOT } from '../service/base/project-root';
import { startChild } from './child-process';
import type { Devnet } from './devnet';

/**
 * Builds whenever the sources change, and restarts the service after every build without errors, until the
 * result is called.
 */
export function restartOnChange(devnet: Devnet, say: (line: string) => void): () => Promise<void> {
  const script = join(PROJECT_ROOT, 'cli/bundle.cjs');
  const bundler = startChild('esbuild', script, ['--watch'], {}, join(devnet.folder, 'esbuild.log'));
  let isFirst = true;
  let isBroken = false;
  let isWatching = true;
  let restarting = Promise.resolve();
  const tell = (line: string): void => void (isWatching && say(line));
  bundler.onLine((line) => {
    isBroken ||= line.includes('[ERROR]');
    // The message, and the place of the error.
    if (line.includes('[ERROR]') || /^ +\S+:\d+:\d+:$/.test(line)) say(line);
    if (!line.includes('build finished')) return;
    if (isFirst) say('watching the sources: the service restarts when they change');
    else if (!isBroken) restarting = restarting.then(() => restart(devnet, tell));
    isFirst = false;
    isBroken = false;
  });
  return async () => {
    isWatching = false;
    await Promise.all([bundler.stop(), restarting]);
  };
}

async function restart(devnet: Devnet, say: (line: string) => void): Promise<void> {
  const startedAt = performance.now();
  try {
    await devnet.restartService();
    say(`service restarted in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  } catch (error) {
    say(`the service did not start; it is started again after the next change\n${messageOf(error)}`);
  }
}
