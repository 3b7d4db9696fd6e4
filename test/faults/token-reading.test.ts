import { expect } from 'chai';
import { NETWORKS, type Network } from '../../service/chain/networks';
import { createRpcClient, type RpcClient } from '../../service/chain/rpc-client';
import { possibleOperations } from '../../service/token/possible-operations';
import { readTokenHistory, type TokenHistory } from '../../service/token/read-token-history';
import { createRegistryFinder, type RegistryOnChain } from '../../service/registry/registry-contracts';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { mintDirectly, newTokenId, transferHolder, type MintedToken } from '../helpers/chain/direct-mint';
import { askTdoc } from '../helpers/processes/command-answer';
import { tdoc } from '../helpers/processes/command-output';
import { startRpcProxy, THROUGH, type Fault, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

/** How a provider refuses a range. */
type Refusal = Fault | { error: { code: number; message: string } } | { status: number; body: string };

const LOCAL = NETWORKS.find(({ chainId }) => chainId === 31337) as Network;

describe('reading the endorsement chain of a token', () => {
  let local: LocalSetup;
  let client: RpcClient;
  let bulkClient: RpcClient;
  let proxy: RpcProxy;
  let registry: RegistryOnChain;
  let tokenId: bigint;
  const accounts: string[] = [];

  before(async () => {
    local = await createLocalSetup();
    for (const index of [0, 1, 2, 3]) accounts.push(await local.account(index));
    const token = await mintDirectly(local, accounts[1]!);
    ({ tokenId } = token);
    await transferHolder(local, token, { from: accounts[1]!, to: accounts[2]! });
    await transferHolder(local, token, { from: accounts[2]!, to: accounts[3]! });
    proxy = await startRpcProxy(local.node.url);
    client = createRpcClient(proxy.url, LOCAL);
    bulkClient = createRpcClient(proxy.url, LOCAL, 'bulk');
    registry = await createRegistryFinder(client, local.registryAddress)();
  });

  after(async () => {
    client?.destroy();
    bulkClient?.destroy();
    await proxy?.close();
    await local?.stop();
  });

  afterEach(() => proxy.answer(THROUGH));

  const read = (id = tokenId, options = {}): Promise<TokenHistory> =>
    readTokenHistory(client, registry, id, { bulkClient, ...options });

  const operationsOf = ({ endorsements }: TokenHistory): string[] =>
    endorsements.map(({ operation }) => operation);

  describe('from a provider', () => {
    const BEHIND = 3_000;

    before(() => local.client.send('hardhat_mine', [`0x${BEHIND.toString(16)}`]));

    it('takes two queries if the provider has no limits, however many blocks there are', async () => {
      const since = proxy.calls.length;
      await read();
      expect(proxy.counts(since).eth_getLogs).to.equal(2);
    });

    for (const [refusal, answerOf] of Object.entries({
      'with an error': () => ({ error: { code: -32005, message: 'block range is too wide' } }),
      'with an error in words of its own': () => ({ error: { code: -32000, message: 'sorry, pay more' } }),
      'with status 413': () => ({ status: 413, body: 'too much' }),
    })) {
      it(`asks for less, backwards as far as the mint, when ranges are refused ${refusal}`, async () => {
        const expected = await read();
        const young = await mintDirectly(local, accounts[1]!);
        refuseBeyond(500, answerOf);
        const since = proxy.calls.length;
        const progress: number[] = [];
        const history = await read(tokenId, { onProgress: (block: number) => progress.push(block) });
        expect({ ...history, state: undefined }).to.deep.equal({ ...expected, state: undefined });
        expect(proxy.counts(since).eth_getLogs).to.be.within(2 * 6, 2 * 20);
        expect(progress).to.deep.equal([...progress].sort((a, b) => b - a));

        const before = proxy.calls.length;
        expect((await read(young.tokenId)).endorsements).to.have.length(1);
        // 3,000 blocks are halved three times; then the first answer has the mint.
        expect(proxy.counts(before).eth_getLogs).to.be.at.most(2 * 4);
      });
    }

    it('asks for less when the provider cuts the connection at a wide range', async () => {
      const expected = await read();
      refuseBeyond(1_000, () => 'drop answer');
      expect((await read()).endorsements).to.deep.equal(expected.endorsements);
    });

    it('fails when even a single block is refused', async () => {
      refuseBeyond(0, () => ({ error: { code: -32005, message: 'block range is too wide' } }));
      await read().then(
        () => expect.fail('it was read'),
        (error: Error) => expect(error.message).to.contain('block range is too wide'),
      );
    });

    it('repeats a query that is refused once with status 429', async () => {
      const expected = await read();
      let isRefused = false;
      proxy.answer((method) => {
        if (method !== 'eth_getLogs' || isRefused) return 'none';
        isRefused = true;
        return { status: 429, body: 'too many requests' };
      });
      const since = proxy.calls.length;
      expect((await read()).endorsements).to.deep.equal(expected.endorsements);
      // Two queries, and the repeated one.
      expect(proxy.counts(since).eth_getLogs).to.equal(3);
    });

    it('takes less than 25 seconds when wide ranges are refused with status 429', async () => {
      refuseBeyond(2_000, () => ({ status: 429, body: 'too many requests' }));
      const since = Date.now();
      const settings = { ...local.settings, RPC_URL: proxy.url };
      expect(await tdoc(['token', tokenId.toString()], settings)).to.contain('issued: ');
      expect(Date.now() - since).to.be.lessThan(25_000);
    });

    function refuseBeyond(most: number, answerOf: () => Refusal): void {
      proxy.answer((method, params) => {
        if (method !== 'eth_getLogs') return 'none';
        const { fromBlock, toBlock } = params[0] as { fromBlock: string; toBlock: string };
        return Number(toBlock) - Number(fromBlock) + 1 > most ? answerOf() : 'none';
      });
    }
  });

  it('starts again when the chain is reorganised between two queries', async () => {
    const token = await mintDirectly(local, accounts[1]!);
    const snapshot: unknown = await local.client.send('evm_snapshot', []);
    await transferHolder(local, token, { from: accounts[1]!, to: accounts[2]! });
    let isReorganised = false;
    proxy.answer(async (method) => {
      if (method === 'eth_getLogs' && !isReorganised) {
        isReorganised = true;
        await reorganise(snapshot, token);
      }
      return 'none' as const;
    });
    const { endorsements, state } = await read(token.tokenId);
    expect(isReorganised).to.equal(true);
    expect(state).to.include({ holder: accounts[3] });
    expect(endorsements.at(-1)?.after.holder).to.equal(accounts[3]);
  });

  async function reorganise(snapshot: unknown, token: MintedToken): Promise<void> {
    await local.client.send('evm_revert', [snapshot]);
    await transferHolder(local, token, { from: accounts[1]!, to: accounts[3]! });
  }

  it('starts again when the block without the token was replaced by one with it', async () => {
    const unminted = newTokenId();
    const snapshot: unknown = await local.client.send('evm_snapshot', []);
    await mintDirectly(local, accounts[1]!);
    let isReorganised = false;
    proxy.answer(async (method, _params, forward) => {
      if (method !== 'eth_call' || isReorganised) return 'none';
      isReorganised = true;
      const told = await forward();
      await local.client.send('evm_revert', [snapshot]);
      await mintDirectly(local, accounts[1]!, { tokenId: unminted });
      return told;
    });
    const { endorsements } = await read(unminted);
    expect(endorsements.map(({ operation }) => operation)).to.deep.equal(['mint']);
  });

  it('gives up when the chain has changed at every attempt', async () => {
    const token = await mintDirectly(local, accounts[1]!);
    proxy.answer(async (method, _params, forward) => {
      const told = await forward();
      if (method !== 'eth_getBlockByNumber' || !('result' in told)) return told;
      const hash = `0x${newTokenId().toString(16).padStart(64, '0')}`;
      return { result: { ...(told.result as object), hash } };
    });
    await read(token.tokenId).then(
      () => expect.fail('it was read'),
      (error: { code?: string }) => expect(error.code).to.equal('BLOCK_CHANGED'),
    );
  });

  it('starts again when a node of the provider lacks the block', async () => {
    let isBehind = true;
    proxy.answer((method) => {
      if (!isBehind || method !== 'eth_call') return 'none';
      isBehind = false;
      return { error: { code: -32000, message: 'header not found' } };
    });
    expect(operationsOf(await read())).to.deep.equal(['mint', 'transferHolder', 'transferHolder']);
    expect(isBehind).to.equal(false);
  });

  it('finds the senders of transactions that the node no longer knows by hash', async () => {
    const expected = await read();
    proxy.answer((method) => (method === 'eth_getTransactionByHash' ? { result: null } : 'none'));
    expect((await read()).endorsements).to.deep.equal(expected.endorsements);
    expect(expected.endorsements.map(({ sender }) => sender)).to.deep.equal([
      accounts[0],
      accounts[1],
      accounts[2],
    ]);
  });

  it('offers no mint while the registry is paused', async () => {
    const snapshot: unknown = await local.client.send('evm_snapshot', []);
    const contract = TradeTrustTokenStandard__factory.connect(
      local.registryAddress,
      await local.client.getSigner(0),
    );
    await (await contract.pause('0x')).wait();
    const { state } = await read(newTokenId());
    await local.client.send('evm_revert', [snapshot]);
    expect(state).to.include({ state: 'not minted', isPaused: true });
    expect(possibleOperations(state)).to.deep.equal([{ operation: 'unpause', by: 'admin' }]);
  });

  it('fails with the message of the node, its control characters escaped', async () => {
    proxy.answer((method) =>
      method === 'eth_getLogs' ? { error: { code: -32000, message: 'no \u202e logs' } } : 'none',
    );
    const settings = { ...local.settings, RPC_URL: proxy.url };
    const { code, stderr } = await askTdoc(['token', tokenId.toString()], settings);
    expect(code).to.equal(2);
    expect(stderr).to.contain('NODE_FAILED').and.contain('no \\u202e logs');
  });
});
