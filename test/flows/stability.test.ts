import { expect } from 'chai';
import { findNetwork, type Network } from '../../service/chain/networks';
import { eventually } from '../helpers/eventually';
import { forwardTo, hasOpenssl } from '../helpers/processes/https-front';
import { startLegacyGasNode } from '../helpers/chain/node';
import { createStandIn, type StandIn } from '../helpers/processes/stand-in-issuer';

const STABILITY = findNetwork('stability') as Network;
const KEY = 'aB3-dE5_gH7';

// A chain whose blocks have no base fee and whose node refuses EIP-1559 transactions; the wallet is empty.
(hasOpenssl ? describe : describe.skip)('the service with NET=101010 (Stability), where gas is free', () => {
  let stability: StandIn;

  before(async () => {
    const node = await startLegacyGasNode(STABILITY.chainId);
    const forward = forwardTo(() => node.url);
    stability = await createStandIn({
      network: STABILITY,
      node,
      hosts: {
        'rpc.stabilityprotocol.com': (request, response) => {
          if (request.url === `/zgt/${KEY}`) forward(request, response);
          else response.writeHead(403).end('{"error":"invalid api key"}');
        },
      },
      env: { NETWORK_A_API_KEY: KEY },
      balance: 0n,
      // Blocks come without transactions, as on Stability: events wait for their confirmations.
      prepare: async (chain) => void (await chain.send('evm_setIntervalMining', [200])),
    });
  });

  after(() => stability?.stop());

  it('deploys the registry and mints in legacy transactions with gas price 0', async () => {
    const { status, body } = await stability.issue();
    expect(status).to.equal(200);
    expect(body.signedW3CDocument.credentialStatus).to.deep.include({
      tokenNetwork: { chain: 'FREE', chainId: '101010' },
    });
    const mint = await stability.chain.getTransaction(body.txHash);
    expect(mint).to.include({ type: 0, gasPrice: 0n, chainId: 101010n, nonce: 1 });
    expect(await stability.chain.getBalance(stability.wallet.address)).to.equal(0n);
  });

  it('delivers the events with chain key stability', async () => {
    const { receiver } = stability;
    await eventually('five webhooks', () => receiver.deliveries.length >= 5, { withinMs: 150_000 });
    for (const { event, verified } of receiver.deliveries) {
      expect(verified).to.equal(true);
      expect(event.data).to.deep.include({ chainKey: 'stability', chainId: 101010 });
    }
  });
});
