import { join } from 'node:path';
import { expect } from 'chai';
import { toQuantity, Wallet } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { healthOf, metricOf, type IssuingHealth } from '../helpers/processes/health-and-metrics';
import { postgresDatabase } from '../helpers/database/postgres';
import { startRpcProxy, type Answerer, type Fault } from '../helpers/chain/rpc-proxy';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { startTcpProxy } from '../helpers/processes/tcp-proxy';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const NO_MINTS = { waiting: 0, inFlight: 0, mined: 0 };
const ETHER = 10n ** 18n;

describe('the state of issuing in GET /health and GET /metrics', () => {
  let local: LocalSetup;
  let wallet: { address: string; privateKey: string };
  let settings: Record<string, string>;
  let folders = 0;

  before(async () => {
    local = await createLocalSetup();
    wallet = Wallet.createRandom();
    const registry = await registryAsAdmin();
    await (await registry.grantRole(await registry.MINTER_ROLE(), wallet.address)).wait();
  });

  after(() => local?.stop());

  beforeEach(async () => {
    await setBalance(ETHER);
    const DATA_DIR = join(local.folder, `data-${++folders}`);
    settings = { ...local.settings, WALLET_PRIVATE_KEY: wallet.privateKey, DATA_DIR };
  });

  const registryAsAdmin = async (): Promise<ReturnType<typeof TradeTrustTokenStandard__factory.connect>> =>
    TradeTrustTokenStandard__factory.connect(local.registryAddress, await local.client.getSigner(0));
  const setBalance = (wei: bigint): Promise<unknown> =>
    local.client.send('hardhat_setBalance', [wallet.address, toQuantity(wei)]);
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
    use: (service: RunningService) => Promise<void>,
    changed: Record<string, string> = {},
  ): Promise<void> {
    const service = await startService({ ...settings, ...changed });
    try {
      await use(service);
    } finally {
      await service.stop();
    }
  }

  async function withNode(
    answerer: Answerer,
    use: (service: RunningService) => Promise<void>,
  ): Promise<void> {
    const proxy = await startRpcProxy(local.node.url, answerer);
    try {
      await withService(use, { RPC_URL: proxy.url });
    } finally {
      await proxy.close();
    }
  }

  /** Runs `use` while nothing is mined, and then mines a block. */
  async function withoutBlocks(use: () => Promise<void>): Promise<void> {
    await local.client.send('evm_setAutomine', [false]);
    try {
      await use();
    } finally {
      await local.client.send('evm_setAutomine', [true]);
      await local.client.send('evm_mine', []);
    }
  }

  it('has the balance of the wallet and the mints that it can pay for, once they are read', async () => {
    await withService(async (service) => {
      const first = await issuingOf(service);
      expect(first).to.have.keys('mints', 'signing');
      expect(first.mints).to.deep.equal(NO_MINTS);
      expect(first.signing).to.deep.equal({ waiting: 0, busy: 0, threads: 1 });
      const read = await eventually('the balance is read', async () => (await issuingOf(service)).wallet);
      expect(read).to.include({ address: wallet.address, balanceWei: ETHER.toString() });
      expect(Date.now() - Date.parse(read.readAt)).to.be.within(0, 10_000);
      const { maxFeePerGas } = await local.client.getFeeData();
      expect(read.mintsAffordable).to.be.closeTo(Number(ETHER / ((maxFeePerGas ?? 0n) * 350_000n)), 5);
      expect(await metricOf(service.url, 'etr_wallet_balance_wei')).to.equal(Number(ETHER));
      expect(await metricOf(service.url, 'etr_wallet_mints_affordable')).to.equal(read.mintsAffordable);
    });
  });

  it('has an empty wallet that can pay for no mint, and the status stays ok', async () => {
    await setBalance(0n);
    await withService(async (service) => {
      const read = await eventually('the balance is read', async () => (await issuingOf(service)).wallet);
      expect(read).to.include({ balanceWei: '0', mintsAffordable: 0 });
      expect(await healthOf(service.url)).to.include({ httpStatus: 200, status: 'ok' });
      expect(await metricOf(service.url, 'etr_wallet_mints_affordable')).to.equal(0);
    });
  });

  it('comes at once, without the wallet, while the node does not answer with the balance', async () => {
    const never: Answerer = (method) =>
      method === 'eth_getBalance' ? new Promise<never>(() => undefined) : 'none';
    await withNode(never, async (service) => {
      const begun = performance.now();
      for (let round = 0; round < 3; round++)
        expect(await issuingOf(service)).to.have.keys('mints', 'signing');
      expect(performance.now() - begun).to.be.lessThan(1_500);
      expect(await metricOf(service.url, 'etr_wallet_balance_wei')).to.equal(undefined);
      expect(await metricOf(service.url, 'etr_mint_oldest_seconds')).to.equal(0);
    });
  });

  it('has a mint in flight, with its age, until it is mined', async () => {
    await withService(async (service) => {
      let answer: Promise<CreateAnswer> | undefined;
      await withoutBlocks(async () => {
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

  it('has a mined mint until it is final', async () => {
    await withService(
      async (service) => {
        expect((await issue(service)).status).to.equal(200);
        expect((await issuingOf(service)).mints).to.deep.equal({ ...NO_MINTS, mined: 1 });
        await local.client.send('hardhat_mine', ['0x3']);
        await eventually('it is final', async () => (await issuingOf(service)).mints?.mined === 0);
      },
      { CONFIRMATIONS: '3' },
    );
  });

  it('has the code and the time of the last failed mint', async () => {
    const registry = await registryAsAdmin();
    let isPaused = false;
    // The pause comes between simulation and transaction; earlier, nothing would be stored.
    const pausing: Answerer = async (method): Promise<Fault> => {
      if (method === 'eth_estimateGas' && !isPaused) {
        isPaused = true;
        await (await registry.pause('0x')).wait();
      }
      return 'none';
    };
    try {
      await withNode(pausing, async (service) => {
        expect((await issue(service)).status).to.equal(500);
        const { mints } = await issuingOf(service);
        expect(mints).to.deep.include(NO_MINTS);
        expect(mints?.lastFailure?.code).to.equal('MINT_SIMULATION_FAILED');
        expect(Date.now() - Date.parse(mints?.lastFailure?.at ?? '')).to.be.within(0, 10_000);
        const text = await (await fetch(`${service.url}/metrics`)).text();
        expect(text).to.match(/^etr_mints_failed_total\{code="MINT_SIMULATION_FAILED"\} 1$/m);
        expect(await healthOf(service.url)).to.include({ httpStatus: 200, status: 'ok' });
      });
    } finally {
      await (await registry.unpause('0x')).wait();
    }
  });

  it('is absent while settings are missing', async () => {
    await withService(
      async (service) => {
        expect(await healthOf(service.url))
          .to.include({ status: 'ok' })
          .and.not.to.have.property('issuing');
        expect(await metricOf(service.url, 'etr_mints')).to.equal(undefined);
        expect(await metricOf(service.url, 'etr_signing_busy')).to.equal(undefined);
      },
      { WALLET_PRIVATE_KEY: '' },
    );
  });

  it('is the same in all processes that share a database, whichever of them mints', async function () {
    const database = await postgresDatabase();
    if (database === undefined) return this.skip();
    const shared = { ...settings, DATABASE_URL: database.url };
    const services = [await startService(shared), await startService(shared)] as const;
    try {
      let answers: Promise<CreateAnswer[]> | undefined;
      await withoutBlocks(async () => {
        answers = Promise.all(services.map(issue));
        for (const service of services) {
          await eventually('both are sent', async () => (await issuingOf(service)).mints?.inFlight === 2);
          expect(await metricOf(service.url, 'etr_mints')).to.equal(2);
        }
      });
      expect((await answers)?.map(({ status }) => status)).to.deep.equal([200, 200]);
    } finally {
      await Promise.all(services.map((service) => service.stop()));
      database.drop();
    }
  });

  it('omits only the mints while the database is unreachable', async function () {
    const database = await postgresDatabase();
    if (database === undefined) return this.skip();
    const url = new URL(database.url);
    const proxy = await startTcpProxy(Number(url.port));
    url.port = String(proxy.port);
    try {
      await withService(
        async (service) => {
          await eventually('the balance is read', async () => (await issuingOf(service)).wallet);
          expect((await issuingOf(service)).mints).to.deep.equal(NO_MINTS);
          proxy.refuse();
          const away = await issuingOf(service);
          expect(away).to.have.keys('signing', 'wallet');
          expect((await healthOf(service.url)).status).to.equal('ok');
          expect(await metricOf(service.url, 'etr_mints')).to.equal(undefined);
          expect(await metricOf(service.url, 'etr_mint_oldest_seconds')).to.equal(undefined);
          proxy.accept();
          await eventually('it is back', async () => (await issuingOf(service)).mints !== undefined);
        },
        { DATABASE_URL: url.href },
      );
    } finally {
      await proxy.close();
      database.drop();
    }
  });
});
