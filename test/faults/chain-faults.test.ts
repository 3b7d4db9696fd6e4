import { join } from 'node:path';
import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { startRpcProxy } from '../helpers/chain/rpc-proxy';
import { startReceiver } from '../helpers/receiver/running-receiver';
import { startService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

describe('the chain watcher', () => {
  let local: LocalSetup;
  let owner: string;

  before(async () => {
    local = await createLocalSetup();
    owner = await local.account(1);
  });

  after(() => local?.stop());

  const post = (url: string) => create(url, { ...minimal, owner, holder: owner });

  it('finds every event once when every third read from the node fails', async () => {
    let calls = 0;
    let failing = false;
    const proxy = await startRpcProxy(local.node.url, (method) => {
      const isReading =
        method === 'eth_getLogs' || method === 'eth_getBlockByNumber' || method === 'eth_blockNumber';
      return failing && isReading && ++calls % 3 === 0 ? 'drop answer' : 'none';
    });
    const folder = join(local.folder, 'every-third');
    const receiver = await startReceiver(folder, local.publicKeyFile);
    const settings = { ...local.settings, RPC_URL: proxy.url, DATA_DIR: folder, WEBHOOK_URL: receiver.url };
    const service = await startService(settings);
    failing = true;
    for (let mint = 0; mint < 3; mint++) expect((await post(service.url)).status).to.equal(200);
    await eventually('fifteen events', () => receiver.events.length >= 15);
    await service.stop();
    await receiver.close();
    await proxy.close();
    expect(receiver.events).to.have.length(15);
    expect(calls).to.be.greaterThan(9);
  });

  it('holds an event back until its block has CONFIRMATIONS blocks', async () => {
    const folder = join(local.folder, 'confirmations');
    const receiver = await startReceiver(folder, local.publicKeyFile);
    const START_BLOCK = String((await local.client.getBlockNumber()) + 1);
    const settings = {
      ...local.settings,
      DATA_DIR: folder,
      WEBHOOK_URL: receiver.url,
      CONFIRMATIONS: '3',
      START_BLOCK,
    };
    const service = await startService(settings);
    await post(service.url);
    await local.client.send('hardhat_mine', ['0x2']);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(receiver.events).to.have.length(0);
    await local.client.send('hardhat_mine', ['0x1']);
    await eventually('five events', () => receiver.events.length === 5);
    await service.stop();
    await receiver.close();
  });
});
