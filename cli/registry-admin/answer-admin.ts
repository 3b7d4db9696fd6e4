import type { Command } from 'commander';
import { envFileOf } from '../../service/config/config';
import { withCommandsFor } from '../../service/config/tenant';
import { withExitCode } from '../exit-code';
import { Refusal } from '../refusal';
import { maskSecrets } from '../terminal/masked-output';
import { printableJson } from '../terminal/printable';
import type { AdminAnswer, Say } from './carry-out';

/**
 * Runs a command of the registry admin. With `--json` it prints one object on standard output, also for a
 * refusal, but nothing if the exit code is 2.
 */
export async function answerAdmin(
  command: Command,
  json: boolean,
  work: (say: Say) => Promise<AdminAnswer>,
): Promise<void> {
  await withExitCode(command, async () => {
    try {
      const answer = await work((line) => (json ? console.error(line) : console.log(line)));
      for (const line of json ? [answer.json] : answer.lines) console.log(line);
      return answer.isYes;
    } catch (thrown) {
      if (!json || !(thrown instanceof Refusal)) throw thrown;
      const { code } = thrown;
      const [message, remedy] = [thrown.message, thrown.remedy].map(
        (text) => text && withCommandsFor(envFileOf(), text),
      );
      console.log(maskSecrets(printableJson({ outcome: 'refused', code, message, remedy })));
      return false;
    }
  });
}
