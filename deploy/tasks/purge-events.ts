import { task, types } from 'hardhat/config';
import { purgeOldEvents } from '../deliveries/purge-old-events';
import { withReadableErrors } from '../task-error';

interface Arguments {
  olderThan?: number;
  registry?: string;
  yes: boolean;
}

/** `npx hardhat purge-events`: removes delivered events from the service's database. */
task('purge-events', 'Removes events that were delivered from the database, for ever')
  .addOptionalParam('olderThan', 'All that were last sent so many days ago', undefined, types.int)
  .addOptionalParam('registry', 'Address of the registry (default: TOKEN_REGISTRY_ADDRESS)')
  .addFlag('yes', 'Do not ask')
  .setAction(async ({ olderThan, registry, yes }: Arguments, hre) => {
    await withReadableErrors(hre.hardhatArguments, () =>
      purgeOldEvents({ olderThan, registry, isAgreed: yes }, (line) => console.log(line)),
    );
  });
