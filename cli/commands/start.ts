import { join } from 'node:path';
import type { Command } from 'commander';
import { PROJECT_ROOT } from '../../service/base/project-root';

const PROGRAMS = {
  service: 'start the service: issue documents over HTTP, deliver events to the webhook',
  receiver: 'start the reference receiver of webhooks',
  devnet: 'start a local chain, the service and the receiver, for tests',
} as const;

/**
 * `tdoc service`, `tdoc receiver` and `tdoc devnet`. These programs parse their own arguments, including
 * `--help`.
 */
export function addStart(program: Command): void {
  for (const name of Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[]) {
    program
      .command(name)
      .description(PROGRAMS[name])
      .helpOption(false)
      .allowUnknownOption()
      .argument('[arguments...]')
      .action((args: string[]) => {
        process.argv.splice(2, Infinity, ...args);
        require(join(PROJECT_ROOT, 'dist', name, 'main.js'));
      });
  }
}
