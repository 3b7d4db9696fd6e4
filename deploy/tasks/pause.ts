import { task } from 'hardhat/config';
import { answerTask } from '../registry-owner/answer-task';
import { CREDENTIAL, JSON_FLAG, REGISTRY, REMARK, type OwnerArguments } from '../task-arguments';

const COMMANDS = {
  pause: 'Pauses the registry: until it is unpaused nobody can mint, transfer, return, restore or burn',
  unpause: 'Lets a paused registry go on',
} as const;

/** `npx hardhat pause` and `npx hardhat unpause`. Exit code 1: refused, 2: failed, or could not tell. */
for (const command of ['pause', 'unpause'] as const) {
  task(command, COMMANDS[command])
    .addOptionalParam('remark', REMARK)
    .addOptionalParam('credential', CREDENTIAL)
    .addOptionalParam('registry', REGISTRY)
    .addFlag('json', JSON_FLAG)
    .setAction(async ({ remark, credential, registry, json }: OwnerArguments, hre) => {
      const { network } = hre.hardhatArguments;
      await answerTask(hre, json, (say) => {
        const { setPaused } =
          require('../registry-owner/set-paused') as typeof import('../registry-owner/set-paused');
        return setPaused(command, { remark, credential, registry, network }, say);
      });
    });
}
