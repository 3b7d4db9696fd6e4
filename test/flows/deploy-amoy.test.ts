import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { utils } from '@tradetrust-tt/token-registry';
import { expect } from 'chai';
import { formatEther, parseEther, Transaction, type TransactionResponse } from 'ethers';
import { withFileLock } from '../../cli/files/write-file';
import { gasLimitFor } from '../../cli/transactions';
import { hardhatCli } from '../../devnet/hardhat-node';
import { inheritedEnvironment } from '../../service/config/config';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { newDeferred } from '../../service/base/waiting';
import { tenantOf } from '../../service/config/tenant';
import { TDocDeployer__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { startFakeGasStation, type FakeGasStation } from '../helpers/chain/fake-gas-station';
import { startRpcProxy, THROUGH, type Answerer, type Fault, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';
import { errorOf } from '../helpers/error-of';
import { eventually, hastenedProcess, hastenSuite } from '../helpers/eventually';
import { DEPLOYER, DEPLOYER_KEY } from '../helpers/chain/local-setup';
import type { CommandAnswer } from '../helpers/processes/command-answer';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';

const AMOY = 80002;
const DEPLOYMENTS = join(PROJECT_ROOT, 'deploy/deployments');
const FEES = { maxFee: 61.000000007, maxPriorityFee: 30.5 };
const MAX_FEE = 61_000_000_007n;
const PRIORITY_FEE = 30_500_000_000n;
const KEY = 'marked-key-0123456789abcdef';
const SEND = 'eth_sendRawTransaction';
const BLOCK_EVERY_MS = 50;
/** As fast as time passes, so that a command asks about as often as blocks come. */
const TIMES = 6;

/**
 * Removes the file of the tenant's registry, as on another machine or in a fresh clone. Only that of this
 * tenant: other tests may be deploying on the same chain id. Returns whether there was one.
 */
function dropRegistryFile(envFile: string): boolean {
  const name = `registry-${tenantOf(envFile).key}.json`;
  const files = readdirSync(DEPLOYMENTS)
    .filter((chain) => chain.startsWith(`chain-${AMOY}-`))
    .map((chain) => join(DEPLOYMENTS, chain, name))
    .filter((file) => existsSync(file));
  for (const file of files) rmSync(file);
  return files.length > 0;
}

// A local node with Amoy's chain id and the v5 contracts at the addresses where they are published, behind a
// proxy that can fail as a provider.
describe('npx hardhat deploy and tdoc on Amoy', () => {
  let amoy: StandInNetwork;
  let proxy: RpcProxy;
  let station: FakeGasStation;

  before(async () => {
    amoy = await startStandInNetwork('amoy');
    proxy = await startRpcProxy(amoy.node.url);
    station = await startFakeGasStation();
  });
  const transactions = (): Promise<number> => amoy.chain.getTransactionCount(amoy.wallet.address);

  /** Another tenant on the chain as it was, with 1 POL. */
  async function startAgain(): Promise<void> {
    await amoy.reset();
    await amoy.fund(parseEther('1'));
    proxy.answer(THROUGH);
    proxy.requests.splice(0);
    proxy.calls.splice(0);
  }

  describe('through the published deployer', () => {
    before(startAgain);

    async function deploy(...args: string[]): Promise<string> {
      const { code, stdout, stderr } = await amoy.deploy(args);
      expect(code, stderr).to.equal(0);
      return stdout;
    }

    it('deploys the registry through the published deployer in one transaction', async () => {
      const { chain, published, wallet } = amoy;
      const block = await chain.getBlockNumber();
      const output = await deploy();
      expect(output).to.match(new RegExp(`deployer +${published.deployer} +published`));
      expect(await transactions()).to.equal(1);
      expect(await chain.getBlock(block + 1).then((mined) => mined?.transactions.length)).to.equal(1);
      const registry = TradeTrustTokenStandard__factory.connect(amoy.registry(), chain);
      expect(await registry.titleEscrowFactory()).to.equal(published.titleEscrowFactory);
      expect(await registry.hasRole(await registry.MINTER_ROLE(), wallet.address)).to.equal(true);
    });

    it('keeps the registry of TOKEN_REGISTRY_ADDRESS when the file of its transaction is lost', async () => {
      const before = amoy.registry();
      expect(dropRegistryFile(amoy.envFile)).to.equal(true);
      expect(await deploy()).to.contain('already deployed');
      expect(amoy.registry()).to.equal(before);
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
        const { code, stdout, stderr } = await amoy.deploy(['--new'], { RPC_URL: `${proxy.url}/v3/${KEY}` });
        expect(code).to.equal(1);
        for (const text of says) expect(stderr).to.contain(text);
        expect(stdout + stderr).not.to.contain(KEY);
      }
    });

    it('fails, and sends nothing, when TOKEN_REGISTRY_ADDRESS cannot be read', async () => {
      dropRegistryFile(amoy.envFile);
      proxy.answer((method, [call]) => {
        const { to = '' } = { ...(call as { to?: string }) };
        const isAsked = method === 'eth_call' && to.toLowerCase() === amoy.registry().toLowerCase();
        return isAsked ? { error: { code: -32000, message: 'try later' } } : 'none';
      });
      const { code, stderr } = await amoy.deploy([], { RPC_URL: proxy.url });
      expect(code).to.equal(1);
      expect(stderr).to.contain('DEPLOYMENT_INCONSISTENT');
      expect(await transactions()).to.equal(1);
    });

    it('fails, and sends nothing, when the registry has no code', async () => {
      await deploy('--new');
      await amoy.chain.send('hardhat_setCode', [amoy.registry(), '0x']);
      const { code, stderr } = await amoy.deploy();
      expect(code).to.equal(1);
      expect(stderr).to.contain('DEPLOYMENT_INCONSISTENT').and.to.contain('--new');
      expect(await transactions()).to.equal(2);
    });
  });

  describe('with a wallet that pays', () => {
    before(startAgain);
    beforeEach(() => station.tell(FEES));

    const deploy = (...args: string[]): Promise<CommandAnswer> =>
      amoy.deploy(args, { GAS_STATION_URL: station.url });

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
      const { code, stdout, stderr } = await deploy();
      expect(code, stdout).to.equal(1);
      expect(stderr).to.contain('WALLET_NOT_FUNDED').and.to.contain(amoy.wallet.address);
      expect(stderr).to.contain(`up to ${formatEther(needed)} POL are needed`);
      expect(stderr).to.contain(`${formatEther(1n)} POL are missing`);
      expect(stderr).not.to.match(/\n +at /);
      expect(await transactions()).to.equal(0);
      expect(await amoy.chain.getBlockNumber()).to.equal(block);
      expect(amoy.registry()).to.equal('');
    });

    it('prints wallet, balance and cost, and offers the fees of the gas station', async () => {
      const needed = await highestCost();
      await amoy.fund(needed);
      const asked = station.asked();
      const { code, stdout, stderr } = await deploy();
      expect(code, stderr).to.equal(0);
      expect(stdout).to.contain(`wallet   ${amoy.wallet.address}`);
      expect(stdout).to.contain(`balance  ${formatEther(needed)} POL`);
      expect(stdout).to.contain(`cost     at most ${formatEther(needed)} POL`);
      expect(stdout.indexOf('cost ')).to.be.lessThan(stdout.indexOf('Deploying the registry'));
      const { type, maxFeePerGas, maxPriorityFeePerGas, gasLimit, from } = await lastTransaction();
      expect({ type, maxFeePerGas, maxPriorityFeePerGas, from }).to.deep.equal({
        type: 2,
        maxFeePerGas: MAX_FEE,
        maxPriorityFeePerGas: PRIORITY_FEE,
        from: amoy.wallet.address,
      });
      expect(gasLimit * MAX_FEE).to.equal(needed);
      expect(station.asked(), 'what is printed is what is offered').to.equal(asked + 1);
    });

    it('links to the registry and to a sent transaction; needs no funds when nothing is sent', async () => {
      const { hash } = await lastTransaction();
      await amoy.fund(0n);
      const { code, stdout } = await deploy();
      expect(code).to.equal(0);
      expect(stdout).to.contain(`https://amoy.polygonscan.com/address/${amoy.registry()}`);
      expect(stdout).not.to.contain('cost ').and.not.to.contain('/tx/');
      await amoy.fund(parseEther('1'));
      const again = await deploy('--new');
      const { hash: newest } = await lastTransaction();
      expect(newest).not.to.equal(hash);
      expect(again.stdout).to.contain(`https://amoy.polygonscan.com/tx/${newest}`);
      expect(again.stdout).to.contain(`https://amoy.polygonscan.com/address/${amoy.registry()}`);
    });

    it('uses the node’s estimate when the gas station fails, and warns', async () => {
      station.fail();
      const { code, stderr } = await deploy('--new');
      expect(code, stderr).to.equal(0);
      expect(stderr).to.contain('warning: The gas station gives no usable fees');
      const { type, maxFeePerGas, maxPriorityFeePerGas, blockNumber } = await lastTransaction();
      const before = await amoy.chain.getBlock((blockNumber ?? 1) - 1);
      expect(type).to.equal(2);
      expect(maxFeePerGas).to.equal(2n * (before?.baseFeePerGas ?? 0n) + (maxPriorityFeePerGas ?? 0n));
    });

    it('uses the published contracts even with --with-infrastructure, and says so', async () => {
      const count = await transactions();
      const { code, stdout } = await deploy('--new', '--with-infrastructure');
      expect(code).to.equal(0);
      expect(stdout).to.contain('The contracts published on amoy are used');
      expect(await transactions()).to.equal(count + 1);
    });
  });

  describe('the commands of the registry’s admin', () => {
    let settings: Record<string, string>;

    before(async () => {
      await startAgain();
      station.tell(FEES);
      settings = {
        ENV_FILE: amoy.envFile,
        WALLET_PRIVATE_KEY: amoy.wallet.privateKey,
        NET: 'amoy',
        RPC_URL: amoy.node.url,
        GAS_STATION_URL: station.url,
      };
      expect(await amoy.deploy()).to.have.property('code', 0);
    });

    const run = (args: string[], changed: Record<string, string> = {}): Promise<CommandAnswer> =>
      askTdocInProcess(args, { ...settings, ...changed });

    it('print the highest cost, offer the fees of the gas station and link to the explorer', async () => {
      const { code, stdout, stderr } = await run([
        'role',
        'grant',
        '--role',
        'minter',
        '--account',
        DEPLOYER,
      ]);
      expect(code, stderr).to.equal(0);
      const hash = /^sent +(0x[0-9a-f]{64})$/m.exec(stdout)?.[1] ?? '';
      expect(stdout.indexOf('cost     at most')).to.be.within(1, stdout.indexOf(hash));
      expect(stdout).to.contain(`wallet   ${amoy.wallet.address}`).and.to.contain('POL');
      expect(stdout).to.contain(`explorer https://amoy.polygonscan.com/tx/${hash}`);
      const transaction = await amoy.chain.getTransaction(hash);
      expect(transaction?.maxFeePerGas).to.equal(MAX_FEE);
      expect(transaction?.maxPriorityFeePerGas).to.equal(PRIORITY_FEE);
    });

    it("use the node's estimate when the gas station fails, and warn", async () => {
      station.fail();
      const { code, stderr } = await run(['role', 'revoke', '--role', 'minter', '--account', DEPLOYER]);
      expect(code, stderr).to.equal(0);
      expect(stderr).to.contain('warning: The gas station gives no usable fees');
    });

    it('send nothing if the wallet cannot pay, if its key is published, or to another chain', async () => {
      const before = await transactions();
      await amoy.fund(1n);
      const poor = await run(['pause']);
      await amoy.fund(parseEther('1'));
      const published = await run(['pause'], { WALLET_PRIVATE_KEY: DEPLOYER_KEY });
      const elsewhere = ['pause', '--network', 'sepolia', '--registry', amoy.registry()];
      const other = await run(elsewhere, { NET: '' });
      expect([poor.code, published.code, other.code]).to.deep.equal([2, 2, 2]);
      expect(poor.stderr).to.contain('WALLET_NOT_FUNDED').and.to.contain('are missing');
      expect(published.stderr).to.contain('WALLET_KEY_PUBLISHED');
      expect(other.stderr).to.contain('CHAIN_ID_MISMATCH');
      expect(await transactions()).to.equal(before);
    });
  });

  // Blocks come at intervals, as on Amoy: a run can be interrupted between sending and mining.
  describe('after an interrupted run', () => {
    hastenSuite(TIMES);

    beforeEach(async () => {
      await startAgain();
      await amoy.chain.send('evm_setAutomine', [false]);
    });

    const mine = (): Promise<unknown> => amoy.chain.send('evm_setIntervalMining', [BLOCK_EVERY_MS]);
    const pending = (): Promise<number> => amoy.chain.getTransactionCount(amoy.wallet.address, 'pending');
    const deploy = (...args: string[]) => amoy.deploy(args, { RPC_URL: proxy.url });

    const sentRaw = (): unknown[] =>
      proxy.requests.filter(({ method }) => method === SEND).map(({ params }) => params[0]);
    const sentHash = () => Transaction.from(sentRaw()[0] as string).hash;

    /** The file of the registry's transaction. */
    async function stepFile(): Promise<string> {
      const { hash } = (await amoy.chain.getBlock(0)) ?? {};
      const folder = `deploy/deployments/chain-80002-${hash?.slice(2, 14)}`;
      return join(PROJECT_ROOT, folder, `registry-${tenantOf(amoy.envFile).key}.json`);
    }

    /** Expects the next run to finish with the transaction of the interrupted one. */
    async function expectFinished(): Promise<void> {
      await mine();
      const { code, stdout, stderr } = await deploy();
      expect(code, stderr).to.equal(0);
      expect(await transactions()).to.equal(1);
      const raw = sentRaw();
      expect(new Set(raw).size, 'the same transaction').to.equal(1);
      expect(stdout).to.contain(`/tx/${Transaction.from(raw[0] as string).hash}`);
      expect(stdout).not.to.contain('cost ');
      const registry = TradeTrustTokenStandard__factory.connect(amoy.registry(), amoy.chain);
      expect(await registry.titleEscrowFactory()).to.equal(amoy.published.titleEscrowFactory);
    }

    it('finds the transactions of a run that was killed while it installed the infrastructure', async () => {
      const { deployer, titleEscrowFactory, tokenImplementation } = amoy.published;
      for (const address of [deployer, titleEscrowFactory, tokenImplementation])
        await amoy.chain.send('hardhat_setCode', [address, '0x']);
      await mine();
      const env = {
        ...inheritedEnvironment(),
        ENV_FILE: amoy.envFile,
        WALLET_PRIVATE_KEY: amoy.wallet.privateKey,
        RPC_URL: proxy.url,
        GAS_STATION_URL: 'none',
        ...hastenedProcess(TIMES),
      };
      const words = [hardhatCli(), 'deploy', '--network', 'amoy', '--with-infrastructure'];
      const child = spawn(process.execPath, words, { cwd: PROJECT_ROOT, env, stdio: 'ignore' });
      const ended = once(child, 'close');
      await eventually('it has sent two transactions', async () => (await pending()) >= 2);
      child.kill('SIGKILL');
      await ended;
      const { code, stdout, stderr } = await deploy();
      expect(code, stderr).to.equal(0);
      expect(await transactions()).to.equal(6);
      const own = /deployer +(0x\w{40})/.exec(stdout)?.[1] ?? '';
      const contract = TDocDeployer__factory.connect(own, amoy.chain);
      expect(await contract.queryFilter(contract.filters.Deployment)).to.have.length(1);
    });

    it('makes one more registry when an interrupted --new is repeated', async () => {
      await mine();
      expect((await deploy()).code).to.equal(0);
      const first = amoy.registry();
      proxy.answer((method) => (method === SEND ? 'drop request' : 'none'));
      expect((await deploy('--new')).code).to.equal(1);
      expect(amoy.registry()).to.equal(first);
      proxy.answer(THROUGH);
      const { code, stderr } = await deploy('--new');
      expect(code, stderr).to.equal(0);
      expect(amoy.registry()).not.to.equal(first);
      expect(await transactions()).to.equal(2);
    });

    it('finishes an interrupted registry of another name, and lets --new make the wanted one', async () => {
      proxy.answer((method) => (method === SEND ? 'drop request' : 'none'));
      expect((await deploy('--token-name', 'First')).code).to.equal(1);
      proxy.answer(THROUGH);
      await mine();
      const wanted = ['--new', '--token-name', 'Second'];
      const refused = await deploy(...wanted);
      expect(refused.code).to.equal(1);
      expect(refused.stderr).to.contain('REGISTRY_DIFFERS').and.to.contain('is "First"');
      const { code, stdout, stderr } = await deploy(...wanted);
      expect(code, stderr).to.equal(0);
      expect(stdout).to.contain('"Second"');
      expect(await transactions()).to.equal(2);
    });

    it('sends the transaction again when the node drops it while the command waits', async () => {
      const running = deploy();
      await eventually('the transaction is sent', async () => (await pending()) === 1);
      await amoy.chain.send('hardhat_dropTransaction', [sentHash()]);
      await eventually('the transaction is sent again', async () => (await pending()) === 1);
      await mine();
      const { code, stderr } = await running;
      expect(code, stderr).to.equal(0);
      expect(await transactions()).to.equal(1);
    });

    it('stops waiting when another transaction used the nonce, and names the file to delete', async () => {
      const running = deploy();
      await eventually('the transaction is sent', async () => (await pending()) === 1);
      await amoy.chain.send('hardhat_dropTransaction', [sentHash()]);
      const wallet = amoy.wallet.connect(amoy.chain);
      await wallet.sendTransaction({ to: amoy.wallet.address, nonce: 0 });
      await mine();
      const { code, stderr } = await running;
      expect(code).to.equal(1);
      expect(stderr)
        .to.contain('DEPLOYMENT_FAILED')
        .and.to.contain(`then delete ${await stepFile()}`);
    });

    it('sends nothing while the file of the transaction is damaged', async () => {
      proxy.answer((method) => (method === SEND ? 'drop request' : 'none'));
      expect((await deploy()).code).to.equal(1);
      proxy.answer(THROUGH);
      writeFileSync(await stepFile(), '{"hashes":');
      const { code, stderr } = await deploy();
      expect(code).to.equal(1);
      expect(stderr)
        .to.contain('DEPLOYMENT_FAILED')
        .and.to.contain(`${await stepFile()} is damaged`);
      expect(await pending()).to.equal(0);
    });

    it('lets no other command work on the chain until its transaction is mined', async () => {
      const mayEstimate = newDeferred<void>();
      proxy.answer(async (method): Promise<Fault> => {
        if (method === 'eth_estimateGas') await mayEstimate.promise;
        return 'none';
      });
      const locked = async () =>
        (await errorOf(withFileLock(dirname(await stepFile()), () => undefined, 0))).code;
      const running = deploy();
      await eventually('it would sign', () => proxy.calls.includes('eth_estimateGas'));
      expect(await locked()).to.equal('FILE_LOCKED');
      mayEstimate.resolve();
      await eventually('the transaction is sent', async () => (await pending()) === 1);
      expect(await locked()).to.equal('FILE_LOCKED');
      await mine();
      expect((await running).code).to.equal(0);
    });

    it('goes on when the answer of the node is lost', async () => {
      proxy.answer((method) => (method === SEND ? 'drop answer' : 'none'));
      await mine();
      const { code, stderr } = await deploy();
      expect(code, stderr).to.equal(0);
      expect(await transactions()).to.equal(1);
      expect(amoy.registry()).to.match(/^0x/);
    });

    it('sends the same transaction again when the node never received it', async () => {
      proxy.answer((method) => (method === SEND ? 'drop request' : 'none'));
      expect((await deploy()).code).to.equal(1);
      expect(await pending()).to.equal(0);
      proxy.answer(THROUGH);
      await expectFinished();
    });

    it('sends no other transaction until the node accepts the refused one', async () => {
      const refusal = { error: { code: -32000, message: 'the mempool is full' } };
      proxy.answer((method) => (method === SEND ? refusal : 'none'));
      for (const attempt of [1, 2]) {
        const { code, stderr } = await deploy();
        expect(code, `attempt ${attempt}`).to.equal(1);
        expect(stderr).to.contain('DEPLOYMENT_FAILED').and.to.contain('the mempool is full');
      }
      expect(await pending()).to.equal(0);
      proxy.answer(THROUGH);
      await expectFinished();
    });

    it('prints and offers the current fees after the node refused lower ones', async () => {
      const block = await amoy.chain.getBlock('latest');
      const offer = (maxFee: number) => {
        station.tell({ maxFee, maxPriorityFee: maxFee });
        return amoy.deploy([], { RPC_URL: proxy.url, GAS_STATION_URL: station.url });
      };
      await amoy.chain.send('evm_setAutomine', [true]);
      expect(Number(block?.baseFeePerGas)).to.be.greaterThan(1);
      const { code, stderr } = await offer(0.000000001);
      expect(code).to.equal(1);
      expect(stderr).to.contain('DEPLOYMENT_FAILED').and.to.contain('too low');
      const again = await offer(50);
      expect(again.code, again.stderr).to.equal(0);
      expect(again.stdout).to.contain('at up to 50 gwei');
      expect(await transactions()).to.equal(1);
      expect(amoy.registry()).to.match(/^0x/);
    });
  });
});
