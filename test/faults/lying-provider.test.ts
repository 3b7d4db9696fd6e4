import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseEther, toQuantity, Wallet } from 'ethers';
import type { Database } from '../../service/database/database';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { mintedTokens, triedTokens } from '../helpers/chain/minted-tokens';
import { startRpcProxy, type Answerer, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';
import { eventually } from '../helpers/eventually';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { API_KEY, AUTHORIZATION, fetchDocument, type TextAnswer } from '../helpers/processes/documents-call';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { temporaryFolder } from '../helpers/temporary-folder';

const SEND = 'eth_sendRawTransaction';
const DAY_MS = 86_400_000;
/** Blocks on top of a mint's block that make it final. */
const CONFIRMATIONS = 3;
/** Short, because the tests wait for several of these times. */
const TIMING = { pollMs: 50, patienceMs: 400, presenceMs: 300, finalCheckMs: 200, deferMs: 300 };
/** Longer than the service's patience. */
const LONG_MS = 3 * TIMING.patienceMs;

/** Estimates without the waiting transactions, as geth does. Hardhat would include them. */
const likeGeth: Answerer = (method, params, forward) =>
  method === 'eth_estimateGas' ? forward([params[0], 'latest']) : 'none';

/** A request with an Idempotency-Key. */
interface Request {
  /** Sends it, or sends it again. */
  send(): Promise<CreateAnswer>;
  /** GET /documents/{tokenId}. */
  document(): Promise<TextAnswer>;
  tokenId(): Promise<string>;
  /** The distinct raw transactions of its mint that the provider was sent. */
  transactions(): Promise<string[]>;
}

// The test mines the blocks of a stand-in for Amoy, which the service does not treat as a local network.
describe('issuing on a public network', () => {
  const folder = temporaryFolder();
  let network: StandInNetwork;
  let provider: RpcProxy;
  let settings: Record<string, string> & { DATA_DIR: string };
  let service: RunningService | undefined;
  let callers: AbortController;
  let firstBlock: number;
  let journals = 0;

  before(async () => {
    network = await startStandInNetwork('amoy');
    await network.fund(parseEther('1000'));
    const common = {
      ENV_FILE: network.envFile,
      DOMAIN: 'carrier.example',
      DID_DOCUMENT_PATH: join(folder.path, 'did'),
    };
    for (const { code, stderr } of [await network.deploy(), await askTdocInProcess(['did'], common)])
      expect(code, stderr).to.equal(0);
    provider = await startRpcProxy(network.node.url, likeGeth);
    await network.chain.send('evm_setAutomine', [false]);
    settings = {
      ...common,
      NET: 'amoy',
      RPC_URL: provider.url,
      GAS_STATION_URL: 'none',
      WALLET_PRIVATE_KEY: network.wallet.privateKey,
      DATA_DIR: folder.path,
      CONFIRMATIONS: String(CONFIRMATIONS),
      SIGNING_THREADS: '1',
      API_KEY,
    };
  });

  after(async () => {
    await provider?.close();
    await network?.stop();
    folder.remove();
  });

  beforeEach(async () => {
    settings.DATA_DIR = join(folder.path, `data-${journals++}`);
    firstBlock = (await network.chain.getBlockNumber()) + 1;
    await start();
  });

  afterEach(async () => {
    await stop();
    provider.answer(likeGeth);
    await mine();
  });

  async function start(changed: Record<string, string> = {}): Promise<void> {
    callers = new AbortController();
    service = await startService({ ...settings, ...changed }, { mintTiming: TIMING });
  }

  /** Disconnects waiting callers first: the service does not stop before it has answered them. */
  async function stop(): Promise<void> {
    callers.abort();
    await service?.stop();
    service = undefined;
  }

  async function mine(blocks = 1): Promise<void> {
    for (let mined = 0; mined < blocks; mined++) await network.chain.send('evm_mine', []);
  }

  async function pending(): Promise<string[]> {
    const waiting = (await network.chain.send('eth_pendingTransactions', [])) as { hash: string }[];
    return waiting.map(({ hash }) => hash);
  }

  function newRequest(): Request {
    const key = randomUUID();
    const { address } = network.wallet;
    const credentialSubject = { ...minimal.credentialSubject, blNumber: key };
    const body = JSON.stringify({ credentialSubject, owner: address, holder: address });
    const before = provider.requests.length;
    const sent = () => provider.requests.slice(before).filter(({ method }) => method === SEND);
    let known: string | undefined;
    const tokenId = async (): Promise<string> =>
      (known ??= await eventually('its mint is sent', () => [...triedTokens(sent())][0]));
    const url = (): string => service?.url ?? '';
    return {
      tokenId,
      send() {
        const headers = { ...AUTHORIZATION, 'Idempotency-Key': key };
        const answer = create(url(), body, { headers, signal: callers.signal });
        // A caller that disconnects gets no answer.
        answer.catch(() => undefined);
        return answer;
      },
      document: async () => fetchDocument(url(), await tokenId()),
      async transactions() {
        const id = await tokenId();
        const raws = sent().map(({ params }) => String(params[0]));
        return [...new Set(raws.filter((raw) => raw.includes(id)))];
      },
    };
  }

  async function inDatabase<T>(work: (db: Database['db']) => Promise<T>): Promise<T> {
    const { DATA_DIR: dataDir } = settings;
    const database = await openDatabaseBesideService({ dataDir, databaseUrl: undefined });
    return work(database.db).finally(() => database.close());
  }

  async function stateOf(request: Request): Promise<string | undefined> {
    const tokenId = await request.tokenId();
    return inDatabase(async (db) => {
      const rows = db.selectFrom('issuances').select('state').where('token_id', '=', tokenId);
      return (await rows.executeTakeFirst())?.state;
    });
  }

  async function untilDocument(request: Request, status: number): Promise<string> {
    return eventually(`the document is answered with ${status}`, async () => {
      const answer = await request.document();
      return answer.status === status ? answer.text : undefined;
    });
  }

  async function untilFinal(request: Request): Promise<void> {
    await mine(CONFIRMATIONS);
    await eventually('it is final', async () => (await stateOf(request)) === 'final');
  }

  const untilPending = (): Promise<string> =>
    eventually('the node has a transaction', async () => (await pending())[0]);

  async function answered(answer: Promise<CreateAnswer>): Promise<string> {
    const { status, text } = await answer;
    expect(status, text).to.equal(200);
    return text;
  }

  /** The mint becomes final, there is one token, and the key is answered with the same bytes. */
  async function expectOneToken(request: Request, text: string): Promise<void> {
    await untilFinal(request);
    expect(await answered(request.send())).to.equal(text);
    const registry = { client: network.chain, registryAddress: network.registry() };
    expect([...(await mintedTokens(registry, firstBlock)).keys()]).to.deep.equal([await request.tokenId()]);
  }

  it('waits for a transaction that the provider took but denied, and mints one token', async () => {
    let sends = 0;
    provider.answer(async (method, params, forward) => {
      if (method === 'eth_getTransactionByHash') return { result: null };
      if (method !== SEND) return likeGeth(method, params, forward);
      sends++;
      await forward();
      return { error: { code: -32603, message: 'internal error' } };
    });
    const request = newRequest();
    const answer = request.send();
    await eventually('a refusal would be taken at face value', async () => {
      if (sends > 0) expect((await request.document()).status).to.equal(202);
      return sends >= 6;
    });
    await mine();
    await expectOneToken(request, await answered(answer));
  });

  it('answers 202 for a document until its mint, in the same bytes, is mined again', async () => {
    const { chain } = network;
    const snapshot: unknown = await chain.send('evm_snapshot', []);
    const request = newRequest();
    const answer = request.send();
    await untilPending();
    await mine();
    const text = await answered(answer);
    const hash = hashIn(text);
    expect(await stateOf(request)).to.equal('mined');
    expect(await chain.send('evm_revert', [snapshot])).to.equal(true);
    const { timestamp = 0 } = (await chain.getBlock('latest')) ?? {};
    await chain.send('evm_mine', [timestamp + 2]);
    await mine();
    expect(await untilDocument(request, 202)).to.equal('{"status":"submitted"}');
    expect(await untilPending()).to.equal(hash);
    await mine();
    expect(await untilDocument(request, 200)).to.equal(text);
    expect(await stateOf(request)).to.equal('mined');
    await expectOneToken(request, text);
    expect(await request.transactions()).to.have.length(1);
  });

  describe('with a new wallet', () => {
    const rotated = Wallet.createRandom();
    const WALLET_PRIVATE_KEY = rotated.privateKey;

    before(async () => {
      const { chain, wallet } = network;
      await chain.send('hardhat_setBalance', [rotated.address, toQuantity(parseEther('1000'))]);
      const admin = TradeTrustTokenStandard__factory.connect(network.registry(), wallet.connect(chain));
      await admin.grantRole(await admin.MINTER_ROLE(), rotated.address);
      await mine();
    });

    it('answers documents of the old wallet, and removes them by age or on request', async () => {
      const kept = newRequest();
      const answer = kept.send();
      await kept.tokenId();
      const old = newRequest();
      const other = old.send();
      await eventually('both wait', async () => (await pending()).length === 2);
      await mine();
      const text = await answered(answer);
      await answered(other);
      await untilFinal(kept);
      await stop();
      const ended_at = Date.now() - 40 * DAY_MS;
      const tokenId = await old.tokenId();
      await inDatabase((db) =>
        db.updateTable('issuances').set({ ended_at }).where('token_id', '=', tokenId).execute(),
      );
      await start({ WALLET_PRIVATE_KEY, DOCUMENT_RETENTION_DAYS: '30' });
      expect(await kept.document()).to.deep.equal({ status: 200, text });
      expect((await kept.send()).text).to.equal(text);
      await untilDocument(old, 404);
      const purge = ['purge-documents', '--token', await kept.tokenId(), '--yes'];
      const { code, stderr } = await askTdocInProcess(purge, { ...settings, WALLET_PRIVATE_KEY });
      expect(code, stderr).to.equal(0);
      expect((await kept.document()).status).to.equal(404);
    });

    it('finishes a mint that the old wallet had sent, with one token', async () => {
      const request = newRequest();
      void request.send();
      await untilPending();
      await stop();
      await start({ WALLET_PRIVATE_KEY });
      const answer = request.send();
      const until = performance.now() + LONG_MS;
      await eventually('patience ends', async () => {
        const { status, text } = await request.document();
        expect(status, text).to.equal(202);
        return performance.now() > until;
      });
      await mine();
      const text = await answered(answer);
      expect((await request.document()).text).to.equal(text);
      await expectOneToken(request, text);
    });

    it('mints, once, what the old wallet had signed but not sent', async () => {
      provider.answer((...call) => (call[0] === SEND ? 'drop request' : likeGeth(...call)));
      const request = newRequest();
      void request.send();
      await eventually('it is signed', async () => (await request.transactions()).length > 0);
      await stop();
      provider.answer(likeGeth);
      await start({ WALLET_PRIVATE_KEY });
      await untilPending();
      const answer = request.send();
      await mine();
      const text = await answered(answer);
      expect((await network.chain.getTransaction(hashIn(text)))?.from).to.equal(rotated.address);
      await expectOneToken(request, text);
    });
  });
});

function hashIn(text: string): string {
  return (JSON.parse(text) as CreateAnswer['body']).txHash;
}
