import { expect } from 'chai';
import { EVENTS_OF_A_MINT, mintDirectly, mintTogether } from '../helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import {
  startRpcProxy,
  THROUGH,
  type Answerer,
  type HttpAnswer,
  type RpcAnswer,
} from '../helpers/chain/rpc-proxy';
import { tellOfRequests, VirtualTime } from '../helpers/virtual-time';
import { whileFollowing, whileFollowingThroughProxy } from '../helpers/processes/followed-registry';
import { receiptLogsOf } from '../../service/chain/read-receipts';
import { connectNode } from '../../service/chain/chain';
import { healthOf } from '../helpers/processes/health-and-metrics';

const OF_BLOCK = 'eth_getBlockReceipts';
const OF_TRANSACTION = 'eth_getTransactionReceipt';
/** So many that the receipts of their block are read together. */
const MINTS = 8;
const BLOCKS = 4;
/** Several tries to read again. */
const LONG_MS = 60_000;
/** A node that does not give receipts is asked so often. */
const QUESTIONS = 3;

interface Receipt {
  blockHash: string;
  transactionHash: string;
  logs: { data: string; topics: string[] }[];
}

const never = (): Promise<never> => new Promise(() => undefined);

/** How nodes and providers say that they do not give the receipts of a block. */
const REFUSALS: Record<string, RpcAnswer | HttpAnswer> = {
  'does not know the method': { error: { code: -32601, message: 'the method does not exist' } },
  'refuses it in other words': { error: { code: -32001, message: 'rpc method is not whitelisted' } },
  'takes numbers only': { error: { code: -32602, message: 'Invalid params' } },
  'answers 403': { status: 403, body: 'upgrade your plan' },
  'answers 405 with a page': { status: 405, body: '<html>not here</html>' },
  'has none': { result: null },
  'gives an object': { result: { receipts: [] } },
  'gives receipts without logs': { result: [{ transactionHash: '0x00' }] },
};

/** Wrong receipts of a block, which contradict themselves. */
const LIES: Record<string, (receipts: Receipt[]) => unknown> = {
  'lack a transaction': (receipts) => receipts.slice(1),
  'lack all transactions': () => [],
  'lack the logs of one': ([first, ...others]) => [{ ...first, logs: [] }, ...others],
  'lack a log': ([first, ...others]) => [{ ...first, logs: first?.logs.slice(1) }, ...others],
  'are of another block': (receipts) => receipts.map((one) => ({ ...one, blockHash: one.transactionHash })),
};

/** Receipts that only other answers contradict. */
const withAnotherLog = ([first, ...others]: Receipt[]): unknown => [
  { ...first, logs: first?.logs.map((log) => ({ ...log, data: '0x' })) },
  ...others,
];

const lying =
  (lie: (receipts: Receipt[]) => unknown): Answerer =>
  async (method, _params, forward) => {
    if (method !== OF_BLOCK) return 'none';
    const answer = await forward();
    return 'result' in answer ? { result: lie(answer.result as Receipt[]) } : answer;
  };

/** Lies about the first block only. */
const lyingOnce = (lie: (receipts: Receipt[]) => unknown): Answerer => {
  const answerer = lying(lie);
  let hasLied = false;
  return (method, params, forward) => {
    if (method !== OF_BLOCK || hasLied) return 'none';
    hasLied = true;
    return answerer(method, params, forward);
  };
};

