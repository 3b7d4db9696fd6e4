import { task } from 'hardhat/config';
import { showDeliveries } from '../deliveries/show-deliveries';
import { withReadableErrors } from '../task-error';

interface Arguments {
  dead: boolean;
  orphaned: boolean;
  event?: string;
  registry?: string;
  json: boolean;
}

/** `npx hardhat deliveries`: what waits, what was given up, what became of an event. */
task(
  'deliveries',
  'Shows the deliveries that wait, and with a flag the dead letters, the orphans, or one event',
)
  .addFlag('dead', 'The events that were given up')
  .addFlag('orphaned', 'What had been sent from blocks that were orphaned')
  .addOptionalParam('event', 'Id of an event: its body and every attempt')
  .addOptionalParam('registry', 'Address of a registry: only its events')
  .addFlag('json', 'One JSON object a line')
  .setAction(async ({ event, registry, ...flags }: Arguments, hre) => {
    const lines = await withReadableErrors(hre.hardhatArguments, () =>
      showDeliveries({ ...flags, event, registry }),
    );
    for (const line of lines) console.log(line);
  });
