import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { parseEther } from 'ethers';
import { makeDidKey, makeSigningKey } from '../../cli/keys/make-keys';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { startStandInNetwork } from '../helpers/chain/stand-in-network';
import { eventually } from '../helpers/eventually';
import { create } from '../helpers/processes/create-call';
import { startService } from '../helpers/processes/running-service';
import { startRecordingReceiver } from '../helpers/receiver/recording-receiver';

// The blocks of these nodes have no base fee, and they refuse EIP-1559 transactions.
describe('a network without EIP-1559', () => {
  it('on which gas costs (XDC) is offered the gas price of its node, if there are funds', async () => {
    await using network = await startStandInNetwork('xdc', { legacyGas: true });
    await network.fund(parseEther('1'));
    await network.deploy();
    const { chain } = network;
    const { type, gasPrice } = (await chain.getBlock('latest', true))?.prefetchedTransactions[0] ?? {};
    const price = BigInt((await chain.send('eth_gasPrice', [])) as string);
    expect({ type, gasPrice }).to.deep.equal({ type: 0, gasPrice: price });
    await network.fund(0n);
    expect(await network.refuse(['--new']))
      .to.contain('WALLET_NOT_FUNDED')
      .and.to.contain(' XDC are missing');
  });

  it('on which gas is free (Stability) gets registry and mint from an empty wallet', async () => {
    await using network = await startStandInNetwork('stability', { legacyGas: true });
    const { node, chain, wallet, envFile } = network;
    // Blocks come without transactions, as on Stability: events wait for their confirmations.
    await chain.send('evm_setIntervalMining', [50]);
    await network.deploy();
    const folder = dirname(envFile);
    const publicKeyFile = join(folder, 'webhook-public-key.pem');
    const settings = {
      ENV_FILE: envFile,
      DID_DOCUMENT_PATH: join(folder, 'did.json'),
      DATA_DIR: join(folder, 'data'),
      DOMAIN: 'carrier.example',
      NET: '101010',
      RPC_URL: node.url,
      WALLET_PRIVATE_KEY: wallet.privateKey,
      SIGNING_THREADS: '1',
    };
    await makeDidKey({}, settings);
    await makeSigningKey({ publicKeyFile }, settings);
    await using receiver = await startRecordingReceiver(publicKeyFile);
    await using service = await startService({ ...settings, WEBHOOK_URL: receiver.url });
    const { address } = wallet;
    const { status, body } = await create(service.url, { ...minimal, owner: address, holder: address });
    expect(status).to.equal(200);
    expect(body.signedW3CDocument.credentialStatus).to.deep.include({
      tokenNetwork: { chain: 'FREE', chainId: '101010' },
    });
    const mint = await chain.getTransaction(body.txHash);
    expect(mint).to.include({ type: 0, gasPrice: 0n, chainId: 101010n, nonce: 1 });
    expect(await chain.getBalance(address)).to.equal(0n);
    await eventually('five webhooks', () => receiver.deliveries.length >= 5);
    for (const { event, verified } of receiver.deliveries) {
      expect(verified).to.equal(true);
      expect(event.data).to.deep.include({ chainKey: 'stability', chainId: 101010 });
    }
  });
});
