import { task } from 'hardhat/config';
import { answerTask } from '../registry-owner/answer-task';
import { CREDENTIAL, JSON_FLAG, REGISTRY, REMARK, TOKEN, type OwnerArguments } from '../task-arguments';

type Arguments = OwnerArguments & { token: string; yes: boolean };

/** `npx hardhat burn`. Exit code 1: refused, 2: failed, or could not tell. */
task('burn', 'Takes a token that was returned to the issuer out of circulation, for ever')
  .addPositionalParam('token', TOKEN)
  .addOptionalParam('remark', REMARK)
  .addOptionalParam('credential', CREDENTIAL)
  .addOptionalParam('registry', REGISTRY)
  .addFlag('yes', 'Do not ask')
  .addFlag('json', JSON_FLAG)
  .setAction(async ({ token, remark, credential, registry, json, yes }: Arguments, hre) => {
    const { network } = hre.hardhatArguments;
    await answerTask(hre, json, (say) => {
      const { burnOrRestore } =
        require('../registry-owner/burn-or-restore') as typeof import('../registry-owner/burn-or-restore');
      const reference = { token, registry, network };
      return burnOrRestore('burn', { ...reference, remark, credential, isAgreed: yes }, say);
    });
  });
