import { expect } from 'chai';
import type { HardhatNode } from '../../devnet/hardhat-node';
import { mintTogether } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { installRegistry, startNode } from '../helpers/chain/node';
import { track } from '../helpers/resources';
import { startQueue, untruths, type QueuePlace } from '../helpers/processes/running-mint-queue';
import { createLocalSetup, DEPLOYER, type LocalSetup } from '../helpers/chain/local-setup';

describe('the mint queue after a restart of the node', () => {
  let local: LocalSetup;
  let place: QueuePlace;
  let restarted: { node: HardhatNode; untrack: () => void } | undefined;

  beforeEach(async () => {
    local = await createLocalSetup();
    place = { nodeUrl: local.node.url, registryAddress: local.registryAddress };
  });

  afterEach(async () => {
    await restarted?.node.stop();
    restarted?.untrack();
    restarted = undefined;
    await local.stop();
  });

  async function restartWithoutRegistry(): Promise<void> {
    const port = Number(new URL(local.node.url).port);
    await local.node.stop();
    restarted = { node: await startNode(port), untrack: track('the restarted node') };
  }

  /** States of the mints whose outcome was open; earlier ones are gone with the old chain. */
  const states = (journal: { issuances: Map<string, { state: string }> }, from: number): string[] =>
    [...journal.issuances.values()].slice(from).map(({ state }) => state);

  it('mints the rest on a new chain where fewer nonces are used', async () => {
    const queue = await startQueue(place);
    try {
      await queue.mintMany(30, 10);
      await local.client.send('evm_setAutomine', [false]);
      const mints = Promise.all(Array.from({ length: 12 }, () => queue.mint()));
      await eventually(
        'some wait',
        () => queue.log.filter(({ msg }) => msg === 'mint submitted').length > 35,
      );
      await local.restartNode();
      await mints;
      expect(new Set(states(queue.journal, 30))).to.deep.equal(new Set(['final']));
      await queue.mintMany(5, 5);
      for (const tokenId of [...queue.journal.issuances.keys()].slice(0, 30))
        queue.journal.issuances.delete(tokenId);
      expect(await untruths(local.client, local.registryAddress, queue.journal)).to.deep.equal([]);
      expect(JSON.stringify(queue.log)).to.include('nonces are assigned again');
    } finally {
      await queue.stop();
    }
  });

  it('mints on a new chain where more nonces are used', async () => {
    const queue = await startQueue(place);
    try {
      await local.client.send('evm_setAutomine', [false]);
      const mints = Promise.all(Array.from({ length: 3 }, () => queue.mint()));
      await eventually(
        'they wait',
        () => queue.log.filter(({ msg }) => msg === 'mint submitted').length === 3,
      );
      await queue.proxy.refuse();
      await local.restartNode();
      await mintTogether(local, DEPLOYER, 10);
      await queue.proxy.accept();
      await mints;
      expect(await untruths(local.client, local.registryAddress, queue.journal)).to.deep.equal([]);
    } finally {
      await queue.stop();
    }
  });

  it('fails with a remedy while the new chain has no registry', async () => {
    const queue = await startQueue(place, { timing: { registryMs: 1_000 } });
    try {
      await queue.mint();
      await local.client.send('evm_setAutomine', [false]);
      const outcome = queue.mint().catch((error: unknown) => error);
      await eventually(
        'it waits',
        () => queue.log.filter(({ msg }) => msg === 'mint submitted').length === 2,
      );
      await restartWithoutRegistry();
      expect(await outcome).to.include({ code: 'REGISTRY_MISSING', retryable: true });
      const next = queue.mint().catch((error: unknown) => error);
      expect(await next)
        .to.have.property('remedy')
        .that.matches(/Deploy the registry/);
      await installRegistry(local.node.url);
      await queue.mint();
    } finally {
      await queue.stop();
    }
  });
});
