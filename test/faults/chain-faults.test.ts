import { join } from 'node:path';
import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/create-call';
import { eventually } from '../helpers/eventually';
import { startRpcProxy } from '../helpers/rpc-proxy';
import { startReceiver } from '../helpers/running-receiver';
import { startService } from '../helpers/running-service';
import { createWorld, type World } from '../helpers/world';

describe('reading the chain when things fail', () => {
  let world: World;
  let owner: string;

  before(async () => {
    world = await createWorld();
    owner = await world.account(1);
  });

  after(() => world?.stop());

  const post = (url: string) => create(url, { ...minimal, owner, holder: owner });

  it('loses nothing and repeats nothing when every third call to the node fails', async () => {
    let calls = 0;
    let failing = false;
    const proxy = await startRpcProxy(world.node.url, (method) => {
      const isReading =
        method === 'eth_getLogs' || method === 'eth_getBlockByNumber' || method === 'eth_blockNumber';
      return failing && isReading && ++calls % 3 === 0 ? 'drop answer' : 'none';
    });
    const folder = join(world.folder, 'every-third');
    const receiver = await startReceiver(folder, world.publicKeyFile);
    const settings = { ...world.settings, RPC_URL: proxy.url, DATA_DIR: folder, WEBHOOK_URL: receiver.url };
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

  it('delivers nothing before it has its confirmations', async () => {
    const folder = join(world.folder, 'confirmations');
    const receiver = await startReceiver(folder, world.publicKeyFile);
    const START_BLOCK = String((await world.client.getBlockNumber()) + 1);
    const settings = {
      ...world.settings,
      DATA_DIR: folder,
      WEBHOOK_URL: receiver.url,
      CONFIRMATIONS: '3',
      START_BLOCK,
    };
    const service = await startService(settings);
    await post(service.url);
    await world.client.send('hardhat_mine', ['0x2']);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(receiver.events).to.have.length(0);
    await world.client.send('hardhat_mine', ['0x1']);
    await eventually('five events', () => receiver.events.length === 5);
    await service.stop();
    await receiver.close();
  });
});
