import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Block } from 'ethers';
import { placeOf } from '../../devnet/place';
import { startDevnet } from '../../devnet/start-devnet';
import { errorOf } from '../helpers/error-of';
import { eventually } from '../helpers/eventually';
import { runningDevnet } from '../helpers/processes/running-devnet';
import { startRawReceiver } from '../helpers/receiver/raw-receiver';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';

describe('startDevnet with other options', () => {
  describe('for Stability, kept', () => {
    const options = {
      network: 'stability',
      // A reorganisation mines all blocks again: few come.
      blockTime: 0.25,
      confirmations: 3,
      keep: true,
      folder: temporaryFolder().path,
    } as const;
    let tokenId: string;
    let head: Block | null;
    let urls: object;
    let receiverUrl: string;

    it('stands in for it at a block time, and delivers after the confirmations', async () => {
      await using devnet = await runningDevnet(options);
      const issued = await devnet.issue();
      ({ tokenId } = issued);
      const tokenNetwork = { chain: 'FREE', chainId: '101010' };
      expect(issued.document.credentialStatus).to.deep.include({ tokenNetwork });
      const { data } = await devnet.webhooks.next({ type: 'minted', tokenId });
      expect(data).to.include({ chainKey: 'stability', chainId: 101010 });
      expect(await devnet.client.getBlockNumber()).to.be.at.least(data.blockNumber + 3);
      const { transactionHash } = await devnet.transferHolder(tokenId, { to: 2 });
      await devnet.reorganise(1);
      // The confirmations come only if the node goes on mining by itself.
      await devnet.webhooks.next({ type: 'holder_transfer', transactionHash });
      await devnet.reorganise(2);
      head = await devnet.client.getBlock('latest');
      const { nodeUrl, serviceUrl } = devnet;
      urls = { nodeUrl, serviceUrl };
      ({ receiverUrl } = devnet);
    });

    it('goes on with the branch of the last reorganisation, now with a receiver of the user', async () => {
      const { ports } = await placeOf(options);
      expect(`http://127.0.0.1:${ports.receiver}/webhook`).to.equal(receiverUrl);
      const receiver = await startRawReceiver();
      const devnet = await startDevnet({ ...options, receiver: receiver.url });
      stopLater('the devnet', () => devnet.stop());
      expect(devnet).to.include(urls);
      expect((await devnet.client.getBlock(head?.number ?? 0))?.hash).to.equal(head?.hash);
      expect(await devnet.transferHolder(tokenId, { to: 3, as: 2 })).to.have.property('blockNumber');
      await eventually('its webhook', () => receiver.deliveries.length > 0);
      expect(() => devnet.webhooks).to.throw('its events go to http');
      expect(() => devnet.receiver).to.throw('your own receiver');
      await devnet.client.send('hardhat_setBalance', [devnet.accounts[5], '0x1']);
      await devnet.transferHolder(tokenId, { to: 4 });
      const restarting = errorOf(devnet.restartService());
      await Promise.race([devnet.stop(), devnet.stop()]);
      expect((await restarting).message).to.contain('The devnet was stopped');
      expect(await fetch(devnet.serviceUrl).catch(() => 'gone')).to.equal('gone');
    });

    it('refuses a kept block that gets another hash, and ends the node', async () => {
      expect((await errorOf(startDevnet(options))).code).to.equal('CHAIN_NOT_KEPT');
    });
  });

  it('refuses a folder with an earlier run whose chain was not kept', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder.path, 'data'));
    for (const keep of [true, false]) {
      const error = await errorOf(startDevnet({ keep, folder: folder.path }));
      expect(error.message).to.contain(`${folder.path} has an earlier run`);
    }
    rmdirSync(join(folder.path, 'data'));
    writeFileSync(join(folder.path, 'service.env'), '');
    expect((await errorOf(startDevnet({ folder: folder.path }))).code).to.equal('ARGUMENT_INVALID');
  });

  it('removes its temporary folder with its keys when the process ends without stop', async () => {
    const { folder, leave } = await placeOf({});
    process.listeners('exit').at(-1)?.(0);
    expect(existsSync(folder)).to.equal(false);
    leave();
  });

  it('refuses the kept chain of another network, and changes nothing in its folder', async () => {
    const folder = temporaryFolder();
    const head = { chainId: 80002, startedAt: '2026-01-01T00:00:00Z', registryAddress: '0x', baseBlock: 1 };
    writeFileSync(join(folder.path, 'chain.jsonl'), `${JSON.stringify(head)}\n`);
    const error = await errorOf(startDevnet({ keep: true, folder: folder.path }));
    expect(error.message).to.contain('is of chain 80002, not of localhost (31337)');
    expect(readdirSync(folder.path)).to.deep.equal(['chain.jsonl']);
  });

  for (const [what, options, code, problem] of [
    ['an unknown network', { network: 'amoi' }, 'NETWORK_UNKNOWN', /no network "amoi".*amoy \(80002\)/],
    ['a receiver that is no URL', { receiver: 'localhost' }, 'ARGUMENT_INVALID', /http or https URL/],
    ['a negative block time', { blockTime: -1 }, 'ARGUMENT_INVALID', /block time is -1/],
    ['half a confirmation', { confirmations: 0.5 }, 'ARGUMENT_INVALID', /confirmations are 0.5/],
    ['retractions over http on Amoy', { network: 'amoy', retractions: true }, 'ARGUMENT_INVALID', /https/],
    ['a port that does not exist', { port: 65_535 }, 'ARGUMENT_INVALID', /1 to 65533/],
  ] as const) {
    it(`refuses ${what}`, async () => {
      const error = await errorOf(startDevnet(options));
      expect(error.code).to.equal(code);
      expect(error.message).to.match(problem);
    });
  }
});
