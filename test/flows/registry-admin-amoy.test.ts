import { join } from 'node:path';
import { expect } from 'chai';
import { type JsonRpcProvider, Wallet, parseUnits } from 'ethers';
import { type HardhatNode, nodeClient } from '../../devnet/hardhat-node';
import { publishedContractsOf } from '../../deploy/published-contracts';
import { readSettings } from '../../service/config/config';
import type { CommandAnswer } from '../helpers/processes/command-answer';
import { hardhatInProcess } from '../helpers/processes/hardhat-in-process';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startFakeGasStation, type FakeGasStation } from '../helpers/chain/fake-gas-station';
import { startNode } from '../helpers/chain/node';
import { track } from '../helpers/resources';
import { installContracts } from '../../devnet/local-chain';
import { temporaryFolder } from '../helpers/temporary-folder';
import { DEPLOYER, DEPLOYER_KEY } from '../helpers/chain/local-setup';

const AMOY = 80002;
const ONE_POL = 10n ** 18n;

describe('registry admin commands on Amoy', () => {
  const folder = temporaryFolder();
  const wallet = Wallet.createRandom();
  let node: HardhatNode;
  let chain: JsonRpcProvider;
  let station: FakeGasStation;
  let untrack: () => unknown;
  let settings: Record<string, string>;

  before(async () => {
    node = await startNode(0, AMOY);
    untrack = track(`node on ${node.url}`);
    chain = nodeClient(node.url, AMOY);
    await installContracts(chain, publishedContractsOf(AMOY));
    station = await startFakeGasStation();
    station.tell({ maxFee: 41.5, maxPriorityFee: 30.25 });
    settings = {
      ENV_FILE: join(folder.path, 'amoy.env'),
      WALLET_PRIVATE_KEY: wallet.privateKey,
      NET: 'amoy',
      RPC_URL: node.url,
      GAS_STATION_URL: station.url,
    };
    await fund(ONE_POL);
    await hardhatInProcess(['deploy', '--network', 'amoy'], settings);
  });

  after(async () => {
    chain?.destroy();
    await node?.stop();
    untrack?.();
    await station?.close();
    folder.remove();
  });

  const fund = (wei: bigint): Promise<unknown> =>
    chain.send('hardhat_setBalance', [wallet.address, `0x${wei.toString(16)}`]);
  const nonce = (): Promise<number> => chain.getTransactionCount(wallet.address);
  const run = (args: string[], changed: Record<string, string> = {}): Promise<CommandAnswer> =>
    askTdocInProcess(args, { ...settings, ...changed });

  it('print the highest cost first, offer the fees of the gas station and link to the explorer', async () => {
    const { code, stdout, stderr } = await run(['role', 'grant', '--role', 'minter', '--account', DEPLOYER]);
    expect(code, stderr).to.equal(0);
    const hash = /^sent +(0x[0-9a-f]{64})$/m.exec(stdout)?.[1] ?? '';
    expect(stdout.indexOf('cost     at most')).to.be.within(1, stdout.indexOf(hash));
    expect(stdout).to.contain(`wallet   ${wallet.address}`).and.to.contain('POL');
    expect(stdout).to.contain(`explorer https://amoy.polygonscan.com/tx/${hash}`);
    const transaction = await chain.getTransaction(hash);
    expect(transaction?.maxFeePerGas).to.equal(parseUnits('41.5', 'gwei'));
    expect(transaction?.maxPriorityFeePerGas).to.equal(parseUnits('30.25', 'gwei'));
  });

  it("use the node's estimate when the gas station fails, and warn", async () => {
    station.fail();
    const { code, stderr } = await run(['role', 'revoke', '--role', 'minter', '--account', DEPLOYER]);
    expect(code, stderr).to.equal(0);
    expect(stderr).to.contain('warning: The gas station gives no usable fees');
  });

  it('send nothing when the wallet cannot pay, and name the missing amount', async () => {
    await fund(1n);
    const before = await nonce();
    const { code, stderr } = await run(['pause']);
    await fund(ONE_POL);
    expect(code).to.equal(2);
    expect(stderr).to.contain('WALLET_NOT_FUNDED').and.to.contain('are missing');
    expect(await nonce()).to.equal(before);
  });

  it("refuse Hardhat's published keys", async () => {
    const { code, stderr } = await run(['pause'], { WALLET_PRIVATE_KEY: DEPLOYER_KEY });
    expect(code).to.equal(2);
    expect(stderr).to.contain('WALLET_KEY_PUBLISHED');
  });

  it('send nothing to a node of another chain than --network', async () => {
    const before = await nonce();
    const { TOKEN_REGISTRY_ADDRESS: registry = '' } = readSettings(settings).settings;
    const other = { NET: '' };
    const { code, stderr } = await run(['pause', '--network', 'sepolia', '--registry', registry], other);
    expect(code).to.equal(2);
    expect(stderr).to.contain('CHAIN_ID_MISMATCH');
    expect(await nonce()).to.equal(before);
  });
});
