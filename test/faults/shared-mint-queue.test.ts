import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { newState, type State } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { startRpcProxy, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const API_KEY = 'key-of-the-shared-queue';
const REQUESTS = 12;

describe('two services with one wallet on one PostgreSQL database', () => {
  let local: LocalSetup;
  let state: State | undefined;
  const nodes: RpcProxy[] = [];
  const services: ServiceProcess[] = [];

  before(async function () {
    state = await newState('PostgreSQL');
    if (state === undefined) return this.skip();
    local = await createLocalSetup();
    for (let count = 0; count < 2; count++) {
      const node = await startRpcProxy(local.node.url);
      nodes.push(node);
      const settings = { ...local.settings, ...state?.settings, API_KEY, RPC_URL: node.url };
      services.push(await startServiceProcess(settings));
    }
  });

  const sentThrough = (node: RpcProxy): number =>
    node.requests.filter(({ method }) => method === 'eth_sendRawTransaction').length;

  async function issue(service: ServiceProcess, blNumber: string): Promise<string> {
    const [owner, holder] = await Promise.all([local.account(1), local.account(2)]);
    const credentialSubject = { ...minimal.credentialSubject, blNumber };
    const headers = { Authorization: `Bearer ${API_KEY}`, 'Idempotency-Key': blNumber };
    const { status, body, text } = await create(
      service.url,
      { credentialSubject, owner, holder },
      { headers },
    );
    expect(status, text).to.equal(200);
    return body.signedW3CDocument.credentialStatus.tokenId;
  }

  const issueMany = (name: string, choose: (index: number) => ServiceProcess): Promise<string[]> =>
    Promise.all(Array.from({ length: REQUESTS }, (_, index) => issue(choose(index), `${name}${index}`)));

  it('both answer, one sends all mints, and the other does when it is killed, each token once', async () => {
    const [first, second] = services as [ServiceProcess, ServiceProcess];
    const tokens = await issueMany('BOTH', (index) => (index % 2 === 0 ? first : second));
    expect(new Set(tokens).size).to.equal(REQUESTS);
    expect([...(await mintedTokens(local)).keys()]).to.include.members(tokens);
    expect(nodes.map(sentThrough).sort((a, b) => a - b)).to.deep.equal([0, REQUESTS]);

    const sender = nodes.findIndex((node) => sentThrough(node) > 0);
    const [killed, left] = sender === 0 ? [first, second] : [second, first];
    const asked = issueMany('KILLED', () => left);
    await eventually('the first is sent', () => sentThrough(nodes[sender] as RpcProxy) > REQUESTS);
    await killed.end('SIGKILL');
    const minted = await asked.then(() => mintedTokens(local));
    expect([...minted.keys()]).to.have.members([...tokens, ...(await asked)]);
  });
});
