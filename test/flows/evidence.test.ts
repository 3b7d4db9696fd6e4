import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { CHAIN_EVENT_TYPES } from '../../client/events';
import { codeOf, messageOf } from '../../service/base/errors';
import { check, collect, type EvidenceReport } from '../../evidence/evidence';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { startRpcProxy } from '../helpers/chain/rpc-proxy';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { liveThrough } from '../helpers/chain/token-life';
import { eventually } from '../helpers/eventually';
import { collected } from '../helpers/evidence-files';
import { startService } from '../helpers/processes/running-service';
import { owned } from '../helpers/resources';

const unproven = ({ statements }: EvidenceReport): string[] =>
  statements
    .filter(({ status, isMinor }) => status !== 'proven' && !isMinor)
    .map(({ status, topic }) => `${topic} ${status}`);

for (const program of ['hardhat', 'anvil'] as const)
  describe(`evidence of a token on ${program}`, () => {
    let local: LocalSetup;
    let tokenId: bigint;
    let report: EvidenceReport;

    before(async () => {
      local = await createLocalSetup({ program });
      const [, beneficiary = '', holder = ''] = local.accounts;
      ({ tokenId } = await mintDirectly(local, beneficiary, { holder }));
      await liveThrough(local, { tokenId, transactionHash: '' });
      // As a file that was written and read again.
      ({ report } = await check(JSON.parse(JSON.stringify(await collected(local, tokenId)))));
    });

    it('proves every event, the state, the contracts and their code from the hashes of blocks', () => {
      expect(unproven(report)).to.deep.equal([]);
      const said = report.statements.map(({ says }) => says).join('\n');
      for (const type of CHAIN_EVENT_TYPES) expect(said).to.contain(`logged ${type.replace(/^.*\./, '')}`);
      expect(report.operations.map(({ operation }) => operation)).to.have.length(17);
      expect(report.operations.every(({ sender, isProven }) => isProven && sender !== undefined)).to.equal(
        true,
      );
    });

    it('says first that the hashes are only claimed, and never proves that nothing else happened', () => {
      expect(report.outcome).to.equal('could not tell');
      expect(report.condition).to.match(/only claimed.*invent a chain/);
      const nothingElse = report.statements.find(({ says }) => says.startsWith('Nothing else happened'));
      expect(nothingElse).to.include({ status: 'claimed', isMinor: true });
    });

    it('has the state and the code as claimed where the node gives no proof of them', async () => {
      await using proxy = await startRpcProxy(local.node.url, (method) =>
        method === 'eth_getProof' ? { error: { code: -32601, message: 'no such method' } } : 'none',
      );
      const bare = await check(await collected({ ...local, node: proxy }, tokenId));
      expect(unproven(bare.report)).to.deep.equal([
        ...['contracts claimed', 'contracts claimed', 'contracts claimed'],
        ...['state claimed', 'history claimed'],
      ]);
    });

    it('is collected from two nodes that write transactions and proofs in their own ways', async () => {
      await using proxy = await startRpcProxy(local.node.url, async (method, _params, forward) => {
        if (!['eth_getBlockByHash', 'eth_getProof'].includes(method)) return 'none';
        const { result } = (await forward()) as { result: { transactions?: object[] } };
        const transactions = result.transactions?.map((one) => ({ ...one, own: '0x' }));
        return { result: { ...result, balance: '0x00', ...(transactions && { transactions }) } };
      });
      const location = { chainId: 31337, registry: local.registryAddress, tokenId };
      const ofBoth = await check(await collect(location, { rpcUrls: [local.node.url, proxy.url] }));
      expect(unproven(ofBoth.report)).to.deep.equal([]);
    });

    it('does not know what the memory of contracts means that run other code', async () => {
      const [, beneficiary = ''] = local.accounts;
      const { tokenId: other } = await mintDirectly(local, beneficiary);
      const file = await collected(local, other);
      const address = file.contracts.titleEscrowImplementation;
      const code = await local.client.getCode(address);
      // It does the same as before: only its hash is another one.
      await local.client.send(`${program}_setCode`, [address, `${code}00`]);
      await mineBlocks(local, 1);
      const { statements } = (await check(await collected(local, other))).report;
      const unknown = statements.filter(({ because }) => /not known here/.test(because));
      expect(unknown.map(({ status, topic }) => `${topic} ${status}`)).to.deep.equal([
        'contracts claimed',
        'state claimed',
      ]);
    });
  });

