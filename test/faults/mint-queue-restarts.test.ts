import { expect } from 'chai';
import { mintTogether } from '../helpers/chain/direct-mint';
import { createLocalSetup, DEPLOYER, type LocalSetup } from '../helpers/chain/local-setup';
import { installRegistry, startAnvil } from '../helpers/chain/node';
import { VirtualTime } from '../helpers/virtual-time';
import { failureOf, withQueue, type RunningQueue } from '../helpers/processes/running-mint-queue';
import { stopLater } from '../helpers/resources';

describe('the mint queue after a restart of the node', () => {
  let local: LocalSetup;
  /** It stands still while the node is asked, or restarts. */
  let time: VirtualTime;

  beforeEach(() => (time = new VirtualTime()));

  before(async () => {
    local = await createLocalSetup({ program: 'anvil' });
  });

  async function restartWithoutRegistry(): Promise<void> {
    const port = Number(new URL(local.node.url).port);
    await local.node.stop();
    const restarted = await startAnvil(port);
    stopLater('the restarted node', () => restarted.stop());
  }

  /** Mints `count` tokens once the node mines no more, and waits until `submitted` mints were sent in all. */
  async function pendingMints(
    queue: RunningQueue,
    count: number,
    submitted: number,
  ): Promise<Promise<string>[]> {
    await local.client.send('evm_setAutomine', [false]);
    const mints = Array.from({ length: count }, () => queue.mint());
    for (const mint of mints) mint.catch(() => undefined);
    await time.until('they wait', () => queue.logged('mint submitted') >= submitted);
    return mints;
  }

  it('mints on a new chain where more nonces are used', () =>
    withQueue(local, { time }, async (queue) => {
      const mints = await pendingMints(queue, 3, 3);
      await queue.proxy.refuse();
      await local.restartNode();
      await mintTogether(local, DEPLOYER, 10);
      await queue.proxy.accept();
      await time.settled(Promise.all(mints));
    }));

  it('mints the rest on a new chain where fewer nonces are used', () =>
    withQueue(local, { time }, async (queue) => {
      await time.settled(queue.mintMany(30, 10));
      const mints = await pendingMints(queue, 12, 36);
      await local.restartNode();
      await time.settled(Promise.all(mints));
      const { issuances } = queue.journal;
      for (const { state } of [...issuances.values()].slice(30)) expect(state).to.equal('final');
      await time.settled(queue.mintMany(5, 5));
      // The earlier mints are gone with the old chain.
      for (const tokenId of [...issuances.keys()].slice(0, 30)) issuances.delete(tokenId);
      expect(JSON.stringify(queue.log)).to.include('nonces are assigned again');
    }));

  // The last one, because its node is no longer that of the setup.
  it('fails with a remedy while the new chain has no registry', () =>
    withQueue(local, { time }, async (queue) => {
      await time.settled(queue.mint());
      const [first] = await pendingMints(queue, 1, 2);
      await restartWithoutRegistry();
      expect(await time.settled(failureOf(first!))).to.include({ code: 'REGISTRY_MISSING', retryable: true });
      expect(await time.settled(failureOf(queue.mint())))
        .to.have.property('remedy')
        .that.matches(/Deploy the registry/);
      await installRegistry(local.node.url);
      await time.settled(queue.mint());
      // The token of the first mint is gone with the old chain.
      queue.journal.issuances.delete([...queue.journal.issuances.keys()][0]!);
    }));
});
