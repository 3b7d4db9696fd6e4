import type { Command } from 'commander';
import { printAnswer } from '../exit-code';
import { CREDENTIAL, examples, JSON_FLAG, NETWORK, REGISTRY, REMARK, type AdminOptions } from './arguments';

const COMMANDS = {
  pause: 'Pauses the registry: until it is unpaused nobody can mint, transfer, return, restore or burn.',
  unpause: 'Unpauses the registry.',
} as const;

/** `tdoc pause` and `tdoc unpause`. */
export function addPauseAndUnpause(program: Command): void {
  for (const name of ['pause', 'unpause'] as const) {
    program
      .command(name)
      .summary(`${name} the registry`)
      .description(COMMANDS[name])
      .option(...REMARK)
      .option(...CREDENTIAL)
      .option(...REGISTRY)
      .option(...NETWORK)
      .option(...JSON_FLAG)
      .addHelpText('after', examples(`${name} --remark "stock-taking"`))
      .action(async ({ remark, credential, registry, network, json }: AdminOptions, command: Command) => {
        await printAnswer(command, json === true, (say) => {
          const { setPaused } =
            require('../registry-admin/set-paused') as typeof import('../registry-admin/set-paused');
          return setPaused(name, { remark, credential, registry, network }, say);
        });
      });
  }
}
