import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { networkOfChain } from '../../service/chain/networks';
import { existingBlock } from '../../service/chain/read-chain';
import { connectNode, type Chain } from '../../service/chain/chain';
import { connectSeveral } from '../../service/chain/connect-nodes';
import { eventIdOf } from '../../service/events/cloud-event';
import { createRegistryFinder, type RegistryContracts } from '../../service/registry/registry-contracts';
import type { RegistryEvent } from '../../service/registry/registry-event';
import { KnownEscrows } from '../../service/watcher/known-escrows';
import { readByReceipts, readRange } from '../../service/watcher/read-range';
import { BatchAccount__factory, TitleEscrow__factory } from '../../typechain-types';
import { createNode } from '../../service/chain/node';
import {
  EVENTS_OF_A_MINT,
  historyOf,
  mintDirectly,
  mintTogether,
  newTokenId,
  type MintedToken,
} from '../helpers/chain/direct-mint';
import { localSetupOfSuite } from '../helpers/chain/local-setup';
import { asking, NUMBERINGS, ofRemovedBlock, renumber, type Numbering } from '../helpers/chain/unusual-logs';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { randomLifecycles } from '../helpers/chain/random-lifecycles';
import { startRpcProxy, THROUGH, type Answerer } from '../helpers/chain/rpc-proxy';
import { mineTogether, sendTransaction, type Call } from '../helpers/chain/transactions';
import { whileFollowing, whileFollowingThroughProxy } from '../helpers/processes/followed-registry';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { seededRandom } from '../helpers/seeded-random';

const NETWORK = networkOfChain(31337);
const ESCROW = TitleEscrow__factory.createInterface();
/** Longer than several pauses after a failure of the node. */
const A_MINUTE_MS = 60_000;
const SEED = 53;
const OPERATIONS = 30;

describe('the logs of a node that counts them in its own way', () => {
  const local = localSetupOfSuite();
  let direct: Chain;
  let contracts: RegistryContracts;
  let first = 0;
  let last = 0;
  /** Two tokens of an account with code, which nominates the same account several times in a transaction. */
  let batch: { address: string; tokens: MintedToken[] };

  before(async () => {
    direct = connectNode(local.node.url, {}, systemTime, 'bulk');
    ({ contracts } = await createRegistryFinder(direct, local.registryAddress)());
    first = (await local.client.getBlockNumber()) + 1;
    const deployed = await new BatchAccount__factory(await local.client.getSigner(0)).deploy();
    const address = await (await deployed.waitForDeployment()).getAddress();
    batch = { address, tokens: [await mintDirectly(local, address), await mintDirectly(local, address)] };
    await nominateAgainAndAgain();
    const tokenIds = Array.from({ length: 20 }, newTokenId);
    await (await randomLifecycles(local, seededRandom(SEED), tokenIds)).run(OPERATIONS);
    last = await local.client.getBlockNumber();
  });

  after(() => direct.close());

  /** Two transactions of one block. Each has the same two logs three times. */
  async function nominateAgainAndAgain(): Promise<void> {
    const [from, someone] = [await local.account(1), await local.account(2)];
    const nobody = `0x${'0'.repeat(40)}`;
    const nominate = (to: string, nominee: string): Omit<Call, 'from'> => ({
      to,
      data: ESCROW.encodeFunctionData('nominate', [nominee, '0x']),
    });
    const calls = batch.tokens.map(({ escrow }) => {
      const each = [1, 2, 3].flatMap(() => [nominate(escrow, someone), nominate(escrow, nobody)]);
      const data = BatchAccount__factory.createInterface().encodeFunctionData('execute', [each]);
      return { from, to: batch.address, data };
    });
    await mineTogether(local.client, calls);
  }

  const counting =
    (logs: Numbering, receipts: Numbering): Answerer =>
    async (method, _params, forward) =>
      renumber(method, await forward(), { logs, receipts }, asking(local.node.url));

  /** The events of all blocks, read at once, block by block, and from receipts alone. */
  async function readEachWay(client: Chain): Promise<RegistryEvent[][]> {
    const at = (number: number) => existingBlock(client, number);
    const reading = { client, escrows: new KnownEscrows({ contracts, genesisBlock: first }, 0) };
    const whole = await readRange(reading, await at(first), await at(last));
    const single: RegistryEvent[] = [];
    const byReceipts: RegistryEvent[] = [];
    for (const { number } of whole.blocks) {
      const block = await at(number);
      single.push(...(await readRange(reading, block, block)).events);
      byReceipts.push(...(await readByReceipts(reading, block)).events);
    }
    return [whole.events, single, byReceipts];
  }

  it('give the same events in the same order, and a block has no index twice', async () => {
    const [expected = [], ...others] = await readEachWay(direct);
    expect(expected.length).to.be.greaterThan(OPERATIONS);
    for (const other of others) expect(other).to.deep.equal(expected);
    for (const logs of NUMBERINGS)
      for (const receipts of ['block', 'transaction'] as const) {
        if (logs === 'none') continue;
        await using proxy = await startRpcProxy(local.node.url, counting(logs, receipts));
        const client = connectNode(proxy.url, {}, systemTime, 'bulk');
        for (const events of await readEachWay(client)) {
          // The index of a block's only transaction cannot be checked, and nothing depends on it.
          const ordered = logs === 'answer' ? events.map(withoutIndex) : events;
          const wanted = logs === 'answer' ? expected.map(withoutIndex) : expected;
          expect(ordered, `${logs}, ${receipts}`).to.deep.equal(wanted);
          const places = events.map(({ blockNumber, blockLogIndex }) => `${blockNumber}/${blockLogIndex}`);
          expect(new Set(places).size).to.equal(events.length);
        }
        client.close();
      }
  });

  it('are those of a node that counts otherwise: two such nodes agree', async () => {
    const [expected] = await readEachWay(direct);
    await using proxy = await startRpcProxy(local.node.url, counting('transaction', 'transaction'));
    await using other = await startRpcProxy(local.node.url, counting('block', 'transaction'));
    for (const urls of [
      [proxy.url, local.node.url],
      [proxy.url, other.url],
    ]) {
      const nodes = urls.map((url) => createNode(url, {}, systemTime, 'bulk'));
      const { client } = connectSeveral(nodes, NETWORK, systemTime);
      for (const events of await readEachWay(client)) expect(events).to.deep.equal(expected);
      client.close();
    }
  });

  it('give every event of several mints in a block once, with the ids of other nodes', () =>
    whileFollowingThroughProxy(
      local,
      { answerer: counting('transaction', 'transaction') },
      async (_proxy, followed) => {
        await mintTogether(local, await local.account(1), 3);
        await followed.allDeliveredOnce();
        expect(followed.accepted).to.have.length(3 * EVENTS_OF_A_MINT);
        for (const { id, data } of followed.accepted) expect(id).to.equal(eventIdOf(31337, data));
        const nominated = followed.accepted.length;
        await nominateAgainAndAgain();
        await followed.allDeliveredOnce();
        expect(followed.accepted).to.have.length(nominated + 12);
      },
    ));

  it('stop the feed, by name, while the same log of a transaction has the same index each time', () =>
    whileFollowingThroughProxy(local, { answerer: counting('none', 'none') }, async (proxy, followed) => {
      await mintTogether(local, await local.account(1), 2);
      await followed.allDeliveredOnce();
      const { length } = followed.attempted;
      await nominateAgainAndAgain();
      const code = await followed.until('GET /health names it', async () => {
        return (await healthOf(followed.service.url)).feeds[0]?.code;
      });
      expect(code).to.equal('ANSWERS_DIFFER');
      await followed.time!.pass(A_MINUTE_MS);
      expect(followed.attempted).to.have.length(length);
      proxy.answer(THROUGH);
      await followed.allDeliveredOnce();
    }));

  it('give the history of a token whose operations are in one block in their order', async () => {
    const [owner, next, third] = [await local.account(1), await local.account(2), await local.account(3)];
    const { tokenId, escrow } = await mintDirectly(local, owner);
    const transfer = (from: string, to: string): Call => {
      return { from, to: escrow, data: ESCROW.encodeFunctionData('transferHolder', [to, '0x']) };
    };
    await mineTogether(local.client, [transfer(owner, next), transfer(next, third), transfer(third, owner)]);
    const expected = (await historyOf(local, tokenId)).endorsements;
    await using proxy = await startRpcProxy(local.node.url, counting('transaction', 'transaction'));
    const node = { ...local.node, url: proxy.url };
    const { endorsements, isWhole } = await historyOf(
      { registryAddress: local.registryAddress, node },
      tokenId,
    );
    expect(endorsements).to.deep.equal(expected).and.have.length(4);
    expect(isWhole).to.equal(true);
  });
});

