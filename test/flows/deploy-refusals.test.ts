import { expect } from 'chai';
import { parseEther } from 'ethers';
import type { CommandAnswer } from '../helpers/processes/command-answer';
import { startRpcProxy, THROUGH, type Answerer, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';

const KEY = 'marked-key-0123456789abcdef';

// A front before the stand-in's node, as a provider has one that checks keys. Everything secret is marked.
describe('npx hardhat deploy on Amoy, when its provider refuses', () => {
  let amoy: StandInNetwork;
  let proxy: RpcProxy;

  before(async () => {
    amoy = await startStandInNetwork('amoy');
    await amoy.fund(parseEther('1'));
    proxy = await startRpcProxy(amoy.node.url);
  });
  afterEach(() => proxy.answer(THROUGH));
  after(async () => {
    await proxy.close();
    await amoy.stop();
  });

  /** Deploys with marked secrets, and makes sure that nothing of them is printed. */
  async function deploy(args: string[] = [], stationUrl = 'none'): Promise<CommandAnswer> {
    const answer = await amoy.deploy(['--show-stack-traces', '--new', ...args], {
      RPC_URL: `${proxy.url.replace('//', '//marked-user:marked-password@')}/v3/${KEY}?marked=${KEY}`,
      GAS_STATION_URL: stationUrl,
      NETWORK_A_API_KEY: 'marked-stability-key',
      API_KEY: 'marked-api-key',
    });
    const output = answer.stdout + answer.stderr;
    expect(output).not.to.contain('marked');
    expect(output).not.to.contain(amoy.wallet.privateKey.slice(2));
    return answer;
  }

  /** Fails with what the answerer does, and says all of these. */
  async function expectFailure(answerer: Answerer, ...says: string[]): Promise<void> {
    proxy.answer(answerer);
    const { code, stderr } = await deploy();
    expect(code).to.equal(1);
    for (const text of says) expect(stderr).to.contain(text);
  }

  for (const status of [401, 403]) {
    it(`the key, with status ${status}: the error names the setting`, () =>
      expectFailure(
        () => ({ status, body: `invalid key ${KEY}` }),
        'RPC_KEY_REFUSED',
        `status ${status}`,
        'Check the key in RPC_URL',
      ));
  }

  it('because it wants to be paid', () =>
    expectFailure(() => ({ status: 402, body: KEY }), 'RPC_UNREACHABLE', 'answers 402', 'quota'));

  it('because it is asked too often', () =>
    expectFailure(() => ({ status: 429, body: KEY }), 'RPC_UNREACHABLE', 'answers 429', 'too many requests'));

  it('the estimate, with its URL in the message', () =>
    expectFailure(
      (method) => (method === 'eth_estimateGas' ? failure(`no estimate at ${proxy.url}/v3/${KEY}`) : 'none'),
      'DEPLOYMENT_FAILED',
      'no estimate at',
    ));

  it('the balance, without JSON', () =>
    expectFailure(
      (method) => (method === 'eth_getBalance' ? { status: 502, body: `<html>${KEY}` } : 'none'),
      'DEPLOYMENT_FAILED',
    ));

  it('the transaction', () =>
    expectFailure(
      (method) => (method === 'eth_sendRawTransaction' ? failure(`refused for ${KEY}`) : 'none'),
      'DEPLOYMENT_FAILED',
      'refused for',
    ));

  it('nothing, but the gas station cannot be reached: the warning has no key', async () => {
    const { code, stderr } = await deploy([], `http://marked-user:marked-pass@127.0.0.1:9/${KEY}`);
    expect(code, stderr).to.equal(0);
    expect(stderr).to.contain('warning: The gas station does not answer');
  });
});

function failure(message: string): { error: { code: number; message: string } } {
  return { error: { code: -32000, message } };
}