describe('the receipts of a block with many mints', () => {
  let local: LocalSetup;
  let owner: string;

  before(async () => {
    local = await createLocalSetup({ program: 'anvil' });
    owner = await local.account(1);
  });

  /** Mints blocks before the service follows, which reads them at once. */
  const mintBlocks = async (blocks: number): Promise<number> => {
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    for (let block = 0; block < blocks; block++) await mintTogether(local, owner, MINTS);
    return fromBlock;
  };

  it('are one call for each block, and not asked for the few mints of a block', async () => {
    const fromBlock = await mintBlocks(2);
    await whileFollowingThroughProxy(local, { fromBlock }, async (proxy, followed) => {
      await followed.allDeliveredOnce();
      expect(followed.accepted).to.have.length(2 * MINTS * EVENTS_OF_A_MINT);
      expect(proxy.counts()).to.include({ [OF_BLOCK]: 2 });
      expect(proxy.counts()).not.to.have.property(OF_TRANSACTION);
      await mintDirectly(local, owner);
      await followed.allDeliveredOnce();
      expect(proxy.counts()).to.include({ [OF_BLOCK]: 2, [OF_TRANSACTION]: 1 });
    });
  });

  it('are read one by one, and soon not asked for, if the node does not know the method', () =>
    whileFollowingThroughProxy(local, {}, async (proxy, followed) => {
      proxy.answer(
        (method) => (method === OF_BLOCK ? REFUSALS['does not know the method'] : 'none') ?? 'none',
      );
      for (let block = 0; block < BLOCKS; block++) {
        await mintTogether(local, owner, MINTS);
        await followed.caughtUp();
      }
      await followed.allDeliveredOnce();
      expect(proxy.counts()).to.include({ [OF_TRANSACTION]: BLOCKS * MINTS });
      expect(followed.logged('events recorded')).to.have.length(BLOCKS);
    }));

  it('lead to no wrong, missing or repeated event if they have another log', async () => {
    const following = { fromBlock: await mintBlocks(1), answerer: lyingOnce(withAnotherLog) };
    await whileFollowingThroughProxy(local, following, async (proxy, followed) => {
      await followed.allDeliveredOnce();
      expect(proxy.counts()[OF_BLOCK]).to.be.greaterThan(1);
    });
  });

  describe('read from a node', () => {
    let fromBlock: number;
    let ofTransactions: unknown[];

    before(async () => {
      fromBlock = await mintBlocks(BLOCKS);
      ({ logs: ofTransactions } = await logsThrough((method) =>
        method === OF_BLOCK ? { result: null } : 'none',
      ));
    });

    /** The logs of the transactions of each block, and how many blocks' receipts the node was asked for. */
    async function logsThrough(answerer: Answerer, socketUrl?: string) {
      const proxy = await startRpcProxy(local.node.url, answerer);
      const time = new VirtualTime();
      const client = connectNode(socketUrl ?? proxy.url, {}, time, 'bulk');
      tellOfRequests(client, time);
      const logs: unknown[] = [];
      try {
        for (let number = fromBlock; number < fromBlock + BLOCKS; number++) {
          const { hash = '', transactions = [] } = (await local.client.getBlock(number)) ?? {};
          const blockHash = hash ?? '';
          const wanted = transactions.map((transactionHash) => ({ transactionHash, blockHash }));
          logs.push([...(await time.settled(receiptLogsOf(client, wanted)))].sort());
        }
        const asked = proxy.requests.flatMap(({ method, params: [hash] }) =>
          method === OF_BLOCK ? [hash] : [],
        );
        return { logs, asked: new Set(asked).size };
      } finally {
        client.close();
        await proxy.close();
      }
    }

    it('are those of the transactions, also over WebSocket', async () => {
      for (const socketUrl of [undefined, local.node.url.replace('http', 'ws')])
        expect((await logsThrough(THROUGH, socketUrl)).logs).to.deep.equal(ofTransactions);
    });

    for (const [how, refusal] of Object.entries(REFUSALS))
      it(`are those of the transactions, and three blocks' are asked for, if it ${how}`, async () => {
        const { logs, asked } = await logsThrough((method) => (method === OF_BLOCK ? refusal : 'none'));
        expect(logs).to.deep.equal(ofTransactions);
        expect(asked).to.equal(QUESTIONS);
      });

    for (const [what, lie] of Object.entries(LIES))
      it(`are those of the transactions if they ${what}`, async () => {
        const { logs } = await logsThrough(lying(lie));
        expect(logs).to.deep.equal(ofTransactions);
      });
  });

  it('show that every answer leaves out all logs of a transaction', () =>
    whileFollowingThroughProxy(local, {}, async (proxy, followed) => {
      proxy.answer(async (method, _params, forward) => {
        if (method !== 'eth_getLogs') return 'none';
        const { result } = (await forward()) as { result: { transactionHash: string }[] };
        const [left] = result.map(({ transactionHash }) => transactionHash).sort();
        return { result: result.filter(({ transactionHash }) => transactionHash !== left) };
      });
      await mintTogether(local, owner, MINTS);
      const feed = async () => (await healthOf(followed.service.url)).feeds[0];
      await followed.until('it is named', async () => (await feed())?.code === 'ANSWERS_DIFFER');
      await followed.time?.pass(LONG_MS);
      expect(followed.attempted).to.deep.equal([]);
      proxy.answer(THROUGH);
      await followed.allDeliveredOnce();
    }));

  describe('of several nodes', () => {
    const refusing = (how: string) => (method: string) =>
      method === OF_BLOCK ? (REFUSALS[how] ?? 'none') : 'none';
    const TOGETHER = { [OF_TRANSACTION]: undefined };
    const ONCE = { ...TOGETHER, [OF_BLOCK]: 1 };
    const ONE_BY_ONE = { [OF_TRANSACTION]: MINTS };
    const cases: [what: string, nodes: Answerer[], counts: object[], isDiffering?: boolean[]][] = [
      ['count when two nodes give them', [THROUGH, THROUGH], [ONCE, ONCE]],
      [
        'are not believed of one that differs from two others, which is named',
        [lying(LIES['lack a log'] ?? never), THROUGH, THROUGH],
        [TOGETHER, TOGETHER, TOGETHER],
        [true, false, false],
      ],
      [
        'are not believed of one of two nodes: the receipts of the transactions are compared',
        [lying(withAnotherLog), THROUGH],
        [ONE_BY_ONE, ONE_BY_ONE],
      ],
      [
        'are read one by one if one of two answers 403',
        [THROUGH, refusing('answers 403')],
        [ONE_BY_ONE, ONE_BY_ONE],
      ],
      [
        'are read one by one if one of two does not know the method',
        [THROUGH, refusing('does not know the method')],
        [ONE_BY_ONE, ONE_BY_ONE],
      ],
      [
        'are those of two nodes if the third does not know the method',
        [refusing('does not know the method'), THROUGH, THROUGH],
        [{}, ONCE, ONCE],
      ],
    ];
    for (const [what, answerers, counts, isDiffering] of cases)
      it(`${what}; no node is said to be away`, async () => {
        const fromBlock = await mintBlocks(1);
        const proxies = await Promise.all(answerers.map((one) => startRpcProxy(local.node.url, one)));
        const settings = { RPC_URL: proxies.map(({ url }) => url).join(' ') };
        await whileFollowing(local, { fromBlock, settings }, async (followed) => {
          await followed.allDeliveredOnce();
          for (const [index, proxy] of proxies.entries())
            expect({ ...TOGETHER, ...proxy.counts() }).to.include(counts[index] ?? {});
          const { nodes } = (await healthOf(followed.service.url)).feeds[0] as unknown as {
            nodes: { state: string; differences: number }[];
          };
          expect(nodes.map(({ state }) => state)).to.deep.equal(proxies.map(() => 'up'));
          // One that went away is soon back.
          expect(followed.logged('a node is away: it is left out')).to.deep.equal([]);
          if (isDiffering) expect(nodes.map(({ differences }) => differences > 0)).to.deep.equal(isDiffering);
        });
      });
  });
});
