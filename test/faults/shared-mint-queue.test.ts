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
  let nodes: RpcProxy[];
  let services: ServiceProcess[];

  before(async function () {
    state = await newState('PostgreSQL');
    if (state === undefined) return this.skip();
    local = await createLocalSetup();
  });

  after(async () => {
    await local?.stop();
    await state?.remove();
  });

  beforeEach(async () => {
    nodes = [];
    services = [];
    for (let count = 0; count < 2; count++) {
      const node = await startRpcProxy(local.node.url);
      nodes.push(node);
      const settings = { ...local.settings, ...state?.settings, API_KEY, RPC_URL: node.url };
      services.push(await startServiceProcess(settings));
    }
  });

  afterEach(async () => {
    await Promise.all(services.map((service) => service.end('SIGKILL')));
    await Promise.all(nodes.map((node) => node.close()));
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

  it('both answer, and one of them sends all mints', async () => {
    const [first, second] = services as [ServiceProcess, ServiceProcess];
    const tokens = await issueMany('BOTH', (index) => (index % 2 === 0 ? first : second));
    expect(new Set(tokens).size).to.equal(REQUESTS);
    expect([...(await mintedTokens(local)).keys()]).to.include.members(tokens);
    expect(nodes.map(sentThrough).sort((a, b) => a - b)).to.deep.equal([0, REQUESTS]);
  });

  it('mint every token once when the one that sends is killed', async () => {
    const before = (await mintedTokens(local)).size;
    await issue(services[0] as ServiceProcess, 'WHICH');
    const leader = nodes.findIndex((node) => sentThrough(node) > 0);
    const [killed, left] = [services[leader], services[1 - leader]] as [ServiceProcess, ServiceProcess];
    const asked = issueMany('KILLED', () => left);
    await eventually('the first is sent', () => sentThrough(nodes[leader] as RpcProxy) > 1);
    await killed.end('SIGKILL');
    const tokens = await asked;
    const minted = await mintedTokens(local);
    expect([...minted.keys()]).to.include.members(tokens);
    expect(minted.size - before).to.equal(REQUESTS + 1);
  });
});
