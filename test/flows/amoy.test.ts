import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { JsonRpcProvider, Wallet, parseEther, parseUnits } from 'ethers';
import { startHardhatNode, type HardhatNode } from '../../deploy/devnet/hardhat-node';
import { publishedContractsOf, type PublishedContracts } from '../../deploy/registry/published-contracts';
import { findNetwork, type Network } from '../../service/chain/networks';
import { readSettings } from '../../service/config';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/create-call';
import { eventually } from '../helpers/eventually';
import { hardhat } from '../helpers/hardhat-command';
import { forwardTo, hasOpenssl, startHttpsFront, type HttpsFront } from '../helpers/https-front';
import { startMeteredProvider, type MeteredProvider } from '../helpers/metered-provider';
import { own } from '../helpers/owned';
import { publishContracts } from '../helpers/published-contracts';
import { startRecordingReceiver, type RecordingReceiver } from '../helpers/recording-receiver';
import { startServiceProcess, type ServiceProcess } from '../helpers/service-process';
import { temporaryFolder } from '../helpers/temporary-folder';

const AMOY = findNetwork('amoy') as Network;
const KEY = 'd1ab2c3d4e5f60718293a4b5c6d7e8f9';
const DOMAIN = 'carrier.example';
/** Amoy has two seconds: eight times as long would be a long test. */
const BLOCK_TIME_MS = 250;
const PATIENCE = { withinMs: 60_000 };

/** What Polygon's gas station says, with a fraction of a gwei. */
const STATION = {
  safeLow: { maxPriorityFee: 30, maxFee: 40 },
  standard: { maxPriorityFee: 30.25, maxFee: 45.123456789 },
  estimatedBaseFee: 1e-7,
  blockTime: 2,
};

