import { task } from 'hardhat/config';
import { answerTask } from '../registry-owner/answer-task';
import { CREDENTIAL, JSON_FLAG, REGISTRY, REMARK, type OwnerArguments } from '../task-arguments';

/** `npx hardhat unpause`. Exit code 1: refused, 2: failed, or could not tell. */
task('unpause', 'Lets a paused registry go on')
  .addOptionalParam('remark', REMARK)
  .addOptionalParam('credential', CREDENTIAL)
  .addOptionalParam('registry', REGISTRY)
  .addFlag('json', JSON_FLAG)
  .setAction(async ({ remark, credential, registry, json }: OwnerArguments, hre) => {
    const { network } = hre.hardhatArguments;
    await answerTask(hre, json, (say) => {
      const { setPaused } =
        require('../registry-owner/set-paused') as typeof import('../registry-owner/set-paused');
      return setPaused('unpause', { remark, credential, registry, network }, say);
    });
  });
