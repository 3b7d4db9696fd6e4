import { expect } from 'chai';
import { startHardhatNode, type HardhatNode } from '../../deploy/devnet/hardhat-node';
import { mintTogether } from '../helpers/direct-mint';
import { eventually } from '../helpers/eventually';
import { hardhat } from '../helpers/hardhat-command';
import { own } from '../helpers/owned';
import { startLane, untruths, type LanePlace } from '../helpers/running-lane';
import { createWorld, DEPLOYER, type World } from '../helpers/world';

describe('the lane of mints when the node was started anew', () => {
  let world: World;
  let place: LanePlace;
  let restarted: { node: HardhatNode; disown: () => void } | undefined;

  beforeEach(async () => {
    world = await createWorld();
    place = { nodeUrl: world.node.url, registryAddress: world.registryAddress };
  });

  afterEach(async () => {
    await restarted?.node.stop();
    restarted?.disown();
    restarted = undefined;
    await world.stop();
  });

  /** The node's chain ends with its process: the next begins at block 0. */
  async function restart({ deploys }: { deploys: boolean }): Promise<void> {
    const port = Number(new URL(world.node.url).port);
    await world.node.stop();
    restarted = { node: await startHardhatNode({ port }), disown: own('the restarted node') };
    if (deploys) await hardhat(['deploy', '--network', 'localhost'], world.settings);
  }

  /** Of the mints whose outcome is known only now: what was mined on the chain that is gone is gone. */
  const states = (journal: { issuances: Map<string, { state: string }> }, from: number): string[] =>
    [...journal.issuances.values()].slice(from).map(({ state }) => state);

  it('mints the rest on the new chain, where fewer nonces are used', async () => {
    const lane = await startLane(place);
    try {
      await lane.mintMany(30, 10);
      await world.client.send('evm_setAutomine', [false]);
      const mints = Promise.all(Array.from({ length: 12 }, () => lane.mint()));
      await eventually('some wait', () => lane.log.filter(({ msg }) => msg === 'mint submitted').length > 35);
      await restart({ deploys: true });
      await mints;
      expect(new Set(states(lane.journal, 30))).to.deep.equal(new Set(['mined']));
      await lane.mintMany(5, 5);
      for (const tokenId of [...lane.journal.issuances.keys()].slice(0, 30))
        lane.journal.issuances.delete(tokenId);
      expect(await untruths(world.client, world.registryAddress, lane.journal)).to.deep.equal([]);
      expect(JSON.stringify(lane.log)).to.include('nonces are given anew');
    } finally {
      await lane.stop();
    }
  });

  it('mints on the new chain, where more nonces are used', async () => {
    const lane = await startLane(place);
    try {
      await world.client.send('evm_setAutomine', [false]);
      const mints = Promise.all(Array.from({ length: 3 }, () => lane.mint()));
      await eventually(
        'they wait',
        () => lane.log.filter(({ msg }) => msg === 'mint submitted').length === 3,
      );
      await lane.proxy.refuse();
      await restart({ deploys: true });
      await mintTogether(world, DEPLOYER, 10);
      await lane.proxy.accept();
      await mints;
      expect(await untruths(world.client, world.registryAddress, lane.journal)).to.deep.equal([]);
    } finally {
      await lane.stop();
    }
  });

  it('fails where the new chain has no registry, and says so', async () => {
    const lane = await startLane(place, { timing: { registryMs: 1_000 } });
    try {
      await lane.mint();
      await world.client.send('evm_setAutomine', [false]);
      const outcome = lane.mint().catch((error: unknown) => error);
      await eventually('it waits', () => lane.log.filter(({ msg }) => msg === 'mint submitted').length === 2);
      await restart({ deploys: false });
      expect(await outcome).to.include({ code: 'REGISTRY_MISSING', retryable: true });
      const next = lane.mint().catch((error: unknown) => error);
      expect(await next)
        .to.have.property('remedy')
        .that.matches(/Deploy the registry/);
      // Somebody does so.
      await hardhat(['deploy', '--network', 'localhost'], world.settings);
      await lane.mint();
    } finally {
      await lane.stop();
    }
  });
});
