import { task, types } from 'hardhat/config';
import { purgeDocuments } from '../documents/purge-documents';
import { withReadableErrors } from '../task-error';

interface Arguments {
  olderThan?: number;
  token?: string;
  registry?: string;
  yes: boolean;
}

/** `npx hardhat purge-documents`: removes issued documents from the service's database. */
task(
  'purge-documents',
  'Removes issued documents from the database, for ever: one, or all that are old enough',
)
  .addOptionalParam('olderThan', 'All that were mined or failed so many days ago', undefined, types.int)
  .addOptionalParam('token', 'Id of a token: its document')
  .addOptionalParam('registry', 'Address of the registry (default: TOKEN_REGISTRY_ADDRESS)')
  .addFlag('yes', 'Do not ask')
  .setAction(async ({ olderThan, token, registry, yes }: Arguments, hre) => {
    await withReadableErrors(hre.hardhatArguments, () =>
      purgeDocuments({ olderThan, token, registry, isAgreed: yes }, (line) => console.log(line)),
    );
  });
