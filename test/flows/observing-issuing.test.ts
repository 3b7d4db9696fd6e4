import { join } from 'node:path';
import { expect } from 'chai';
import { toQuantity, Wallet } from 'ethers';
import { systemTime } from '../../service/base/time';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { withoutMining } from '../helpers/chain/mine-blocks';
import { eventually } from '../helpers/eventually';
import { healthOf, metricOf, type IssuingHealth } from '../helpers/processes/health-and-metrics';
import { startRpcProxy, type Answerer, type Fault } from '../helpers/chain/rpc-proxy';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

const NO_MINTS = { waiting: 0, inFlight: 0, mined: 0 };
const ETHER = 10n ** 18n;

describe('the state of issuing in GET /health and GET /metrics', () => {
  const local = localSetupOfSuite();
  let wallet: { address: string; privateKey: string };
  let settings: Record<string, string>;
  let folders = 0;

  before(async () => {
    wallet = Wallet.createRandom();
    const registry = await registryAsAdmin();
    await (await registry.grantRole(await registry.MINTER_ROLE(), wallet.address)).wait();
  });

  beforeEach(async () => {
    await local.client.send('hardhat_setBalance', [wallet.address, toQuantity(ETHER)]);
    const DATA_DIR = join(local.folder, `data-${++folders}`);
    settings = { ...local.settings, WALLET_PRIVATE_KEY: wallet.privateKey, DATA_DIR };
  });

  const registryAsAdmin = async (): Promise<ReturnType<typeof TradeTrustTokenStandard__factory.connect>> =>
    TradeTrustTokenStandard__factory.connect(local.registryAddress, await local.client.getSigner(0));
  const issue = async ({ url }: RunningService): Promise<CreateAnswer> => {
    const owner = await local.account(1);
    return create(url, { ...minimal, owner, holder: owner });
  };
  const issuingOf = async ({ url }: RunningService): Promise<IssuingHealth> => {
    const { issuing } = await healthOf(url);
    if (issuing === undefined) throw new Error('nothing is said of issuing');
    return issuing;
  };

  async function withService(
    changed: Record<string, string>,
    use: (service: RunningService) => Promise<void>,
  ): Promise<void> {
    await using service = await startService({ ...settings, ...changed });
    await use(service);
  }

  it('has the balance of the wallet and the mints that it can pay for, once they are read', async () => {
    await withService({}, async (service) => {
      const begun = systemTime.now();
      const first = await issuingOf(service);
      expect(first).to.include.all.keys('mints', 'signing', 'signers');
      expect(first.mints).to.deep.equal(NO_MINTS);
      expect(first.signing).to.deep.equal({ waiting: 0, busy: 0, threads: 1 });
      const read = await eventually('the balance is read', async () => (await issuingOf(service)).wallet);
      expect(read).to.include({ address: wallet.address, balanceWei: ETHER.toString() });
      expect(Date.parse(read.readAt)).to.be.within(begun, systemTime.now());
      const { maxFeePerGas } = await local.client.getFeeData();
      expect(read.isGasEstimated).to.equal(true);
      expect(read.gasOfMint).to.be.within(300_000, 400_000);
      const cost = (maxFeePerGas ?? 0n) * BigInt(read.gasOfMint);
      expect(read.mintsAffordable).to.be.closeTo(Number(ETHER / cost), 5);
      expect(await metricOf(service.url, 'etr_wallet_balance_wei')).to.equal(Number(ETHER));
      expect(await metricOf(service.url, 'etr_wallet_mints_affordable')).to.equal(read.mintsAffordable);
    });
  });

  it('has a mint in flight, with its age, until it is mined', async () => {
    await withService({}, async (service) => {
      let answer: Promise<CreateAnswer> | undefined;
      await withoutMining(local, async () => {
        answer = issue(service);
        await eventually('it is sent', async () => (await issuingOf(service)).mints?.inFlight === 1);
        expect(await metricOf(service.url, 'etr_mints')).to.equal(1);
        await eventually('it is a second old', async () => {
          return ((await issuingOf(service)).mints?.oldestSeconds ?? 0) >= 1;
        });
        expect(await metricOf(service.url, 'etr_mint_oldest_seconds')).to.be.at.least(1);
      });
      expect((await answer)?.status).to.equal(200);
      expect((await issuingOf(service)).mints).to.deep.equal(NO_MINTS);
      expect(await metricOf(service.url, 'etr_mints')).to.equal(0);
    });
  });

  it('has the code and the time of the last failed mint', async () => {
    const registry = await registryAsAdmin();
    let isPaused = false;
    // The pause comes between simulation and transaction; earlier, nothing would be stored.
    const owner = (await local.account(1)).slice(2).toLowerCase();
    const pausing: Answerer = async (method, [call]): Promise<Fault> => {
      // The service also estimates a mint of its own, for the state of the wallet.
      if (method === 'eth_estimateGas' && (call as { data: string }).data.includes(owner) && !isPaused) {
        isPaused = true;
        await (await registry.pause('0x')).wait();
      }
      return 'none';
    };
    const proxy = await startRpcProxy(local.node.url, pausing);
    await withService({ RPC_URL: proxy.url }, async (service) => {
      const begun = systemTime.now();
      expect((await issue(service)).status).to.equal(500);
      const { mints } = await issuingOf(service);
      expect(mints).to.deep.include(NO_MINTS);
      expect(mints?.lastFailure?.code).to.equal('MINT_SIMULATION_FAILED');
      expect(Date.parse(mints?.lastFailure?.at ?? '')).to.be.within(begun, systemTime.now());
      const text = await (await fetch(`${service.url}/metrics`)).text();
      expect(text).to.match(/^etr_mints_failed_total\{code="MINT_SIMULATION_FAILED"\} 1$/m);
      expect(await healthOf(service.url)).to.include({ httpStatus: 200, status: 'ok' });
    });
  });
});
