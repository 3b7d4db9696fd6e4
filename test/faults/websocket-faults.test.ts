import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { WebSocketServer } from 'ws';
import { freePort } from '../../devnet/place';
import { createRpcClient } from '../../service/chain/rpc-client';
import { findNetwork, type Network } from '../../service/chain/networks';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { whileFollowing } from '../helpers/processes/followed-registry';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { BOMB, startRpcProxy } from '../helpers/chain/rpc-proxy';
import { startReceiver } from '../helpers/receiver/running-receiver';
import { startService } from '../helpers/processes/running-service';
import { startTcpProxy } from '../helpers/processes/tcp-proxy';
import { makeTraffic } from '../helpers/chain/traffic';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

describe('the service with a node over WebSocket', () => {
  let local: LocalSetup;

  before(async () => {
    local = await createLocalSetup();
  });

  after(() => local?.stop());

  it('issues and delivers, also after the connection is cut', async () => {
    const proxy = await startTcpProxy(Number(new URL(local.node.url).port));
    const receiver = await startReceiver(local.folder, local.publicKeyFile);
    const RPC_URL = `ws://127.0.0.1:${proxy.port}`;
    const service = await startService({ ...local.settings, RPC_URL, WEBHOOK_URL: receiver.url });
    const owner = await local.account(1);
    const issue = async (): Promise<number> =>
      (await create(service.url, { ...minimal, owner, holder: owner })).status;
    try {
      expect(await issue()).to.equal(200);
      await eventually('five events', () => receiver.events.length === 5);
      expect(proxy.cut()).to.be.greaterThan(0);
      await eventually('it is connected again', async () => (await issue()) === 200);
      await eventually('the events since', () => receiver.events.length >= 10);
    } finally {
      await service.stop();
      await receiver.close();
      await proxy.close();
    }
  });

  it('delivers each event once when the connection is cut repeatedly meanwhile', async () => {
    const proxy = await startTcpProxy(Number(new URL(local.node.url).port));
    const settings = { RPC_URL: `ws://127.0.0.1:${proxy.port}` };
    try {
      await whileFollowing(local, { name: 'cut-again', settings }, async (followed) => {
        for (let round = 0; round < 4; round++) {
          await followed.caughtUp();
          const traffic = makeTraffic(local, { tokens: 2, rounds: 2 });
          for (let cuts = 0; cuts < 3; cuts++) {
            const connections = await eventually('it is connected', () => proxy.cut() || undefined);
            expect(connections).to.be.greaterThan(0);
          }
          await traffic;
          proxy.refuse();
          await makeTraffic(local, { tokens: 1, rounds: 1 });
          proxy.accept();
        }
        await followed.allDeliveredOnce();
      });
    } finally {
      await proxy.close();
    }
  });

  it('subscribes to new blocks again on every connection after a broken one', async () => {
    const proxy = await startTcpProxy(Number(new URL(local.node.url).port), '"eth_subscription"');
    const settings = { RPC_URL: `ws://127.0.0.1:${proxy.port}` };
    try {
      await whileFollowing(local, { name: 'new-heads', settings }, async () => {
        for (let connection = 0; connection < 3; connection++) {
          const before = proxy.sightings();
          await eventually('the node tells of a block', async () => {
            await mineBlocks(local, 1);
            return proxy.sightings() > before;
          });
          proxy.cut();
        }
      });
    } finally {
      await proxy.close();
    }
  });

  it('connects again after answers that are too large, and reads such ranges in parts', async () => {
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    await makeTraffic(local, { tokens: 2, rounds: 1 });
    await local.client.send('hardhat_mine', ['0x7d0']);
    const proxy = await startRpcProxy(local.node.url, () => BOMB);
    const front = await startSocketFront(proxy.url);
    const settings = { RPC_URL: front.url };
    try {
      await whileFollowing(local, { name: 'too-large', settings, fromBlock }, async (followed) => {
        const failed = 'the chain cannot be read: ';
        const line = await eventually('it fails', () =>
          followed.service.log.find(({ msg }) => msg?.startsWith(failed)),
        );
        expect(line.msg).to.contain('larger than 64 MB');
        const since = proxy.requests.length;
        proxy.answer((_, [filter]) => (widthOf(filter) > 600 ? BOMB : 'none'));
        await followed.allDeliveredOnce();
        const widths = proxy.requests.slice(since).map(({ params: [filter] }) => widthOf(filter));
        expect(Math.max(...widths)).to.be.greaterThan(600);
      });
    } finally {
      await front.close();
      await proxy.close();
    }
  });

  it('runs without the node, and logs that it does not answer', async () => {
    const RPC_URL = `ws://127.0.0.1:${await freePort(0)}`;
    const service = await startService({
      ...local.settings,
      RPC_URL,
      DATA_DIR: join(local.folder, 'nobody'),
    });
    try {
      expect((await fetch(service.url)).status).to.equal(200);
      expect(service.log.some(({ msg }) => msg?.includes('does not answer'))).to.equal(true);
    } finally {
      await service.stop();
    }
  });

  it('shares one connection between requests that come while it opens', async () => {
    const proxy = await startTcpProxy(Number(new URL(local.node.url).port));
    const client = createRpcClient(`ws://127.0.0.1:${proxy.port}`, findNetwork('31337') as Network);
    try {
      await Promise.all(Array.from({ length: 5 }, () => client.getBlockNumber()));
      expect(proxy.cut()).to.equal(1);
      await eventually('a new connection', () => client.getBlockNumber().then(Boolean, () => false));
      expect(proxy.cut()).to.equal(1);
    } finally {
      client.destroy();
      await proxy.close();
    }
  });
});

/** A node over WebSocket: it passes requests on to a node over HTTP, and its answers back. */
async function startSocketFront(nodeUrl: string): Promise<{ url: string; close(): Promise<void> }> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  server.on('connection', (socket) => {
    socket.on('message', (body) => {
      const headers = { 'Content-Type': 'application/json' };
      fetch(nodeUrl, { method: 'POST', headers, body: (body as Buffer).toString() })
        .then((answer) => answer.text())
        .then((text) => socket.send(text))
        .catch(() => socket.terminate());
    });
  });
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of server.clients) socket.terminate();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The number of blocks that a filter of logs asks for; 0 for other parameters. */
function widthOf(filter: unknown): number {
  const { fromBlock, toBlock } = (filter ?? {}) as { fromBlock?: string; toBlock?: string };
  return fromBlock === undefined ? 0 : Number(toBlock) - Number(fromBlock) + 1;
}
