import { join } from 'node:path';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { startRpcProxy, type Fault } from '../helpers/chain/rpc-proxy';
import { startService } from '../helpers/processes/running-service';
import { createLocalSetup, DEPLOYER, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';

describe('issuing through a faulty node or with a poor wallet', () => {
  let local: LocalSetup;
  let owner: string;

  before(async () => {
    local = await createLocalSetup();
    owner = await local.account(1);
  });

  after(() => local?.stop());

  /** Issues through a proxy that fails the first calls of a method in the given way. */
  async function issueThrough(
    method: string,
    fault: Fault,
    times = 2,
  ): Promise<{ status: number; mints: number }> {
    let left = times;
    const proxy = await startRpcProxy(local.node.url, (called) =>
      called === method && left-- > 0 ? fault : 'none',
    );
    const settings = {
      ...local.settings,
      RPC_URL: proxy.url,
      DATA_DIR: join(local.folder, `${method}-${fault}`),
    };
    const service = await startService(settings);
    try {
      const before = await local.client.getTransactionCount(DEPLOYER);
      const { status } = await create(service.url, { ...minimal, owner, holder: owner });
      return { status, mints: (await local.client.getTransactionCount(DEPLOYER)) - before };
    } finally {
      await service.stop();
      await proxy.close();
    }
  }

  it('mints once when the connection breaks after the node took the transaction', async () => {
    expect(await issueThrough('eth_sendRawTransaction', 'drop answer')).to.deep.equal({
      status: 200,
      mints: 1,
    });
  });

  it('mints once when the connection breaks before the node gets the transaction', async () => {
    expect(await issueThrough('eth_sendRawTransaction', 'drop request')).to.deep.equal({
      status: 200,
      mints: 1,
    });
  });

  it('mints once when a connection breaks during the gas estimate', async () => {
    expect(await issueThrough('eth_estimateGas', 'drop answer')).to.deep.equal({ status: 200, mints: 1 });
  });

  it('answers 200 when receipts cannot be read for a while', async () => {
    expect(await issueThrough('eth_getTransactionReceipt', 'drop request', 12)).to.deep.equal({
      status: 200,
      mints: 1,
    });
  });

  it('mints once when the node gets the transaction only after many attempts', async () => {
    expect(await issueThrough('eth_sendRawTransaction', 'drop request', 12)).to.deep.equal({
      status: 200,
      mints: 1,
    });
  });

  it('waits while the gas cannot be estimated', async () => {
    expect(await issueThrough('eth_estimateGas', 'drop request', 12)).to.deep.equal({
      status: 200,
      mints: 1,
    });
  });

  it('answers 500 and mints nothing when the mint cannot be simulated', async () => {
    expect(await issueThrough('eth_call', 'drop request', 40)).to.deep.equal({ status: 500, mints: 0 });
  });

  it('answers 500 and logs the missing funds when the wallet cannot pay', async () => {
    const poor = Wallet.createRandom();
    const admin = TradeTrustTokenStandard__factory.connect(
      local.registryAddress,
      await local.client.getSigner(0),
    );
    await (await admin.grantRole(await admin.MINTER_ROLE(), poor.address)).wait();
    const settings = {
      ...local.settings,
      WALLET_PRIVATE_KEY: poor.privateKey,
      DATA_DIR: join(local.folder, 'poor'),
    };
    const service = await startService(settings);
    try {
      const { status, requestId } = await create(service.url, { ...minimal, owner, holder: owner });
      expect(status).to.equal(500);
      const line = service.log.find((entry) => entry.requestId === requestId && 'error' in entry);
      expect(JSON.stringify(line))
        .to.match(/MINT_SIMULATION_FAILED|TRANSACTION_REJECTED/)
        .and.match(/fund/);
    } finally {
      await service.stop();
    }
  });

  it('issues after another process used the same wallet', async () => {
    const service = await startService({ ...local.settings, DATA_DIR: join(local.folder, 'shared') });
    const other = new Wallet(DEPLOYER_KEY, local.client);
    try {
      for (let round = 0; round < 3; round++) {
        await (await other.sendTransaction({ to: owner, value: 1n })).wait();
        expect((await create(service.url, { ...minimal, owner, holder: owner })).status).to.equal(200);
      }
    } finally {
      await service.stop();
    }
  });
});
