import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { utils } from '@tradetrust-tt/token-registry';
import { expect } from 'chai';
import { formatEther, parseEther, Transaction, type TransactionResponse } from 'ethers';
import { withFileLock } from '../../cli/files/write-file';
import { gasLimitFor } from '../../cli/transactions';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { tenantOf } from '../../service/config/tenant';
import { TDocDeployer__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { DEPLOYER, DEPLOYER_KEY } from '../helpers/chain/local-setup';
import {
  refuseTipsBelow,
  startRpcProxy,
  THROUGH,
  type Answerer,
  type Fault,
  type RpcProxy,
} from '../helpers/chain/rpc-proxy';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';
import { errorOf } from '../helpers/error-of';
import { eventually } from '../helpers/eventually';
import { serve, type TestServer } from '../helpers/http-server';
import type { CommandAnswer } from '../helpers/processes/command-answer';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';

const FEES = { maxFee: 61.000000007, maxPriorityFee: 30.5 };
const MAX_FEE = 61_000_000_007n;
const PRIORITY_FEE = 30_500_000_000n;
const KEY = 'marked-key-0123456789abcdef';
const SEND = 'eth_sendRawTransaction';
const BLOCK_EVERY_MS = 50;

// A local node with Amoy's chain id and the v5 contracts at the addresses where they are published, behind a
// proxy that can fail as a provider.
describe('npx hardhat deploy and tdoc on Amoy', () => {
  let amoy: StandInNetwork;
  let proxy: RpcProxy;
  let station: TestServer;
  /** The gas station's fees in gwei. Undefined: it fails. */
  let fees: typeof FEES | undefined;
  let asked = 0;

  before(async () => {
    amoy = await startStandInNetwork('amoy');
    proxy = await startRpcProxy(amoy.node.url);
    station = await serve((_request, response) => {
      asked++;
      response.writeHead(fees ? 200 : 503).end(JSON.stringify({ standard: fees }));
    });
  });
  const transactions = (): Promise<number> => amoy.chain.getTransactionCount(amoy.wallet.address);

  /** Another tenant on the chain as it was, with 1 POL. */
  async function startAgain(): Promise<void> {
    await amoy.reset();
    await amoy.fund(parseEther('1'));
    proxy.answer(THROUGH);
    proxy.requests.splice(0);
    proxy.calls.splice(0);
    fees = FEES;
  }

  /** The file of the registry's transaction. */
  async function registryFile(): Promise<string> {
    const { hash } = (await amoy.chain.getBlock(0)) ?? {};
    const folder = `deploy/deployments/chain-80002-${hash?.slice(2, 14)}`;
    return join(PROJECT_ROOT, folder, `registry-${tenantOf(amoy.envFile).key}.json`);
  }

  describe('through the published deployer', () => {
    before(startAgain);

    it('deploys the registry through the published deployer in one transaction', async () => {
      const { chain, published, wallet } = amoy;
      const block = await chain.getBlockNumber();
      expect(await amoy.deploy()).to.match(new RegExp(`deployer +${published.deployer} +published`));
      expect(await transactions()).to.equal(1);
      expect(await chain.getBlock(block + 1).then((mined) => mined?.transactions.length)).to.equal(1);
      const registry = TradeTrustTokenStandard__factory.connect(amoy.registry(), chain);
      expect(await registry.titleEscrowFactory()).to.equal(published.titleEscrowFactory);
      expect(await registry.hasRole(await registry.MINTER_ROLE(), wallet.address)).to.equal(true);
    });

    it('keeps the registry of TOKEN_REGISTRY_ADDRESS when the file of its transaction is lost', async () => {
      const before = amoy.registry();
      rmSync(await registryFile());
      expect(await amoy.deploy()).to.contain('already deployed');
      expect(amoy.registry()).to.equal(before);
      expect(await transactions()).to.equal(1);
    });

    it('sends nothing through a node without block 0, whatever it says', async () => {
      for (const absence of [
        { result: null },
        { error: { code: 4444, message: 'pruned history unavailable' } },
      ]) {
        proxy.answer((method, [block]) =>
          method === 'eth_getBlockByNumber' && block === '0x0' ? absence : 'none',
        );
        const output = await amoy.refuse([], { RPC_URL: proxy.url });
        expect(output).to.contain('does not have block 0').and.contain('Set RPC_URL to a node that has it');
        expect(await transactions()).to.equal(1);
      }
      proxy.answer((method, [block]) =>
        method === 'eth_getBlockByNumber' && block === '0x0'
          ? { error: { code: -32603, message: 'upstream gone' } }
          : 'none',
      );
      const output = await amoy.refuse([], { RPC_URL: proxy.url });
      expect(output).to.contain('upstream gone').and.not.contain('does not have block 0');
      expect(await transactions()).to.equal(1);
    });

    it('has a code, and prints no key, when the key is refused or an answer is no JSON', async () => {
      const refused = { status: 401, body: `invalid key ${KEY}` };
      const rubbish = { status: 502, body: `<html>${KEY}` };
      for (const [answerer, ...says] of [
        [() => refused, 'RPC_KEY_REFUSED', 'status 401', 'Check the key in RPC_URL'],
        [(method) => (method === 'eth_getBalance' ? rubbish : 'none'), 'DEPLOYMENT_FAILED'],
      ] as [Answerer, ...string[]][]) {
        proxy.answer(answerer);
        const output = await amoy.refuse(['--new'], { RPC_URL: `${proxy.url}/v3/${KEY}` });
        for (const text of says) expect(output).to.contain(text);
        expect(output).not.to.contain(KEY);
      }
    });

    it('sends nothing when the registry cannot be read, or has no code', async () => {
      proxy.answer((method, [call]) => {
        const { to = '' } = { ...(call as { to?: string }) };
        const isAsked = method === 'eth_call' && to.toLowerCase() === amoy.registry().toLowerCase();
        return isAsked ? { error: { code: -32000, message: 'try later' } } : 'none';
      });
      expect(await amoy.refuse([], { RPC_URL: proxy.url })).to.contain('DEPLOYMENT_INCONSISTENT');
      expect(await transactions()).to.equal(1);
      await amoy.deploy(['--new']);
      await amoy.chain.send('hardhat_setCode', [amoy.registry(), '0x']);
      expect(await amoy.refuse())
        .to.contain('DEPLOYMENT_INCONSISTENT')
        .and.to.contain('--new');
      expect(await transactions()).to.equal(2);
    });
  });

  describe('with a wallet that pays', () => {
    before(startAgain);
    const atStation = () => ({ GAS_STATION_URL: station.url });

    /** The last transaction of the chain. Each is mined in a block of its own. */
    async function lastTransaction(): Promise<TransactionResponse> {
      const block = await amoy.chain.getBlock('latest', true);
      return block?.prefetchedTransactions[0] as TransactionResponse;
    }

    /** The highest cost of the deploy transaction, calculated without the command. */
    async function highestCost(): Promise<bigint> {
      const { deployer, tokenImplementation } = amoy.published;
      const names = { name: 'Transferable Documents', symbol: 'TDOC', deployer: amoy.wallet.address };
      const parameters = utils.encodeInitParams(names) as string;
      const gas = await TDocDeployer__factory.connect(deployer, amoy.chain).deploy.estimateGas(
        tokenImplementation,
        parameters,
        { from: amoy.wallet.address },
      );
      return gasLimitFor(gas) * MAX_FEE;
    }

    it('names the exact amount that is missing, and sends nothing', async () => {
      const needed = await highestCost();
      const block = await amoy.chain.getBlockNumber();
      await amoy.fund(needed - 1n);
      const output = await amoy.refuse([], atStation());
      expect(output).to.contain('WALLET_NOT_FUNDED').and.to.contain(amoy.wallet.address);
      expect(output).to.contain(`up to ${formatEther(needed)} POL are needed`);
      expect(output).to.contain(`${formatEther(1n)} POL are missing`);
      expect(output).not.to.match(/\n +at /);
      expect(await transactions()).to.equal(0);
      expect(await amoy.chain.getBlockNumber()).to.equal(block);
      expect(amoy.registry()).to.equal('');
    });

    it('prints wallet, balance and cost, and offers the fees of the gas station', async () => {
      const needed = await highestCost();
      await amoy.fund(needed);
      const before = asked;
      const output = await amoy.deploy([], atStation());
      expect(output).to.contain(`wallet   ${amoy.wallet.address}`);
      expect(output).to.contain(`balance  ${formatEther(needed)} POL`);
      expect(output).to.contain(`cost     at most ${formatEther(needed)} POL`);
      expect(output.indexOf('cost ')).to.be.lessThan(output.indexOf('Deploying the registry'));
      const { type, maxFeePerGas, maxPriorityFeePerGas, gasLimit, from } = await lastTransaction();
      expect({ type, maxFeePerGas, maxPriorityFeePerGas, from }).to.deep.equal({
        type: 2,
        maxFeePerGas: MAX_FEE,
        maxPriorityFeePerGas: PRIORITY_FEE,
        from: amoy.wallet.address,
      });
      expect(gasLimit * MAX_FEE).to.equal(needed);
      expect(asked, 'what is printed is what is offered').to.equal(before + 1);
    });

    it('links to the registry and to a sent transaction; needs no funds when nothing is sent', async () => {
      const { hash } = await lastTransaction();
      await amoy.fund(0n);
      expect(await amoy.deploy([], atStation()))
        .to.contain(`https://amoy.polygonscan.com/address/${amoy.registry()}`)
        .and.not.to.contain('cost ')
        .and.not.to.contain('/tx/');
      await amoy.fund(parseEther('1'));
      const again = await amoy.deploy(['--new', '--with-infrastructure'], atStation());
      const { hash: newest } = await lastTransaction();
      expect(newest).not.to.equal(hash);
      expect(again)
        .to.contain(`https://amoy.polygonscan.com/tx/${newest}`)
        .and.to.contain(`https://amoy.polygonscan.com/address/${amoy.registry()}`)
        .and.to.contain('The contracts published on amoy are used');
      expect(await transactions()).to.equal(2);
    });

    it('uses the node’s estimate when the gas station fails, and warns', async () => {
      fees = undefined;
      expect(await amoy.deploy(['--new'], atStation())).to.contain(
        'warning: The gas station gives no usable fees',
      );
      const { type, maxFeePerGas, maxPriorityFeePerGas, blockNumber } = await lastTransaction();
      const before = await amoy.chain.getBlock((blockNumber ?? 1) - 1);
      expect(type).to.equal(2);
      expect(maxFeePerGas).to.equal(2n * (before?.baseFeePerGas ?? 0n) + (maxPriorityFeePerGas ?? 0n));
    });
  });

  describe('with a node that asks for more than it suggests', () => {
    before(startAgain);
    const GWEI = 1_000_000_000n;
    const run = (more: Record<string, string>) => ({ RPC_URL: proxy.url, ...more });
    const tipOfLast = async (): Promise<bigint | null> => {
      const block = await amoy.chain.getBlock('latest', true);
      return (block?.prefetchedTransactions[0] as TransactionResponse).maxPriorityFeePerGas;
    };

    it('offers what the network asks for without a refusal', async () => {
      proxy.answer(refuseTipsBelow(25n * GWEI));
      await amoy.deploy([], run({}));
      expect(await tipOfLast()).to.equal(25n * GWEI);
      expect(proxy.calls.filter((method) => method === SEND)).to.have.length(1);
    });

    it('offers what the refusal names, in the same run, and for the registry’s admin too', async () => {
      proxy.answer(refuseTipsBelow(37n * GWEI));
      expect(await amoy.deploy(['--new'], run({}))).to.contain('asks for a priority fee of 37.0 gwei');
      expect(await tipOfLast()).to.equal(37n * GWEI);
      const settings = { ENV_FILE: amoy.envFile, WALLET_PRIVATE_KEY: amoy.wallet.privateKey, NET: 'amoy' };
      const paused = await askTdocInProcess(['pause'], run({ ...settings, GAS_STATION_URL: 'none' }));
      expect(paused.code, paused.stderr).to.equal(0);
      expect(await tipOfLast()).to.equal(37n * GWEI);
    });

    it('names the setting when the node asks for more than it is believed, which then helps', async () => {
      proxy.answer(refuseTipsBelow(200n * GWEI));
      expect(await amoy.refuse(['--new'], run({})))
        .to.contain('DEPLOYMENT_FAILED')
        .and.to.contain('Set LEAST_PRIORITY_FEE_GWEI');
      await amoy.deploy(['--new'], run({ LEAST_PRIORITY_FEE_GWEI: '200' }));
      expect(await tipOfLast()).to.equal(200n * GWEI);
    });
  });

  describe('the commands of the registry’s admin', () => {
    before(async () => {
      await startAgain();
      await amoy.deploy();
    });

    const run = (args: string[], changed: Record<string, string> = {}): Promise<CommandAnswer> =>
      askTdocInProcess(args, {
        ENV_FILE: amoy.envFile,
        WALLET_PRIVATE_KEY: amoy.wallet.privateKey,
        NET: 'amoy',
        RPC_URL: amoy.node.url,
        GAS_STATION_URL: station.url,
        ...changed,
      });

    it('print the highest cost, offer the fees of the gas station and link to the explorer', async () => {
      const { code, stdout, stderr } = await run(
        ['role', 'grant', '--role', 'minter', '--account'].concat(DEPLOYER),
      );
      expect(code, stderr).to.equal(0);
      const hash = /^sent +(0x[0-9a-f]{64})$/m.exec(stdout)?.[1] ?? '';
      expect(stdout.indexOf('cost     at most')).to.be.within(1, stdout.indexOf(hash));
      expect(stdout).to.contain(`wallet   ${amoy.wallet.address}`).and.to.contain('POL');
      expect(stdout).to.contain(`explorer https://amoy.polygonscan.com/tx/${hash}`);
      const transaction = await amoy.chain.getTransaction(hash);
      expect(transaction?.maxFeePerGas).to.equal(MAX_FEE);
      expect(transaction?.maxPriorityFeePerGas).to.equal(PRIORITY_FEE);
    });

    it('send nothing if the wallet cannot pay, if its key is published, or to another chain', async () => {
      const before = await transactions();
      await amoy.fund(1n);
      fees = undefined;
      const poor = await run(['pause']);
      await amoy.fund(parseEther('1'));
      const published = await run(['pause'], { WALLET_PRIVATE_KEY: DEPLOYER_KEY });
      const elsewhere = ['pause', '--network', 'sepolia', '--registry', amoy.registry()];
      const other = await run(elsewhere, { NET: '' });
      expect([poor.code, published.code, other.code]).to.deep.equal([2, 2, 2]);
      expect(poor.stderr).to.contain('WALLET_NOT_FUNDED').and.to.contain('are missing');
      // Standard output may be JSON for a program.
      expect(poor.stderr).to.contain('warning: The gas station gives no usable fees');
      expect(published.stderr).to.contain('WALLET_KEY_PUBLISHED');
      expect(other.stderr).to.contain('CHAIN_ID_MISMATCH');
      expect(await transactions()).to.equal(before);
    });
  });

  // Blocks come at intervals, as on Amoy: a run can be interrupted between sending and mining.
  describe('after an interrupted run', () => {
    beforeEach(async () => {
      await startAgain();
      await amoy.chain.send('evm_setAutomine', [false]);
    });

    const mine = (): Promise<unknown> => amoy.chain.send('evm_setIntervalMining', [BLOCK_EVERY_MS]);
    const pending = (): Promise<number> => amoy.chain.getTransactionCount(amoy.wallet.address, 'pending');
    const sent = () => eventually('the transaction is sent', async () => (await pending()) === 1);
    const deploy = (...args: string[]) => amoy.deploy(args, { RPC_URL: proxy.url });
    const refuse = (...args: string[]) => amoy.refuse(args, { RPC_URL: proxy.url });
    const sentRaw = (): string[] =>
      proxy.requests.filter(({ method }) => method === SEND).map(({ params }) => params[0] as string);

    /** The node does not get the transaction, and the command fails. */
    async function interrupted(...args: string[]): Promise<void> {
      proxy.answer((method) => (method === SEND ? 'drop request' : 'none'));
      await refuse(...args);
      proxy.answer(THROUGH);
    }

    it('finds the transactions of a run that ended while it installed the infrastructure', async () => {
      const { deployer, titleEscrowFactory, tokenImplementation } = amoy.published;
      for (const address of [deployer, titleEscrowFactory, tokenImplementation])
        await amoy.chain.send('hardhat_setCode', [address, '0x']);
      await mine();
      // The second transaction reaches the node, and nothing else works.
      proxy.answer(() => (sentRaw().length < 2 ? 'none' : 'drop answer'));
      await refuse('--with-infrastructure');
      expect(await pending()).to.equal(2);
      proxy.answer(THROUGH);
      const output = await deploy();
      expect(await transactions()).to.equal(6);
      const own = /deployer +(0x\w{40})/.exec(output)?.[1] ?? '';
      const contract = TDocDeployer__factory.connect(own, amoy.chain);
      expect(await contract.queryFilter(contract.filters.Deployment)).to.have.length(1);
    });

    it('makes one more registry when an interrupted --new is repeated', async () => {
      await mine();
      await deploy();
      const first = amoy.registry();
      await interrupted('--new');
      expect(amoy.registry()).to.equal(first);
      await deploy('--new');
      expect(amoy.registry()).not.to.equal(first);
      expect(await transactions()).to.equal(2);
    });

    it('finishes an interrupted registry of another name, and lets --new make the wanted one', async () => {
      await interrupted('--token-name', 'First');
      await mine();
      const wanted = ['--new', '--token-name', 'Second'];
      expect(await refuse(...wanted))
        .to.contain('REGISTRY_DIFFERS')
        .and.to.contain('is "First"');
      expect(await deploy(...wanted)).to.contain('"Second"');
      expect(await transactions()).to.equal(2);
    });

    it('sends a dropped transaction again while it waits, until another one has used the nonce', async () => {
      const running = refuse();
      const drop = async () => {
        await sent();
        await amoy.chain.send('hardhat_dropTransaction', [Transaction.from(sentRaw()[0]).hash]);
      };
      await drop();
      await drop();
      const wallet = amoy.wallet.connect(amoy.chain);
      await wallet.sendTransaction({ to: amoy.wallet.address, nonce: 0 });
      await mine();
      expect(await running)
        .to.contain('DEPLOYMENT_FAILED')
        .and.to.contain(`then delete ${await registryFile()}`);
      expect(new Set(sentRaw()).size).to.equal(1);
    });

    it('sends nothing while the file of the transaction is damaged', async () => {
      await interrupted();
      const file = await registryFile();
      for (const content of ['', '{"hashes":']) {
        writeFileSync(file, content);
        expect(await refuse(), content)
          .to.contain('DEPLOYMENT_FAILED')
          .and.to.contain(`${file} is damaged`);
      }
      expect(await pending()).to.equal(0);
    });

    it('lets no other command work on the chain until its transaction is mined', async () => {
      const folder = dirname(await registryFile());
      const locked = async () => (await errorOf(withFileLock(folder, () => undefined, 0))).code;
      let whenItSigns: unknown;
      proxy.answer(async (method): Promise<Fault> => {
        if (method === 'eth_estimateGas') whenItSigns = await locked();
        return 'none';
      });
      const running = deploy();
      await sent();
      expect([whenItSigns, await locked()]).to.deep.equal(['FILE_LOCKED', 'FILE_LOCKED']);
      await mine();
      await running;
    });

    it('goes on when the answer of the node is lost', async () => {
      proxy.answer((method) => (method === SEND ? 'drop answer' : 'none'));
      await mine();
      await deploy();
      expect(await transactions()).to.equal(1);
      expect(amoy.registry()).to.match(/^0x/);
    });

    it('sends no other transaction until the node accepts the one that it lost, or refused', async () => {
      await interrupted();
      const refusal = { error: { code: -32000, message: 'the mempool is full' } };
      proxy.answer((method) => (method === SEND ? refusal : 'none'));
      expect(await refuse())
        .to.contain('DEPLOYMENT_FAILED')
        .and.to.contain('the mempool is full');
      expect(await pending()).to.equal(0);
      proxy.answer(THROUGH);
      await mine();
      const output = await deploy();
      expect(await transactions()).to.equal(1);
      const [raw, ...others] = new Set(sentRaw());
      expect(others, 'other transactions').to.deep.equal([]);
      expect(output)
        .to.contain(`/tx/${Transaction.from(raw).hash}`)
        .and.not.to.contain('cost ');
      const registry = TradeTrustTokenStandard__factory.connect(amoy.registry(), amoy.chain);
      expect(await registry.titleEscrowFactory()).to.equal(amoy.published.titleEscrowFactory);
    });

    it('prints and offers the current fees after the node refused lower ones', async () => {
      const settings = {
        RPC_URL: proxy.url,
        GAS_STATION_URL: station.url,
        LEAST_PRIORITY_FEE_GWEI: '0',
      };
      const block = await amoy.chain.getBlock('latest');
      await amoy.chain.send('evm_setAutomine', [true]);
      expect(Number(block?.baseFeePerGas)).to.be.greaterThan(1);
      fees = { maxFee: 0.000000001, maxPriorityFee: 0.000000001 };
      expect(await amoy.refuse([], settings))
        .to.contain('DEPLOYMENT_FAILED')
        .and.to.contain('too low');
      fees = { maxFee: 50, maxPriorityFee: 50 };
      expect(await amoy.deploy([], settings)).to.contain('at up to 50 gwei');
      expect(await transactions()).to.equal(1);
      expect(amoy.registry()).to.match(/^0x/);
    });
  });
});
