import { devNull } from 'node:os';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../service/base/project-root';
import { dropJournalsOfEarlierChains } from '../deploy/registry/journals';
import { startChild, type Child } from './child-process';

/** Hardhat's command line. */
export const HARDHAT = require.resolve('hardhat/internal/cli/cli.js');

/** Where `hardhat deploy` keeps its journals. */
const JOURNALS = join(PROJECT_ROOT, 'deploy/deployments');

/** A running `hardhat node`. */
export interface HardhatNode extends Pick<Child, 'ended' | 'stop' | 'unref'> {
  url: string;
  /** Deletes the journals of deployments on its chain. */
  dropJournals(): void;
}

/**
 * Starts a real `hardhat node`, reachable from this machine only. Port 0 takes a free port. Its chain ends
 * with it, so the journals of deployments on it are deleted too.
 *
 * @param chainId stands in for another network than 31337.
 * @param configFile instead of hardhat.config.ts.
 */
export async function startHardhatNode({
  port,
  chainId,
  configFile,
  logFile,
}: {
  port: number;
  chainId?: number;
  configFile?: string;
  logFile?: string;
}): Promise<HardhatNode> {
  const config = configFile === undefined ? [] : ['--config', configFile];
  const args = [...config, 'node', '--hostname', '127.0.0.1', '--port', String(port)];
  // Without an env file of its own it would read the user's .env.
  const settings = { ENV_FILE: devNull, ...(chainId !== undefined && { LOCAL_CHAIN_ID: String(chainId) }) };
  const child = startChild('hardhat node', HARDHAT, args, settings, logFile);
  const [, url = ''] = await child.lineMatching(/JSON-RPC server at .*?(http:\/\/[\w.]+:\d+)/);
  const dropJournals = (): void => dropJournalsOfEarlierChains(JOURNALS, url);
  return {
    url,
    dropJournals,
    ended: child.ended,
    unref: () => child.unref(),
    async stop() {
      await child.stop();
      dropJournals();
    },
  };
}
