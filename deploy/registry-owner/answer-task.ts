import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import { envFileOf } from '../../service/config';
import { withCommandsFor } from '../../service/tenant';
import { makeBindings } from '../contract-bindings';
import { withExitCode } from '../exit-code';
import { maskSecrets } from '../masked-output';
import { printableJson } from '../printable';
import { textOf } from '../task-error';
import type { OwnerAnswer, Say } from './carry-out';
import { Refusal } from './refusal';

/**
 * Runs a command of the registry's owner. Exit code 0: done, or nothing to do; 1: refused, nothing was sent;
 * 2: it failed, or it could not be told what became of it. With `--json` standard output has one object,
 * unless the exit code is 2.
 *
 * @param work loads what needs the contracts' bindings, which are there by then.
 */
export async function answerTask(
  hre: HardhatRuntimeEnvironment,
  json: boolean,
  work: (say: Say) => Promise<OwnerAnswer>,
): Promise<void> {
  await withExitCode(hre.hardhatArguments, async () => {
    await makeBindings(hre);
    try {
      const answer = await work((line) => (json ? console.error(line) : console.log(line)));
      for (const line of json ? [answer.json] : answer.lines) console.log(line);
      return answer.isYes;
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      const { code } = thrown;
      const [message, remedy] = [thrown.message, thrown.remedy].map(
        (text) => text && withCommandsFor(envFileOf(), text),
      );
      if (json) console.log(maskSecrets(printableJson({ outcome: 'refused', code, message, remedy })));
      else console.error(textOf(thrown));
      return false;
    }
  });
}
