import { task, types } from 'hardhat/config';
import { ServiceError } from '../../service/errors';
import { makeBindings } from '../contract-bindings';
import { withReadableErrors } from '../task-error';
import { printable } from '../printable';

interface Arguments {
  file: string;
  pointers: string[];
  reveal: boolean;
  out?: string;
}

/** `npx hardhat derive`: the version of a credential that a holder shows. */
task('derive', 'Derives a version of a credential that discloses only what is named, and what is mandatory')
  .addPositionalParam('file', 'The credential, or the answer of POST /create; - for standard input')
  .addOptionalVariadicPositionalParam('pointers', 'After --reveal: JSON pointers', [], types.string)
  .addFlag('reveal', 'Disclose what the pointers after it name')
  .addOptionalParam('out', 'File to write (default: standard output)')
  .setAction(async ({ out, ...options }: Arguments, hre) => {
    await makeBindings(hre);
    const { deriveFile } =
      require('../verification/derive-file') as typeof import('../verification/derive-file');
    const { output, remarks } = await withReadableErrors(hre.hardhatArguments, () =>
      deriveFile({ ...options, out }).catch(rethrowPrintable),
    );
    for (const line of remarks) console.error(line);
    for (const line of output) console.log(line);
  });

/** The message of an error may quote what a stranger wrote. */
function rethrowPrintable(cause: unknown): never {
  if (!(cause instanceof ServiceError)) throw cause;
  const { code, message, remedy = '' } = cause;
  throw new ServiceError(code, printable(message), {
    cause,
    remedy: printable(remedy),
  });
}
