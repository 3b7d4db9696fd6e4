import { task, types } from 'hardhat/config';
import { sendAgain } from '../deliveries/send-again';
import { withReadableErrors } from '../task-error';

interface Arguments {
  event?: string;
  dead: boolean;
  fromBlock?: number;
  registry?: string;
}

/** `npx hardhat redeliver`: sends events again that were given up, or lost by the subscriber. */
task('redeliver', 'Queues events for delivery once more: one, the dead letters, or all from a block on')
  .addOptionalParam('event', 'Id of an event')
  .addFlag('dead', 'All that were given up')
  .addOptionalParam('fromBlock', 'All events of this block and later ones', undefined, types.int)
  .addOptionalParam('registry', 'Address of a registry: only its events')
  .setAction(async ({ event, dead, fromBlock, registry }: Arguments, hre) => {
    const lines = await withReadableErrors(hre.hardhatArguments, () =>
      sendAgain({ event, dead, fromBlock, registry }),
    );
    for (const line of lines) console.log(line);
  });
