import { expect } from 'chai';
import { parseEther } from 'ethers';
import type { CommandAnswer } from '../helpers/processes/command-answer';
import { startRpcProxy, THROUGH, type Answerer, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';

const KEY = 'marked-key-0123456789abcdef';

// A proxy in front of the stand-in's node answers as a failing provider. The secrets are marked, so that the
// output can be searched for them.
describe('npx hardhat deploy on Amoy, when its provider fails', () => {
  let amoy: StandInNetwork;
  let proxy: RpcProxy;

  before(async () => {
    amoy = await startStandInNetwork('amoy');
    proxy = await startRpcProxy(amoy.node.url);
  });
  beforeEach(async () => {
    // A transaction that was signed for one test must not be resumed in another.
    await amoy.reset();
    await amoy.fund(parseEther('1'));
    proxy.answer(THROUGH);
  });
  after(async () => {
    await proxy.close();
    await amoy.stop();
  });

  /** Deploys with marked secrets, and expects that none is printed. */
  async function deploy(args: string[] = [], stationUrl = 'none'): Promise<CommandAnswer> {
    const answer = await amoy.deploy(['--show-stack-traces', '--new', ...args], {
      RPC_URL: `${proxy.url.replace('//', '//marked-user:marked-password@')}/v3/${KEY}?marked=${KEY}`,
      GAS_STATION_URL: stationUrl,
      NETWORK_A_API_KEY: 'marked-stability-key',
      API_KEY: 'marked-api-key-of-the-issuer',
    });
    const output = answer.stdout + answer.stderr;
    expect(output).not.to.contain('marked');
    expect(output).not.to.contain(amoy.wallet.privateKey.slice(2));
    return answer;
  }

  /** Expects the command to fail and to print all of these texts. */
  async function expectFailure(answerer: Answerer, ...says: string[]): Promise<void> {
    proxy.answer(answerer);
    const { code, stderr } = await deploy();
    expect(code).to.equal(1);
    for (const text of says) expect(stderr).to.contain(text);
  }

  for (const status of [401, 403]) {
    it(`names RPC_URL when the key is refused with status ${status}`, () =>
      expectFailure(
        () => ({ status, body: `invalid key ${KEY}` }),
        'RPC_KEY_REFUSED',
        `status ${status}`,
        'Check the key in RPC_URL',
      ));
  }

  it('reports an exhausted quota when the provider answers 402', () =>
    expectFailure(() => ({ status: 402, body: KEY }), 'RPC_UNREACHABLE', 'answers 402', 'quota'));

  it('reports too many requests when the provider answers 429', () =>
    expectFailure(() => ({ status: 429, body: KEY }), 'RPC_UNREACHABLE', 'answers 429', 'too many requests'));

  it('reports a refused gas estimate, but not the key in its message', () =>
    expectFailure(
      (method) => (method === 'eth_estimateGas' ? failure(`no estimate at ${proxy.url}/v3/${KEY}`) : 'none'),
      'DEPLOYMENT_FAILED',
      'no estimate at',
    ));

  it('reports a failed deployment when the balance is answered without JSON', () =>
    expectFailure(
      (method) => (method === 'eth_getBalance' ? { status: 502, body: `<html>${KEY}` } : 'none'),
      'DEPLOYMENT_FAILED',
    ));

  it('reports a refused transaction, but not the key in its message', () =>
    expectFailure(
      (method) => (method === 'eth_sendRawTransaction' ? failure(`refused for ${KEY}`) : 'none'),
      'DEPLOYMENT_FAILED',
      'refused for',
    ));

  it('deploys, and warns without a key, when the gas station cannot be reached', async () => {
    const { code, stderr } = await deploy([], `http://marked-user:marked-pass@127.0.0.1:9/${KEY}`);
    expect(code, stderr).to.equal(0);
    expect(stderr).to.contain('warning: The gas station gives no usable fees');
  });
});

function failure(message: string): { error: { code: number; message: string } } {
  return { error: { code: -32000, message } };
}