const ADMIN_API_KEY = 'the-key-of-the-operator-0123456789';
/** Positions in the memory that the test shares with the node's proxy. */
const [HELD, LET_GO, PROOFS] = [0, 1, 2];
const HANGS_MS = 60_000;

/** A proxy that works while this thread is blocked. It holds the first block that is wanted whole. */
const PROXY = `
const { createServer } = require('node:http');
const { buffer } = require('node:stream/consumers');
const { parentPort, workerData: { url, shared } } = require('node:worker_threads');
createServer(async (request, response) => {
  const body = await buffer(request);
  if (/eth_getBlockByHash.*true/.test(body) && Atomics.add(shared, ${HELD}, 1) === 0)
    Atomics.wait(shared, ${LET_GO}, 0);
  const headers = { 'content-type': 'application/json' };
  const answer = await (await fetch(url, { method: 'POST', headers, body })).text();
  if (body.includes('eth_getProof')) {
    Atomics.add(shared, ${PROOFS}, 1);
    Atomics.notify(shared, ${PROOFS});
  }
  response.end(answer);
}).listen(0, '127.0.0.1', function () { parentPort.postMessage(this.address().port); });
`;

describe('evidence that a service collects', () => {
  let local: LocalSetup;
  let tokenId: bigint;

  before(async () => {
    local = await createLocalSetup({ program: 'anvil' });
    ({ tokenId } = await mintDirectly(local, local.accounts[1] ?? ''));
  });

  const ask = (url: string): Promise<Response> =>
    fetch(`${url}/tokens/${tokenId}/evidence`, { headers: { authorization: `Bearer ${ADMIN_API_KEY}` } });

  it('is made beside the thread that answers others', async () => {
    const shared = new Int32Array(new SharedArrayBuffer(12));
    const worker = new Worker(PROXY, { eval: true, workerData: { url: local.node.url, shared } });
    owned('the proxy', worker, 'terminate');
    const [port] = (await once(worker, 'message')) as [number];
    const settings = { ...local.settings, ADMIN_API_KEY, RPC_URL: `http://127.0.0.1:${port}` };
    await using service = await startService(settings);
    const answer = ask(service.url);
    await eventually('a block is wanted', () => Atomics.load(shared, HELD) > 0);
    Atomics.store(shared, LET_GO, 1);
    Atomics.notify(shared, LET_GO);
    // Nothing else happens on this thread until the blocks are proven, and the state is to be.
    expect(Atomics.wait(shared, PROOFS, 0, HANGS_MS)).not.to.equal('timed-out');
    expect((await check(await (await answer).json())).report.outcome).to.equal('could not tell');
  });

  it('is collected for one caller after the other', async () => {
    await using proxy = await startRpcProxy(local.node.url, () => 'none');
    await using service = await startService({ ...local.settings, ADMIN_API_KEY, RPC_URL: proxy.url });
    const before = proxy.calls.length;
    const answers = await Promise.all([ask(service.url), ask(service.url)]);
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200]);
    const steps = proxy.calls.slice(before).filter((one) => ['eth_chainId', 'eth_getProof'].includes(one));
    // The service asks for the chain when it starts, too. Each caller has five proofs of accounts.
    expect(steps.join(' ')).to.match(/^(eth_chainId )+(eth_getProof ){5}eth_chainId( eth_getProof){5}$/);
  });

  it('is refused where it has more than one answer may have', async () => {
    const error = await collected(local, tokenId, { mostBytes: 100 }).catch((thrown: unknown) => thrown);
    expect(codeOf(error)).to.equal('EVIDENCE_TOO_LARGE');
    expect(messageOf(error)).to.contain('Use `npx tdoc evidence`, which has no limit.');
  });
});