const withoutIndex = (event: RegistryEvent): RegistryEvent => ({ ...event, blockLogIndex: 0 });

describe('a log of a block that a reorganisation removed, in the answer for a range', () => {
  const local = localSetupOfSuite();

  /** Gives the first log a second time, as that of a block that is gone. */
  const withRemoved =
    (isMarked: boolean, isAgain: boolean): Answerer =>
    async (method, [filter], forward) => {
      const isRange = method === 'eth_getLogs' && 'fromBlock' in (filter as object);
      if (method !== 'eth_getLogs' || (!isRange && !isMarked)) return 'none';
      const { result } = (await forward()) as { result: object[] };
      const gone = result.slice(0, 1).map((log) => ofRemovedBlock(log, isMarked));
      const transactionHash = `0x${'ad'.repeat(32)}`;
      return { result: [...gone.map((log) => (isAgain ? log : { ...log, transactionHash })), ...result] };
    };

  for (const [what, isMarked, isAgain] of [
    ['does not count where the node says so', true, true],
    ['makes the service read the blocks one by one where the node does not say so', false, true],
    ['makes it do so where its transaction is gone too', false, false],
  ] as const)
    it(what, async () => {
      const fromBlock = (await local.client.getBlockNumber()) + 1;
      const token = await mintDirectly(local, await local.account(1));
      await mineBlocks(local, 20);
      const data = ESCROW.encodeFunctionData('transferHolder', [await local.account(2), '0x']);
      await sendTransaction(local.client, { from: await local.account(1), to: token.escrow, data });
      await mineBlocks(local, 20);
      await using proxy = await startRpcProxy(local.node.url, withRemoved(isMarked, isAgain));
      await whileFollowing(local, { fromBlock, settings: { RPC_URL: proxy.url } }, async (followed) => {
        await followed.allDeliveredOnce();
        expect(followed.accepted).to.have.length(EVENTS_OF_A_MINT + 1);
      });
    });
});
