import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { connectNode, type Chain } from '../../service/chain/chain';
import { encryptRemark } from '../../service/issuance/remarks';
import { endorsementsOf } from '../../service/token/endorsement-chain';
import { readTokenHistory, readTokenLogs, type TokenHistory } from '../../service/token/read-token-history';
import { readTokenState } from '../../service/registry/read-token-state';
import { createRegistryFinder, type RegistryOnChain } from '../../service/registry/registry-contracts';
import { EventForger__factory } from '../../typechain-types';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { mintDirectly, newTokenId, transferHolder, type MintedToken } from '../helpers/chain/direct-mint';
import type { CommandAnswer } from '../helpers/processes/command-answer';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startRpcProxy, THROUGH, type Fault, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { startService } from '../helpers/processes/running-service';
import { liveThrough, type Operation } from '../helpers/chain/token-life';
import { stopLater } from '../helpers/resources';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { VirtualTime } from '../helpers/virtual-time';

const REMARK = 'shipped on board, Ünïcödé 提单';

/** How a provider refuses a range. */
type Refusal = Fault | { error: { code: number; message: string } } | { status: number; body: string };

describe('the endorsement chain of a token', () => {
  /** That of the clients. */
  let time: VirtualTime;
  let local: LocalSetup;
  let answer: CreateAnswer['body'];
  let file: string;
  let tokenId: bigint;
  let life: Operation[];
  let client: Chain;
  let proxy: RpcProxy;
  let registry: RegistryOnChain;
  const accounts: string[] = [];

  before(async () => {
    local = await createLocalSetup();
    for (const index of [0, 1, 2, 3]) accounts.push(await local.account(index));
    const service = await startService(local.settings);
    const subject = { type: ['BillOfLading'], blNumber: 'SGCNM21566325' };
    const [, owner, holder] = accounts;
    ({ body: answer } = await create(service.url, {
      owner,
      holder,
      remarks: REMARK,
      credentialSubject: subject,
    }));
    await service.stop();
    file = join(local.folder, 'answer.json');
    writeFileSync(file, JSON.stringify(answer));
    tokenId = BigInt(`0x${answer.signedW3CDocument.credentialStatus.tokenId}`);
    life = await liveThrough(local, { tokenId, transactionHash: answer.txHash });
    proxy = await startRpcProxy(local.node.url);
    time = VirtualTime.ofRequests();
    client = connectNode(proxy.url, {}, time);
    stopLater('the client', () => client.close());
    registry = await createRegistryFinder(client, local.registryAddress)();
  });

  afterEach(() => proxy.answer(THROUGH));

  const read = (id = tokenId, options = {}): Promise<TokenHistory> =>
    time.settled(readTokenHistory(client, registry, id, options));

  /** The operations that concern the token, as they were sent. */
  const ofToken = (): Operation[] =>
    life
      .filter(({ name }) => !/pause/.test(name))
      .map(({ name, ...rest }) => ({ name: name.replace(/, after .*/, ''), ...rest }));

  it('has one entry for each operation, with its remark, its sender and its time', async () => {
    const { endorsements, state, isWhole } = await read();
    expect(isWhole).to.equal(true);
    expect(state.state).to.equal('shredded');
    expect(
      endorsements.map(({ operation: name, transactionHash }) => ({ name, transactionHash })),
    ).to.deep.equal(ofToken());
    for (const { transactionHash, remark, sender, timestamp, blockNumber } of endorsements) {
      const transaction = await local.client.getTransaction(transactionHash);
      expect(transaction?.from).to.equal(sender);
      expect((await local.client.getBlock(blockNumber))?.timestamp).to.equal(timestamp);
      // The remark is the last argument of every operation.
      expect(transaction?.data).to.contain(remark.slice(2));
    }
    const remarks = endorsements.map(({ remark }) => remark);
    expect(remarks[0]).to.equal(encryptRemark(REMARK, answer.signedW3CDocument.id));
    expect(remarks.slice(1)).to.deep.equal([
      ...['0x01', '0x02', '0x03', '0x04', '0x05', '0x', '0x06', '0x', '0x07', '0x08', '0x', '0x09'],
      ...['0x0a', '0x0b', '0x', '0x0c'],
    ]);
  });

  it('replays to the state of the contracts at the block of each operation', async () => {
    const { endorsements } = await read();
    for (const { blockNumber, after } of endorsements) {
      const state = await readTokenState(client, registry.contracts, tokenId, blockNumber);
      if (state.state === 'not minted') throw new Error('the token was minted by then');
      const range = { fromBlock: 0, toBlock: blockNumber };
      const chain = endorsementsOf(await readTokenLogs(client, registry.contracts, tokenId, range), state);
      const { beneficiary, holder, nominee } = state;
      expect(chain.at(-1)?.after).to.deep.equal({ beneficiary, holder, nominee });
      expect(after).to.deep.equal({ beneficiary, holder, nominee });
    }
  });

  it('can start in the middle, with the same entries from there on, and is then not whole', async () => {
    const whole = await read();
    for (const from of [3, 8, 13, 16]) {
      const fromBlock = whole.endorsements[from]?.blockNumber ?? 0;
      const { endorsements, isWhole } = await read(tokenId, { fromBlock });
      expect(isWhole).to.equal(false);
      expect(endorsements).to.deep.equal(whole.endorsements.slice(from));
    }
  });

  it('is refused when the node omits any log but that of a rejection', async () => {
    const range = { fromBlock: 0, toBlock: await local.client.getBlockNumber() };
    const { logs, isWhole } = await readTokenLogs(client, registry.contracts, tokenId, range);
    const state = await readTokenState(client, registry.contracts, tokenId);
    if (state.state === 'not minted') throw new Error('the token was minted by then');
    expect(isWhole).to.equal(true);
    // A rejection without its last log looks like a transfer: it moves the same roles.
    const told = logs.filter(({ type }) => !type.startsWith('reject_'));
    expect(told.length).to.be.greaterThan(30);
    for (const left of told) {
      const rest = logs.filter((log) => log !== left);
      const isBegun = rest.some(({ type }) => type === 'minted') || left.type === 'minted';
      expect(() => endorsementsOf({ logs: rest, isWhole: isBegun }, state), left.type).to.throw(
        'this one omits logs',
      );
    }
  });

  it('ignores forged events of the registry and the title escrow', async () => {
    const token = await mintDirectly(local, accounts[1]!);
    const forger = await new EventForger__factory(await local.client.getSigner(5)).deploy();
    await forger.forge(local.registryAddress, token.escrow, token.tokenId);
    await transferHolder(local, token, { from: accounts[1]!, to: accounts[2]! });
    const { endorsements, state } = await read(token.tokenId);
    expect(endorsements.map(({ operation }) => operation)).to.deep.equal(['mint', 'transferHolder']);
    expect(state).to.include({ state: 'in escrow', beneficiary: accounts[1], holder: accounts[2] });
  });

  it('is empty for a token that was never minted, without reading logs', async () => {
    const since = proxy.calls.length;
    expect(await read(newTokenId())).to.deep.include({ endorsements: [], isWhole: true });
    expect(proxy.counts(since)).not.to.have.property('eth_getLogs');
  });

  describe('on the command line', () => {
    const run = (args: string[], settings: Record<string, string> = {}): Promise<CommandAnswer> =>
      askTdocInProcess(args, { ...local.settings, ...settings });

    it('token FILE prints a line for each operation, the decrypted remark and the state', async () => {
      const { code, stdout } = await run(['token', file]);
      expect(code, stdout).to.equal(0);
      const lines = stdout.split('\n');
      for (const { transactionHash } of ofToken())
        expect(lines.filter((line) => line.includes(transactionHash))).to.have.length(1);
      expect(stdout)
        .to.contain(`"${REMARK}"`)
        .and.to.match(/^Now \(block \d+\): shredded$/m);
      expect(stdout).to.match(/issued: beneficiary 0x7099…79C8, holder 0x3C44…93BC/);
      for (const account of accounts) expect(stdout).to.contain(account);
    });

    it('token ID --json prints the same without a credential, with encrypted remarks', async () => {
      const { code, stdout } = await run(['token', tokenId.toString(), '--json']);
      expect(code, stdout).to.equal(0);
      const shown = JSON.parse(stdout) as { endorsements: { operation: string; remark: string }[] };
      expect(shown.endorsements.map(({ operation }) => operation)).to.deep.equal(
        ofToken().map(({ name }) => name),
      );
      expect(shown).to.deep.include({ tokenId: tokenId.toString(), network: 'localhost', next: [] });
      expect(shown.endorsements[0]).to.include({
        remark: encryptRemark(REMARK, answer.signedW3CDocument.id),
      });
    });

    it('decrypt-remark FILE prints the remark of each operation and escapes control characters', async () => {
      const { id } = answer.signedW3CDocument;
      const { code, stdout } = await run(['decrypt-remark', file]);
      expect(code, stdout).to.equal(0);
      expect(stdout.trim().split('\n')).to.have.length(ofToken().length);
      expect(stdout).to.match(new RegExp(`mint +"${REMARK}"`));
      const remark = encryptRemark('\u001b[2Jpaid\u202e', id);
      const one = await run(['decrypt-remark', file, '--remark', remark]);
      expect(one).to.deep.include({ code: 0, stdout: '"\\u001b[2Jpaid\\u202e"\n' });
    });

    it('token exits with 1 for a token that is not minted, and with 2 when the node is down', async () => {
      const never = await run(['token', `0x${newTokenId().toString(16)}`]);
      expect(never).to.include({ code: 1 });
      expect(never.stdout).to.contain('Not minted');
      await proxy.refuse();
      const down = await run(['token', file], { RPC_URL: proxy.url });
      await proxy.accept();
      expect(down).to.include({ code: 2, stdout: '' });
      expect(down.stderr).to.contain('RPC_UNREACHABLE');
    });
  });

  describe('read from a faulty provider', () => {
    let bulkClient: Chain;
    let transferred: MintedToken;

    const newToken = (): Promise<MintedToken> => mintDirectly(local, accounts[1]!);

    before(async () => {
      bulkClient = connectNode(proxy.url, {}, time, 'bulk');
      stopLater('the client for many calls', () => bulkClient.close());
      transferred = await newToken();
      await transferHolder(local, transferred, { from: accounts[1]!, to: accounts[2]! });
      await transferHolder(local, transferred, { from: accounts[2]!, to: accounts[3]! });
    });

    const readBulk = (id = transferred.tokenId, options = {}): Promise<TokenHistory> =>
      read(id, { bulkClient, ...options });

    const operationsOf = ({ endorsements }: TokenHistory): string[] =>
      endorsements.map(({ operation }) => operation);

    describe('from a provider', () => {
      const BEHIND = 3_000;

      before(() => local.client.send('hardhat_mine', [`0x${BEHIND.toString(16)}`]));

      it('takes two queries if the provider has no limits, however many blocks there are', async () => {
        const since = proxy.calls.length;
        await readBulk();
        expect(proxy.counts(since).eth_getLogs).to.equal(2);
      });

      for (const [refusal, answerOf] of Object.entries({
        'with an error': () => ({ error: { code: -32005, message: 'block range is too wide' } }),
        'with an error in words of its own': () => ({ error: { code: -32000, message: 'sorry, pay more' } }),
        'with status 413': () => ({ status: 413, body: 'too much' }),
      })) {
        it(`asks for less, backwards as far as the mint, when ranges are refused ${refusal}`, async () => {
          const expected = await readBulk();
          const young = await newToken();
          refuseBeyond(500, answerOf);
          const since = proxy.calls.length;
          const progress: number[] = [];
          const history = await readBulk(transferred.tokenId, {
            onProgress: (block: number) => progress.push(block),
          });
          expect({ ...history, state: undefined }).to.deep.equal({ ...expected, state: undefined });
          expect(proxy.counts(since).eth_getLogs).to.be.within(2 * 6, 2 * 20);
          expect(progress).to.deep.equal([...progress].sort((a, b) => b - a));

          const before = proxy.calls.length;
          expect((await readBulk(young.tokenId)).endorsements).to.have.length(1);
          // 3,000 blocks are halved three times; then the first answer has the mint.
          expect(proxy.counts(before).eth_getLogs).to.be.at.most(2 * 4);
        });
      }

      it('asks for less when the provider cuts the connection at a wide range', async () => {
        const expected = await readBulk();
        refuseBeyond(1_000, () => 'drop answer');
        expect((await readBulk()).endorsements).to.deep.equal(expected.endorsements);
      });

      it('fails when even a single block is refused', async () => {
        refuseBeyond(0, () => ({ error: { code: -32005, message: 'block range is too wide' } }));
        await readBulk().then(
          () => expect.fail('it was read'),
          (error: Error) => expect(error.message).to.contain('block range is too wide'),
        );
      });

      it('repeats a query that is refused once with status 429', async () => {
        const expected = await readBulk();
        let isRefused = false;
        proxy.answer((method) => {
          if (method !== 'eth_getLogs' || isRefused) return 'none';
          isRefused = true;
          return { status: 429, body: 'too many requests' };
        });
        const since = proxy.calls.length;
        expect((await readBulk()).endorsements).to.deep.equal(expected.endorsements);
        // Two queries, and the repeated one.
        expect(proxy.counts(since).eth_getLogs).to.equal(3);
      });

      it('asks twice at most for a range that is refused with status 429, as npx tdoc token', async () => {
        refuseBeyond(2_000, () => ({ status: 429, body: 'too many requests' }));
        const since = proxy.requests.length;
        const args = ['token', transferred.tokenId.toString()];
        const { code, stdout } = await askTdocInProcess(args, { ...local.settings, RPC_URL: proxy.url });
        expect(code, stdout).to.equal(0);
        expect(stdout).to.contain('issued: ');
        const ranges = proxy.requests.slice(since).filter(({ method }) => method === 'eth_getLogs');
        const wide = ranges.filter(({ params }) => widthOf(params) > 2_000);
        // There are two queries.
        expect(wide.length).to.be.within(1, 2 * 2);
      });

      function refuseBeyond(most: number, answerOf: () => Refusal): void {
        proxy.answer((method, params) => {
          if (method !== 'eth_getLogs') return 'none';
          return widthOf(params) > most ? answerOf() : 'none';
        });
      }

      function widthOf([range]: readonly unknown[]): number {
        const { fromBlock, toBlock } = range as { fromBlock: string; toBlock: string };
        return Number(toBlock) - Number(fromBlock) + 1;
      }
    });

    it('starts again when the chain is reorganised between two queries', async () => {
      const token = await newToken();
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
      const { endorsements, state } = await readBulk(token.tokenId);
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
      await newToken();
      let isReorganised = false;
      proxy.answer(async (method, _params, forward) => {
        if (method !== 'eth_call' || isReorganised) return 'none';
        isReorganised = true;
        const told = await forward();
        await local.client.send('evm_revert', [snapshot]);
        await mintDirectly(local, accounts[1]!, { tokenId: unminted });
        return told;
      });
      const { endorsements } = await readBulk(unminted);
      expect(endorsements.map(({ operation }) => operation)).to.deep.equal(['mint']);
    });

    it('gives up when the chain has changed at every attempt', async () => {
      const token = await newToken();
      proxy.answer(async (method, _params, forward) => {
        const told = await forward();
        if (method !== 'eth_getBlockByNumber' || !('result' in told)) return told;
        const hash = `0x${newTokenId().toString(16).padStart(64, '0')}`;
        return { result: { ...(told.result as object), hash } };
      });
      await readBulk(token.tokenId).then(
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
      expect(operationsOf(await readBulk())).to.deep.equal(['mint', 'transferHolder', 'transferHolder']);
      expect(isBehind).to.equal(false);
    });

    it('finds the senders of transactions that the node no longer knows by hash', async () => {
      const expected = await readBulk();
      proxy.answer((method) => (method === 'eth_getTransactionByHash' ? { result: null } : 'none'));
      expect((await readBulk()).endorsements).to.deep.equal(expected.endorsements);
      expect(expected.endorsements.map(({ sender }) => sender)).to.deep.equal([
        accounts[0],
        accounts[1],
        accounts[2],
      ]);
    });

    it('fails with the message of the node, its control characters escaped', async () => {
      proxy.answer((method) =>
        method === 'eth_getLogs' ? { error: { code: -32000, message: 'no \u202e logs' } } : 'none',
      );
      const settings = { ...local.settings, RPC_URL: proxy.url };
      const { code, stderr } = await askTdocInProcess(['token', transferred.tokenId.toString()], settings);
      expect(code).to.equal(2);
      expect(stderr).to.contain('NODE_FAILED').and.contain('no \\u202e logs');
    });
  });
});
