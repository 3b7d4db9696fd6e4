import { expect } from 'chai';
import { eventually } from '../helpers/eventually';
import {
  startQueue,
  startOtherSender,
  untruths,
  type QueuePlace,
} from '../helpers/processes/running-mint-queue';
import { createLocalSetup, DEPLOYER, type LocalSetup } from '../helpers/chain/local-setup';

const INTERVAL_MS = 300;

describe('the mint queue', () => {
  let local: LocalSetup;
  let place: QueuePlace;

  before(async () => {
    local = await createLocalSetup();
    place = { nodeUrl: local.node.url, registryAddress: local.registryAddress };
  });

  after(() => local?.stop());

  afterEach(async () => {
    await local.client.send('evm_setIntervalMining', [0]);
    await local.client.send('evm_setAutomine', [true]);
    await local.client.send('evm_mine', []);
  });

  async function mineEvery(ms: number): Promise<void> {
    await local.client.send('evm_setAutomine', [false]);
    await local.client.send('evm_setIntervalMining', [ms]);
  }

  for (const mining of ['at once', 'at intervals'] as const) {
    const node = `a node that mines ${mining}`;
    it(`mints 100 tokens, 20 at once, on ${node}, beside another sender of the wallet`, async () => {
      if (mining === 'at intervals') await mineEvery(INTERVAL_MS);
      const queue = await startQueue(place);
      const other = startOtherSender(local.node.url);
      try {
        const hashes = await queue.mintMany(100, 20);
        const sent = await other.stop();
        expect(new Set(hashes).size).to.equal(100);
        expect(sent).to.be.greaterThan(5);
        await eventually('nothing waits', async () => {
          const count = (tag: string): Promise<number> => local.client.getTransactionCount(DEPLOYER, tag);
          return (await count('pending')) === (await count('latest'));
        });
        // A gap in the nonces would keep later transactions pending.
        expect(await local.client.send('eth_pendingTransactions', [])).to.deep.equal([]);
        const states = [...queue.journal.issuances.values()].map(({ state }) => state);
        expect(new Set(states)).to.deep.equal(new Set(['final']));
        expect(await untruths(local.client, local.registryAddress, queue.journal)).to.deep.equal([]);
      } finally {
        await other.stop();
        await queue.stop();
      }
    });
  }
});
