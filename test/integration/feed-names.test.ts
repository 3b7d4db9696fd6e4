import { expect } from 'chai';
import { toQuantity } from 'ethers';
import type { Chain } from '../../service/chain/chain';
import { openFeed } from '../../service/outbox/feeds';
import { nameFeed } from '../../service/watcher/follow-registry';
import { chainOf } from '../helpers/chain/fake-nodes';
import { describeOnEngines } from '../helpers/database/engines';
import { hashOf, record, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';

const GENESIS = 3;
const CONTRACTS = { registry: '0x', titleEscrowFactory: '0x', titleEscrowImplementation: '0x' };

/** A node of a branch, with the blocks of a range. */
function nodeOf(branch: string, oldest: number, head: number): Chain {
  const send = async (method: string, [block]: readonly unknown[]): Promise<unknown> => {
    if (method === 'eth_blockNumber') return toQuantity(head);
    const number = block === 'latest' ? head : Number(block);
    if (number < oldest || number > head) return null;
    const hash = hashOf(number, branch);
    const parentHash = hashOf(number - 1, branch);
    return { number: toQuantity(number), hash, parentHash, timestamp: '0x1', logsBloom: '0x' };
  };
  return chainOf(send);
}

describeOnEngines('the feed of a registry', (on) => {
  /** Its name by a node, which has block 0 unless it is pruned. */
  async function named(chainId: number, branch: string, oldest: number, head: number): Promise<string> {
    const client = nodeOf(branch, oldest, head);
    const number = oldest === 0 ? 0 : GENESIS;
    const origin = oldest > GENESIS ? undefined : { number, hash: hashOf(number, branch) };
    const identity = { ...SAMPLE_REGISTRY, chainId };
    return nameFeed(
      { client, startBlock: 6, identity, database: on.database },
      { contracts: CONTRACTS, origin, genesisBlock: GENESIS },
    );
  }

  /** The name that a node gave which has pruned the registry's first block. Block 10 was read. */
  async function begun(chainId: number): Promise<string> {
    const feed = await named(chainId, 'a', 5, 11);
    const open = await openFeed(on.database.db, feed, 10, 1);
    await record(on.database, open, 10, [], 1);
    return feed;
  }

  for (const chainId of [31337, 80002])
    it(`of chain ${chainId} goes on with a node that has block 0`, async () => {
      const feed = await begun(chainId);
      expect(await named(chainId, 'a', 0, 12)).to.equal(feed);
    });

  it('of a public chain goes on with a node that lacks the blocks that were read', async () => {
    const feed = await begun(80002);
    expect(await named(80002, 'a', 0, 5)).to.equal(feed);
  });

  it('of a local chain is a new one after the chain was restarted', async () => {
    const feed = await begun(31337);
    expect(await named(31337, 'b', 0, 12)).not.to.equal(feed);
  });
});
