import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseEther, parseUnits } from 'ethers';
import { findNetwork, type Network } from '../../service/chain/networks';
import { eventually } from '../helpers/eventually';
import type { CreateAnswer } from '../helpers/processes/create-call';
import { tdoc } from '../helpers/processes/command-output';
import { hasOpenssl } from '../helpers/processes/https-front';
import { codeBlocks, readDocument } from '../helpers/pages/markdown';
import { startMeteredProvider, type MeteredProvider } from '../helpers/chain/metered-provider';
import { startNode } from '../helpers/chain/node';
import { DOMAIN, createStandIn, type StandIn } from '../helpers/processes/stand-in-issuer';

const AMOY = findNetwork('amoy') as Network;
const KEY = 'd1ab2c3d4e5f60718293a4b5c6d7e8f9';
/** Amoy's blocks come every two seconds; shorter intervals keep the test fast. */
const BLOCK_TIME_MS = 75;

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
// provider that checks its key and counts credits, the gas station, and HTTPS under the real host names.
// Settings and commands are those of docs/networks.md.
(hasOpenssl ? describe : describe.skip)('the service with NET=80002 (Amoy)', () => {
  let amoy: StandIn;
  let provider: MeteredProvider;
  let issued: CreateAnswer['body'];
  let station: RequestListener = (_request, response) => response.end(JSON.stringify(STATION));

  before(async () => {
    const node = await startNode(0, AMOY.chainId);
    provider = await startMeteredProvider(node.url, KEY);
    amoy = await createStandIn({
      network: AMOY,
      node,
      hosts: {
        'polygon-amoy.infura.io': provider.listener,
        'gasstation.polygon.technology': (request, response) => station(request, response),
      },
      env: { PROVIDER_API_KEY: KEY },
      commands: commandsOf(setupOnPage),
      balance: parseEther('0.5'),
      async prepare(chain) {
        await chain.send('evm_setAutomine', [false]);
        await chain.send('evm_setIntervalMining', [BLOCK_TIME_MS]);
      },
    });
  });

  after(async () => {
    await amoy?.stop();
    await provider?.close();
  });

  it('is set up with exactly the settings and commands of docs/networks.md', () => {
    const names = [...settingsOnPage.matchAll(/^(\w+)=/gm)].map(([, name]) => name);
    expect(names).to.have.members(['DOMAIN', 'NET', 'WALLET_PRIVATE_KEY', 'PROVIDER_API_KEY', 'WEBHOOK_URL']);
    // In a fresh clone, `npm ci` must come first: the command that makes a wallet needs ethers.
    expect(walletOnPage).to.match(/^npm ci\nnode -p /);
    expect(commandsOf(setupOnPage)).to.have.length(2);
    expect(setupOnPage).to.contain('npm run service');
  });

  it('issues a document on chain 80002 at the fees of the gas station', async () => {
    const before = await amoy.chain.getBlockNumber();
    const { status, body } = await amoy.issue();
    expect(status).to.equal(200);
    issued = body;
    expect(body.signedW3CDocument.credentialStatus).to.deep.include({
      tokenNetwork: { chain: 'POL', chainId: '80002' },
      tokenRegistry: amoy.registry,
    });
    const mint = await amoy.chain.getTransaction(body.txHash);
    expect(mint).to.include({ type: 2, chainId: 80002n, maxFeePerGas: MAX_FEE });
    expect(mint).to.have.property('maxPriorityFeePerGas', parseUnits('30.25', 'gwei'));
    expect(mint?.blockNumber).to.be.greaterThan(before);
  });

  it('delivers events as polygon-amoy once they have the confirmations of Amoy', async () => {
    await eventually('five webhooks', () => amoy.receiver.deliveries.length >= 5);
    const head = await amoy.chain.getBlockNumber();
    for (const { event, verified } of amoy.receiver.deliveries) {
      expect(verified).to.equal(true);
      expect(event.source).to.equal(`urn:service:80002:${amoy.registry.toLowerCase()}`);
      expect(event.data).to.deep.include({ chainKey: 'polygon-amoy', chainId: 80002 });
      expect(head - event.data.blockNumber).to.be.at.least(AMOY.confirmations);
    }
  });

  it('reads the chain although a free plan refuses some calls as too many a second', () => {
    expect(provider.refused()).to.be.greaterThan(0);
    expect(amoy.service.output()).not.to.contain('the chain cannot be read');
    // The rest would wait for credits.
    provider.lift();
  });

  it('serves the DID document at its URL, and verifiers find its credential valid', async () => {
    const file = join(amoy.folder, 'answer.json');
    writeFileSync(file, JSON.stringify(issued));
    const [[, ...check] = [], [, ...verify] = []] = commandsOf(checkOnPage);
    expect(await tdoc(check, amoy.settings)).to.contain(DOMAIN);
    const verified = await tdoc(
      verify.map((word) => word.replace('answer.json', file)),
      amoy.settings,
    );
    expect(verified).to.contain('The credential is VALID.').and.to.contain(`https://${DOMAIN}/`);
    expect(await tdoc(['token', file], amoy.settings)).to.match(/on amoy [^]*issued: /);
  });

  it("issues at the node's fee estimate while the gas station is down, and logs it", async () => {
    station = (request) => void request.socket.destroy();
    const { status, body } = await amoy.issue();
    expect(status).to.equal(200);
    const mint = await amoy.chain.getTransaction(body.txHash);
    expect(mint?.type).to.equal(2);
    expect(mint?.maxFeePerGas).not.to.equal(MAX_FEE);
    expect(amoy.service.output()).to.contain('The gas station gives no usable fees');
  });

  it('names PROVIDER_API_KEY, without its value, when the provider refuses the key', async () => {
    const PROVIDER_API_KEY = 'wrong0key0wrong0key';
    const failure = await tdoc(['token', '1'], { ...amoy.settings, PROVIDER_API_KEY }).then(
      () => undefined,
      (error: { stderr: string }) => error.stderr,
    );
    expect(failure).to.contain('RPC_KEY_REFUSED').and.to.contain('PROVIDER_API_KEY');
    expect(failure).not.to.contain(PROVIDER_API_KEY);
  });

  it('prints neither the API key nor the private key of the wallet', () => {
    const output = amoy.service.output().toLowerCase();
    expect(output).not.to.contain(KEY).and.not.to.contain(amoy.wallet.privateKey.slice(2));
  });
});
