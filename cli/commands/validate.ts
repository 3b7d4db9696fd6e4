import type { Command } from 'commander';
import { withExitCode } from '../exit-code';
import { examples, JSON_FLAG } from './arguments';

/** `tdoc validate`. Exit code 1: not valid. */
export function addValidate(program: Command): void {
  program
    .command('validate')
    .summary('check a Bill of Lading before it is signed')
    .description('Checks the credentialSubject of a Bill of Lading.')
    .argument(
      '<file>',
      'A credentialSubject, the body of a POST /create, or a credential; - is standard input',
    )
    .option(...JSON_FLAG)
    .addHelpText('after', examples('validate subject.json', 'validate - --json < subject.json'))
    .action(async (file: string, { json }: { json?: true }, command: Command) =>
      withExitCode(command, async () => {
        const { validateFile } =
          require('../validation/validate-file') as typeof import('../validation/validate-file');
        const { isValid, lines } = await validateFile(file, json === true);
        for (const line of lines) console.log(line);
        return isValid;
      }),
    );
}
