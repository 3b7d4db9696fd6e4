import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseEther, parseUnits } from 'ethers';
import { findNetwork, type Network } from '../../service/chain/networks';
import { readSettings } from '../../service/config/config';
import { tenantFilesOf, tenantOf } from '../../service/config/tenant';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { startMeteredProvider, type MeteredProvider } from '../helpers/chain/metered-provider';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';
import { eventually } from '../helpers/eventually';
import { codeBlocks, readDocument } from '../helpers/pages/markdown';
import { hardhat, tdoc } from '../helpers/processes/command-output';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { forwardTo, hasOpenssl, startHttpsFront, type HttpsFront } from '../helpers/processes/https-front';
import { tdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import { startRecordingReceiver, type RecordingReceiver } from '../helpers/receiver/recording-receiver';
import { temporaryFolder } from '../helpers/temporary-folder';

const AMOY = findNetwork('amoy') as Network;
const ADMIN_API_KEY = 'key-of-the-operator-of-amoy';
const KEY = 'd1ab2c3d4e5f60718293a4b5c6d7e8f9';
/** Amoy's blocks come every two seconds; shorter intervals keep the test fast. */
const BLOCK_TIME_MS = 75;
/** The host where verifiers look for the issuer's DID document. */
const DOMAIN = 'carrier.example';

/** An answer of Polygon's gas station, with fractions of a gwei. */
const STATION = {
  safeLow: { maxPriorityFee: 30, maxFee: 40 },
  standard: { maxPriorityFee: 30.25, maxFee: 45.123456789 },
  estimatedBaseFee: 1e-7,
  blockTime: 2,
};
const MAX_FEE = parseUnits('45.123456789', 'gwei');

/** The commands of the page that a user follows. */
const [walletOnPage = '', settingsOnPage = '', setupOnPage = '', checkOnPage = ''] = codeBlocks(
  readDocument('docs/networks.md').section('Amoy in ten minutes'),
  'sh',
);

/** The commands of a block, without `npx`. */
function commandsOf(block: string): string[][] {
  const commands = block.matchAll(/^npx ([^#\n]*)/gm);
  return [...commands].map(([, words = '']) => words.trim().split(/\s+/));
}

// A local stand-in for Amoy: its chain id, the contracts at their published addresses, blocks at intervals, a
// provider that checks its key and refuses some calls, the gas station, and HTTPS under the real host names.
// Settings and commands are those of docs/networks.md.
(hasOpenssl ? describe : describe.skip)('the service with NET=80002 (Amoy)', () => {
  const folder = temporaryFolder();
  const envFile = join(folder.path, 'carrier.env');
  let network: StandInNetwork;
  let provider: MeteredProvider;
  let https: HttpsFront;
  let receiver: RecordingReceiver;
  let service: ServiceProcess;
  /** Settings of commands and service: an env file, and how to find the hosts. */
  let settings: Record<string, string>;
  let registry: string;
  let issued: CreateAnswer['body'];
  let station: RequestListener = (_request, response) => response.end(JSON.stringify(STATION));

  before(async () => {
    network = await startStandInNetwork('amoy');
    await network.fund(parseEther('0.5'));
    await network.chain.send('evm_setAutomine', [false]);
    await network.chain.send('evm_setIntervalMining', [BLOCK_TIME_MS]);
    provider = await startMeteredProvider(network.node.url, KEY);
    https = await startHttpsFront(folder.path, {
      'polygon-amoy.infura.io': provider.listener,
      'gasstation.polygon.technology': (request, response) => station(request, response),
      [DOMAIN]: forwardTo(() => service.url),
    });
    const lines = {
      DOMAIN,
      NET: String(AMOY.chainId),
      WALLET_PRIVATE_KEY: network.wallet.privateKey,
      PROVIDER_API_KEY: KEY,
    };
    const written = Object.entries(lines).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(envFile, written.join(''));
    settings = { ENV_FILE: envFile, ...https.environment };
    for (const [program, ...args] of commandsOf(setupOnPage))
      await (program === 'tdoc' ? tdocInProcess : hardhat)(args, settings);
    registry = readSettings({ ENV_FILE: envFile }).settings.TOKEN_REGISTRY_ADDRESS ?? '';
    receiver = await startRecordingReceiver(tenantFilesOf(tenantOf(envFile)).webhookPublicKey);
    service = await startServiceProcess({
      ...settings,
      ADMIN_API_KEY,
      WEBHOOK_URL: receiver.url,
    });
  });

  const issue = () => {
    const { address } = network.wallet;
    return create(service.url, { ...minimal, owner: address, holder: address });
  };

  it('is set up with exactly the settings and commands of docs/networks.md', () => {
    const names = [...settingsOnPage.matchAll(/^(\w+)=/gm)].map(([, name]) => name);
    expect(names).to.have.members(['DOMAIN', 'NET', 'WALLET_PRIVATE_KEY', 'PROVIDER_API_KEY', 'WEBHOOK_URL']);
    // In a fresh clone, `npm ci` must come first: the command that makes a wallet needs ethers.
    expect(walletOnPage).to.match(/^npm ci\nnode -p /);
    expect(commandsOf(setupOnPage)).to.have.length(2);
    expect(setupOnPage).to.contain('npm run service');
  });

  it('issues a document on chain 80002 at the fees of the gas station', async () => {
    const before = await network.chain.getBlockNumber();
    const { status, body } = await issue();
    expect(status).to.equal(200);
    issued = body;
    expect(body.signedW3CDocument.credentialStatus).to.deep.include({
      tokenNetwork: { chain: 'POL', chainId: '80002' },
      tokenRegistry: registry,
    });
    const mint = await network.chain.getTransaction(body.txHash);
    expect(mint).to.include({ type: 2, chainId: 80002n, maxFeePerGas: MAX_FEE });
    expect(mint).to.have.property('maxPriorityFeePerGas', parseUnits('30.25', 'gwei'));
    expect(mint?.blockNumber).to.be.greaterThan(before);
  });

  it('delivers events as polygon-amoy once they have the confirmations of Amoy', async () => {
    await eventually('five webhooks', () => receiver.deliveries.length >= 5);
    const head = await network.chain.getBlockNumber();
    for (const { event, verified } of receiver.deliveries) {
      expect(verified).to.equal(true);
      expect(event.source).to.equal(`urn:service:80002:${registry.toLowerCase()}`);
      expect(event.data).to.deep.include({ chainKey: 'polygon-amoy', chainId: 80002 });
      expect(head - event.data.blockNumber).to.be.at.least(AMOY.confirmations);
    }
    // It has read the chain although a free plan refuses some calls as too many a second.
    expect(provider.refused()).to.be.greaterThan(0);
    expect(service.output()).not.to.contain('the chain cannot be read');
    // The rest would wait before it asks again.
    provider.lift();
  });

  it('collects evidence from a node whose certificate only NODE_EXTRA_CA_CERTS makes trusted', async () => {
    const { tokenId } = issued.signedW3CDocument.credentialStatus;
    const headers = { authorization: `Bearer ${ADMIN_API_KEY}` };
    const answer = await fetch(`${service.url}/tokens/0x${tokenId}/evidence?registry=${registry}`, {
      headers,
    });
    const { chainId, events } = (await answer.json()) as { chainId: number; events: object[] };
    expect(chainId).to.equal(AMOY.chainId);
    expect(events).not.to.be.empty;
  });

  it('serves the DID document at its URL, and verifiers find its credential valid', async () => {
    const file = join(folder.path, 'answer.json');
    writeFileSync(file, JSON.stringify(issued));
    const [[, ...check] = [], [, ...verify] = []] = commandsOf(checkOnPage);
    const words = verify.map((word) => word.replace('answer.json', file));
    const [checked, verified] = await Promise.all([tdoc(check, settings), tdoc(words, settings)]);
    expect(checked).to.contain(DOMAIN);
    expect(verified).to.contain('The credential is VALID.').and.to.contain(`https://${DOMAIN}/`);
  });

  it("issues at the node's fee estimate while the gas station is down, and logs it", async () => {
    station = (request) => void request.socket.destroy();
    const { status, body } = await issue();
    expect(status).to.equal(200);
    const mint = await network.chain.getTransaction(body.txHash);
    expect(mint?.type).to.equal(2);
    expect(mint?.maxFeePerGas).not.to.equal(MAX_FEE);
    expect(service.output()).to.contain('The gas station gives no usable fees');
  });

  it('prints neither the API key nor the private key of the wallet', () => {
    const output = service.output().toLowerCase();
    expect(output).not.to.contain(KEY).and.not.to.contain(network.wallet.privateKey.slice(2));
  });
});
