import { task } from 'hardhat/config';
import { answerTask } from '../registry-owner/answer-task';
import { CREDENTIAL, JSON_FLAG, REGISTRY, REMARK, TOKEN, type OwnerArguments } from '../task-arguments';

type Arguments = OwnerArguments & { token: string };

/** `npx hardhat restore`. Exit code 1: refused, 2: failed, or could not tell. */
task('restore', 'Gives a token that was returned to the issuer back to its beneficiary and holder')
  .addPositionalParam('token', TOKEN)
  .addOptionalParam('remark', REMARK)
  .addOptionalParam('credential', CREDENTIAL)
  .addOptionalParam('registry', REGISTRY)
  .addFlag('json', JSON_FLAG)
  .setAction(async ({ token, remark, credential, registry, json }: Arguments, hre) => {
    const { network } = hre.hardhatArguments;
    await answerTask(hre, json, (say) => {
      const { burnOrRestore } =
        require('../registry-owner/burn-or-restore') as typeof import('../registry-owner/burn-or-restore');
      const reference = { token, registry, network };
      return burnOrRestore('restore', { ...reference, remark, credential, isAgreed: true }, say);
    });
  });