// Everything of Amoy but its wires: chain id, the contracts where they are published, blocks at intervals, a provider that knows its key and counts credits,
// the gas station, and HTTPS with their names. Settings and commands are those of docs/networks.md.
(hasOpenssl ? describe : describe.skip)('NET=80002, with a wallet, test tokens and an API key', () => {
  const folder = temporaryFolder();
  const wallet = Wallet.createRandom();
  const envFile = join(folder.path, 'amoy.env');
  let node: HardhatNode;
  let chain: JsonRpcProvider;
  let provider: MeteredProvider;
  let https: HttpsFront;
  let receiver: RecordingReceiver;
  let service: ServiceProcess | undefined;
  let settings: Record<string, string>;
  let station: RequestListener;
  let disown: () => unknown;

  before(async () => {
    node = await startHardhatNode({ port: 0, chainId: AMOY.chainId });
    disown = own(`node on ${node.url}`);
    chain = new JsonRpcProvider(node.url, AMOY.chainId, { cacheTimeout: -1, staticNetwork: true });
    await publishContracts(chain, publishedContractsOf(AMOY.chainId) as PublishedContracts);
    await chain.send('hardhat_setBalance', [wallet.address, `0x${parseEther('0.5').toString(16)}`]);
    await chain.send('evm_setAutomine', [false]);
    await chain.send('evm_setIntervalMining', [BLOCK_TIME_MS]);
    provider = await startMeteredProvider(node.url, KEY);
    station = (_request, response) => response.end(JSON.stringify(STATION));
    https = await startHttpsFront(folder.path, {
      'polygon-amoy.infura.io': provider.listener,
      'gasstation.polygon.technology': (request, response) => station(request, response),
      [DOMAIN]: forwardTo(() => service?.url ?? ''),
    });
    writeFileSync(
      envFile,
      `DOMAIN=${DOMAIN}\nNET=80002\nWALLET_PRIVATE_KEY=${wallet.privateKey}\nPROVIDER_API_KEY=${KEY}\n`,
    );
    settings = { ENV_FILE: envFile, DID_DOCUMENT_PATH: join(folder.path, 'did.json'), ...https.environment };
    await hardhat(['deploy', '--network', 'amoy'], settings);
    await hardhat(['did'], settings);
    const publicKeyFile = join(folder.path, 'webhook-public-key.pem');
    await hardhat(['signing-key', '--public-key-file', publicKeyFile], settings);
    receiver = await startRecordingReceiver(publicKeyFile);
    service = await startServiceProcess({
      ...settings,
      WEBHOOK_URL: receiver.url,
      SERVICE_CONFIG: join(folder.path, 'service.config.json'),
      DATA_DIR: join(folder.path, 'data'),
    });
  });

  after(async () => {
    await service?.end('SIGTERM');
    await receiver?.close();
    await https?.close();
    await provider?.close();
    chain?.destroy();
    await node?.stop();
    disown?.();
    folder.remove();
  });

  const issue = () =>
    create(service?.url ?? '', { ...minimal, owner: wallet.address, holder: wallet.address });
  const registry = (): string => readSettings({ ENV_FILE: envFile }).settings.TOKEN_REGISTRY_ADDRESS ?? '';

  it('issues a document on chain 80002, at the fees of the gas station', async () => {
    const before = await chain.getBlockNumber();
    const { status, body } = await issue();
    expect(status).to.equal(200);
    expect(body.signedW3CDocument.credentialStatus).to.deep.include({
      tokenNetwork: { chain: 'POL', chainId: '80002' },
      tokenRegistry: registry(),
    });
    const mint = await chain.getTransaction(body.txHash);
    expect(mint).to.include({
      type: 2,
      chainId: 80002n,
      maxFeePerGas: parseUnits('45.123456789', 'gwei'),
      maxPriorityFeePerGas: parseUnits('30.25', 'gwei'),
    });
    expect(mint?.blockNumber).to.be.greaterThan(before);
  });

  it('announces it as polygon-amoy, once each event has the confirmations of Amoy', async () => {
    await eventually('five webhooks', () => receiver.deliveries.length >= 5, PATIENCE);
    const head = await chain.getBlockNumber();
    for (const { event, verified } of receiver.deliveries) {
      expect(verified).to.equal(true);
      expect(event.source).to.equal(`urn:service:80002:${registry().toLowerCase()}`);
      expect(event.data).to.deep.include({ chainKey: 'polygon-amoy', chainId: 80002 });
      expect(head - event.data.blockNumber).to.be.at.least(AMOY.confirmations);
    }
  });

  it('serves the DID document where verifiers look for it, and the credential is valid for them', async () => {
    const { body } = await issue();
    const file = join(folder.path, 'credential.json');
    writeFileSync(file, JSON.stringify(body.signedW3CDocument));
    expect(await hardhat(['did', '--check'], settings)).to.contain(DOMAIN);
    const verified = await hardhat(['verify-credential', file], settings);
    expect(verified).to.contain('The credential is VALID.').and.to.contain(`https://${DOMAIN}/`);
    expect(await hardhat(['token', file], settings)).to.match(/on amoy [^]*issued: /);
  });

  it('gets along with what a plan without cost allows in a second, which is less than it asks for', () => {
    expect(provider.refused()).to.be.greaterThan(0);
    expect(service?.output()).not.to.contain('the chain cannot be read');
  });

  it("issues at the node's own estimate while the gas station is down, and says so", async () => {
    station = (request) => void request.socket.destroy();
    const { status, body } = await issue();
    expect(status).to.equal(200);
    const mint = await chain.getTransaction(body.txHash);
    expect(mint?.type).to.equal(2);
    expect(mint?.maxFeePerGas).not.to.equal(parseUnits('45.123456789', 'gwei'));
    expect(service?.output()).to.contain('The gas station does not answer');
  });

  it('names the variable when the provider does not know the key, and goes on when it does', async () => {
    const failure = await hardhat(['token', '1'], {
      ...settings,
      PROVIDER_API_KEY: 'wrong0key0wrong0key',
    }).then(
      () => undefined,
      (error: { stderr: string }) => error.stderr,
    );
    expect(failure).to.contain('RPC_KEY_REFUSED').and.to.contain('PROVIDER_API_KEY');
    expect(failure).not.to.contain('wrong0key0wrong0key');
  });

  it('prints neither the key nor the wallet', () => {
    expect(service?.output()).not.to.contain(KEY);
    expect(service?.output().toLowerCase()).not.to.contain(wallet.privateKey.slice(2));
  });
});
