import { expect } from 'chai';
import { TitleEscrow__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { mintTogether, newTokenId } from '../helpers/chain/direct-mint';
import { whileFollowingThroughProxy, type FollowedRegistry } from '../helpers/processes/followed-registry';
import { THROUGH, type Answerer, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { create } from '../helpers/processes/create-call';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { mineTogether, type Call } from '../helpers/chain/transactions';
import { DEPLOYER, localSetupOfSuite } from '../helpers/chain/local-setup';

const REGISTRY = TradeTrustTokenStandard__factory.createInterface();
const RECEIVED = TitleEscrow__factory.createInterface().getEvent('TokenReceived').topicHash;
const RECEIPT = 'eth_getTransactionReceipt';
/** Longer than several pauses after a failure of the node. */
const A_MINUTE_MS = 60_000;
const ZERO_HASH = `0x${'0'.repeat(64)}`;

interface Receipt {
  blockHash: string;
  transactionHash: string;
  logs: { logIndex: string; transactionHash: string; data: string }[];
}

/** Wrong or outdated receipts. */
const LIES: Record<string, (receipt: Receipt) => Receipt | null> = {
  'does not exist': () => null,
  'is of another block': (receipt) => ({ ...receipt, blockHash: ZERO_HASH }),
  'is of another transaction': (receipt) => ({
    ...receipt,
    transactionHash: ZERO_HASH,
    logs: receipt.logs.map((log) => ({ ...log, transactionHash: ZERO_HASH })),
  }),
  'has no logs': (receipt) => ({ ...receipt, logs: [] }),
  'has some of the logs': (receipt) => ({ ...receipt, logs: receipt.logs.slice(0, 2) }),
  'has a log twice': ({ logs, ...receipt }) => ({ ...receipt, logs: [...logs, ...logs.slice(0, 1)] }),
  'has logs that say something else': (receipt) => ({
    ...receipt,
    logs: receipt.logs.map((log) => ({ ...log, data: ZERO_HASH })),
  }),
};

describe('the logs of a transaction, in its receipt', () => {
  const local = localSetupOfSuite();

  const throughProxy = (
    act: (proxy: RpcProxy, followed: FollowedRegistry) => Promise<void>,
    settings: Record<string, string> = {},
  ): Promise<void> => whileFollowingThroughProxy(local, { settings }, act);

  it('are read from the receipts of transactions with events alone, several in one request', () =>
    throughProxy(async (proxy, followed) => {
      await followed.caughtUp();
      const before = proxy.requests.length;
      const requestsBefore = proxy.sizes.length;
      const [first, second] = [await local.account(1), await local.account(2)];
      const mint = (): Call => {
        const data = REGISTRY.encodeFunctionData('mint', [first, first, newTokenId(), '0x']);
        return { from: DEPLOYER, to: local.registryAddress, data };
      };
      await mineTogether(local.client, [
        ...Array.from({ length: 4 }, mint),
        { from: second, to: first, data: '0x' },
        ...Array.from({ length: 4 }, mint),
      ]);
      await followed.allDeliveredOnce();
      const asked = proxy.requests.slice(before).filter(({ method }) => method === RECEIPT);
      const ofEvents = new Set(followed.accepted.map(({ data }) => data.transactionHash));
      expect(ofEvents.size).to.equal(8);
      expect(asked.map(({ params }) => params[0])).to.have.members([...ofEvents]);
      const batches = proxy.sizes.slice(requestsBefore).filter((calls) => calls > 1);
      expect(batches).to.have.members([6, 2]);
      expect(new Set(followed.accepted.map(({ data }) => data.logIndex))).to.deep.equal(
        new Set([1, 2, 3, 4, 5]),
      );
    }));

  it('are read again when the block contradicts the receipt', () =>
    throughProxy(async (proxy, followed) => {
      for (const [name, lie] of Object.entries(LIES)) {
        const liar = lyingOnce(lie);
        proxy.answer(liar.answerer);
        await mintTogether(local, await local.account(1), 3);
        await followed.allDeliveredOnce();
        expect(liar.hasLied(), name).to.equal(true);
      }
      expect(failuresOf(followed)).to.deep.equal([
        'BLOCK_CHANGED',
        'ANSWER_MALFORMED',
        'ANSWERS_DIFFER',
        'ANSWERS_DIFFER',
        'ANSWERS_DIFFER',
      ]);
    }));

  it('are found in the complete logs of the block when the node no longer has the receipts', () =>
    throughProxy(async (proxy, followed) => {
      let left = 1;
      proxy.answer(async (method, params, forward) => {
        if (method === RECEIPT) return { result: null };
        if (!asksForWholeBlock(method, params) || left-- <= 0) return 'none';
        const { result } = (await forward()) as { result: unknown[] };
        return { result: result.slice(1) };
      });
      await mintTogether(local, await local.account(1), 3);
      await followed.allDeliveredOnce();
      expect(left, 'an answer was short').to.be.lessThan(0);
      expect(failuresOf(followed)).to.deep.equal([]);
    }));

  it('name no transaction that a node without receipts invents in one answer to each question', () =>
    throughProxy(async (proxy, followed) => {
      const lied = new Set<string>();
      const invents = changingLogs((logs) =>
        logs.map((log) => ({ ...log, transactionHash: `0x${'ab'.repeat(32)}` })),
      );
      proxy.answer((method, params, forward) => {
        if (method === RECEIPT) return { result: null };
        const question = JSON.stringify(params);
        if (method !== 'eth_getLogs' || lied.has(question)) return 'none';
        lied.add(question);
        return invents(method, params, forward);
      });
      await mintTogether(local, await local.account(1), 1);
      await followed.allDeliveredOnce();
      expect(lied.size).to.be.greaterThan(2);
    }));

  it('stop the feed, by name, while every answer leaves out some or all of a mint, and nothing is lost', () =>
    throughProxy(async (proxy, followed) => {
      // The header of the block shows that it has logs of the registry.
      for (const isLeftOut of [({ topics: [topic] }: Log) => topic === RECEIVED, () => true]) {
        const { length } = followed.attempted;
        proxy.answer(changingLogs((logs) => logs.filter((log) => !isLeftOut(log))));
        await mintTogether(local, await local.account(1), 2);
        const { code, reason } = await followed.until('GET /health names it', async () => {
          const [feed] = (await healthOf(followed.service.url)).feeds;
          return feed?.code === undefined ? undefined : feed;
        });
        expect(code).to.equal('ANSWERS_DIFFER');
        expect(reason).to.match(/receipt of transaction/);
        await followed.time!.pass(A_MINUTE_MS);
        expect(followed.attempted).to.have.length(length);
        proxy.answer(THROUGH);
        await followed.allDeliveredOnce();
      }
    }));

  it('bring the events of a mint of our own, though every answer and the header leave them out', () =>
    throughProxy(
      async (proxy, followed) => {
        const leavesOut = changingLogs(() => []);
        proxy.answer(async (method, params, forward) => {
          if (!method.startsWith('eth_getBlockBy')) return leavesOut(method, params, forward);
          const { result } = (await forward()) as { result: object | null };
          return { result: result && { ...result, logsBloom: '0x' } };
        });
        const owner = await local.account(1);
        const { status } = await create(followed.service.url, { ...minimal, owner, holder: owner });
        expect(status).to.equal(200);
        await followed.until('its events arrive', () => followed.accepted.length === 5);
        await followed.allDeliveredOnce();
      },
      { WALLET_PRIVATE_KEY: local.settings.WALLET_PRIVATE_KEY ?? '' },
    ));

  it('are counted once when every answer has each log twice', () =>
    throughProxy(async (proxy, followed) => {
      proxy.answer(changingLogs((logs) => [...logs, ...logs]));
      await mintTogether(local, await local.account(1), 2);
      await followed.allDeliveredOnce();
    }));
});

interface Log {
  topics: string[];
}

/** Changes the logs in all answers to `eth_getLogs`. It refuses unknown hashes, as the node does. */
function changingLogs(change: (logs: Log[]) => Log[]): Answerer {
  return async (method, _params, forward) => {
    if (method !== 'eth_getLogs') return 'none';
    const answer = await forward();
    return 'error' in answer ? answer : { result: change(answer.result as Log[]) };
  };
}

/** Changes the first receipt that the node gives. */
function lyingOnce(lie: (receipt: Receipt) => Receipt | null): {
  answerer: Answerer;
  hasLied(this: void): boolean;
} {
  let hasLied = false;
  return {
    hasLied: () => hasLied,
    async answerer(method, _params, forward) {
      if (method !== RECEIPT || hasLied) return 'none';
      hasLied = true;
      const { result } = (await forward()) as { result: Receipt };
      return { result: lie(result) };
    },
  };
}

function asksForWholeBlock(method: string, [filter]: readonly unknown[]): boolean {
  return method === 'eth_getLogs' && !('topics' in (filter as object));
}

/** Codes of the errors that made the service read again. */
function failuresOf({ service }: FollowedRegistry): unknown[] {
  return service.log.flatMap(({ msg, error }) =>
    msg?.startsWith('the chain cannot be read') ? (error as { code: string }).code : [],
  );
}
