import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { parseEther, toQuantity } from 'ethers';
import { makeDidKey, makeSigningKey } from '../../cli/keys/make-keys';
import { systemTime } from '../../service/base/time';
import { networkOfChain } from '../../service/chain/networks';
import { connectNode } from '../../service/chain/chain';
import { check } from '../../evidence/evidence';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { startRpcProxy, type RpcAnswer } from '../helpers/chain/rpc-proxy';
import { startSocketFront } from '../helpers/chain/socket-front';
import { startStandInNetwork } from '../helpers/chain/stand-in-network';
import { eventually } from '../helpers/eventually';
import { create } from '../helpers/processes/create-call';
import { startService } from '../helpers/processes/running-service';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startRecordingReceiver } from '../helpers/receiver/recording-receiver';
import { owned } from '../helpers/resources';

const ADMIN_API_KEY = 'key-of-the-admin-0123456789';

/** Writes each address of an answer as a node of XDC does that was started with --enable-xdc-prefix. */
const withPrefix = (answer: RpcAnswer): RpcAnswer =>
  JSON.parse(JSON.stringify(answer).replace(/"0x(?=[0-9a-f]{40}")/gi, '"xdc')) as RpcAnswer;

describe('a node of XDC that begins addresses with xdc', () => {
  it('serves a mint, its webhooks, the state and the evidence of its token, and tdoc', async () => {
    await using network = await startStandInNetwork('xdc');
    await network.fund(parseEther('1'));
    await network.deploy();
    const { node, wallet, envFile } = network;
    await using proxy = await startRpcProxy(node.url, async (_method, _params, forward) =>
      withPrefix(await forward()),
    );
    const folder = dirname(envFile);
    const publicKeyFile = join(folder, 'webhook-public-key.pem');
    const settings = {
      ENV_FILE: envFile,
      DID_DOCUMENT_PATH: join(folder, 'did.json'),
      DATA_DIR: join(folder, 'data'),
      DOMAIN: 'carrier.example',
      NET: 'xdc',
      RPC_URL: proxy.url,
      CONFIRMATIONS: '0',
      WALLET_PRIVATE_KEY: wallet.privateKey,
      SIGNING_THREADS: '1',
      ADMIN_API_KEY,
    };
    await makeDidKey({}, settings);
    await makeSigningKey({ publicKeyFile }, settings);
    await using receiver = await startRecordingReceiver(publicKeyFile);
    await using service = await startService({ ...settings, WEBHOOK_URL: receiver.url });
    const { address } = wallet;
    const { status } = await create(service.url, { ...minimal, owner: address, holder: address });
    expect(status).to.equal(200);
    await eventually('five webhooks', () => receiver.deliveries.length >= 5);
    for (const { event, verified } of receiver.deliveries) {
      expect(verified).to.equal(true);
      expect(event.data).to.deep.include({ chainKey: 'xdc', chainId: 50 });
      expect(JSON.stringify(event)).not.to.match(/"xdc[0-9a-f]{40}"/i);
    }
    const tokenId = receiver.deliveries[0]?.event.subject ?? '';
    const headers = { authorization: `Bearer ${ADMIN_API_KEY}` };
    const answer = await fetch(`${service.url}/tokens/${tokenId}`, { headers });
    const { state } = (await answer.json()) as { state: object };
    expect(state).to.include({ beneficiary: address, holder: address });
    const askEvidence = () => fetch(`${service.url}/tokens/${tokenId}/evidence`, { headers });
    // The registry itself is newer than the newest final block.
    expect((await askEvidence()).status).to.equal(404);
    await network.chain.send('hardhat_mine', [toQuantity(networkOfChain(50).confirmations)]);
    const evidence = await askEvidence();
    expect(evidence.status).to.equal(200);
    const { report } = await check(await evidence.json());
    expect(report.operations.map(({ operation, isProven }) => [operation, isProven])).to.deep.equal([
      ['mint', true],
    ]);
    const { code, stdout } = await askTdocInProcess(['token', tokenId, '--json'], settings);
    expect(code, stdout).to.equal(0);
    expect(stdout)
      .to.contain(address)
      .and.not.to.match(/"xdc[0-9a-f]{40}"/i);
  });

  it('is read over WebSocket', async () => {
    await using network = await startStandInNetwork('xdc', { isPublished: false });
    await using proxy = await startRpcProxy(network.node.url, async (_method, _params, forward) =>
      withPrefix(await forward()),
    );
    const { url } = await startSocketFront(proxy.url);
    const xdc = networkOfChain(50);
    await using client = owned('client', connectNode(url, xdc, systemTime), 'close');
    const { miner } = (await client.send('eth_getBlockByNumber', ['latest', false])) as { miner: string };
    expect(miner).to.match(/^0x[0-9a-f]{40}$/);
  });
});
