import { task } from 'hardhat/config';
import { withExitCode } from '../exit-code';

/** `npx hardhat validate`: what is wrong with a Bill of Lading, before it is signed. */
task('validate', 'Checks the credentialSubject of a Bill of Lading; exit code 0 valid, 1 not, 2 cannot tell')
  .addPositionalParam(
    'file',
    'A credentialSubject, the body of a POST /create, or a credential; - is standard input',
  )
  .addFlag('json', 'One JSON object')
  .setAction(async ({ file, json }: { file: string; json: boolean }, hre) => {
    await withExitCode(hre.hardhatArguments, async () => {
      // Loaded now, not with the task: the JSON-LD library takes a while, and every command loads every task.
      const { validateFile } =
        require('../validation/validate-file') as typeof import('../validation/validate-file');
      const { isValid, lines } = await validateFile(file, json);
      for (const line of lines) console.log(line);
      return isValid;
    });
  });
