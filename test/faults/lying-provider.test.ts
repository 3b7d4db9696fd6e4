import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { toQuantity, Wallet, parseEther } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { openDatabaseBesideService } from '../../service/database/open-database';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import {
  CONFIRMATIONS,
  journalStateOf,
  startAmoyIssuer,
  type AmoyIssuer,
} from '../helpers/processes/amoy-issuer';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { API_KEY, AUTHORIZATION, fetchDocument, type TextAnswer } from '../helpers/processes/documents-call';
import { eventually } from '../helpers/eventually';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { triedTokens } from '../helpers/chain/minted-tokens';
import { THROUGH, type Answerer, type RpcAnswer, type RpcCall } from '../helpers/chain/rpc-proxy';
import { startService, type RunningService } from '../helpers/processes/running-service';

const SEND = 'eth_sendRawTransaction';
const INTERNAL_ERROR: RpcAnswer = { error: { code: -32603, message: 'internal error' } };
const UNKNOWN: RpcAnswer = { result: null };
const DAY_MS = 86_400_000;

/** Short, because the tests wait for several of these times. */
const TIMING = { pollMs: 50, patienceMs: 400, presenceMs: 300, finalCheckMs: 200, deferMs: 300 };
/** Longer than the service's patience. */
const LONG_MS = 3 * TIMING.patienceMs;
/** More sends than those after which a refusal is taken at face value. */
const MANY_SENDS = 6;

/** A request with an Idempotency-Key, and what the service and the provider know about it. */
interface Request {
  /** Sends it, or sends it again. */
  send(): Promise<CreateAnswer>;
  /** GET /documents/{tokenId}. */
  document(): Promise<TextAnswer>;
  tokenId(): Promise<string>;
  /** How often a transaction was sent to the provider since. */
  sends(): number;
  /** The distinct raw transactions of its mint that the provider was sent. */
  transactions(): Promise<string[]>;
}

describe('issuing through a lying provider on a public network', () => {
  let amoy: AmoyIssuer;
  let settings: Record<string, string> & { DATA_DIR: string };
  let service: RunningService | undefined;
  let callers: AbortController;
  let firstBlock: number;

  before(async () => {
    amoy = await startAmoyIssuer();
  });

  after(() => amoy?.stop());

  beforeEach(async () => {
    settings = { ...amoy.newSettings(), API_KEY };
    firstBlock = (await amoy.chain.getBlockNumber()) + 1;
    await start();
  });

  afterEach(async () => {
    await stop();
    amoy.answer(THROUGH);
    await amoy.mine();
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

  function newRequest(): Request {
    const key = randomUUID();
    const { address } = amoy.wallet;
    const credentialSubject = { ...minimal.credentialSubject, blNumber: key };
    const body = JSON.stringify({ credentialSubject, owner: address, holder: address });
    const before = amoy.requests.length;
    const sent = (): RpcCall[] => amoy.requests.slice(before).filter(({ method }) => method === SEND);
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
      sends: () => sent().length,
      document: async () => fetchDocument(url(), await tokenId()),
      async transactions() {
        const id = await tokenId();
        const raws = sent().map(({ params }) => String(params[0]));
        return [...new Set(raws.filter((raw) => raw.includes(id)))];
      },
    };
  }

  const stateOf = async (request: Request): Promise<string | undefined> =>
    journalStateOf(settings.DATA_DIR, await request.tokenId());

  async function untilDocument(request: Request, status: number): Promise<string> {
    return eventually(`the document is answered with ${status}`, async () => {
      const answer = await request.document();
      return answer.status === status ? answer.text : undefined;
    });
  }

  async function untilFinal(request: Request): Promise<void> {
    await amoy.mine(CONFIRMATIONS);
    await eventually('it is final', async () => (await stateOf(request)) === 'final');
  }

  const untilPending = (): Promise<string> =>
    eventually('the node has a transaction', async () => (await amoy.pending())[0]);

  /** The document is answered with 202 until `isOver`. */
  async function expectUnderWay(request: Request, isOver: () => boolean = inMs(LONG_MS)): Promise<void> {
    await request.tokenId();
    await eventually('the test goes on', async () => {
      const { status, text } = await request.document();
      expect(status, text).to.equal(202);
      return isOver();
    });
  }

  /** There is one token, and the key is answered with the same bytes. */
  async function expectOneToken(request: Request, text: string): Promise<void> {
    const again = await request.send();
    expect(again.status, again.text).to.equal(200);
    expect(again.text).to.equal(text);
    await amoy.mine();
    expect(await amoy.tokensSince(firstBlock)).to.deep.equal([await request.tokenId()]);
  }

  it('waits for a transaction that the provider took but denied, and mints one token', async () => {
    amoy.answer(denies);
    const request = newRequest();
    const answer = request.send();
    await expectUnderWay(request, () => request.sends() >= MANY_SENDS);
    await amoy.mine();
    const { status, text } = await answer;
    expect(status, text).to.equal(200);
    await expectOneToken(request, text);
    await untilFinal(request);
  });

  it('mints one token, also after a restart, when an answer is lost and the provider lags', async () => {
    let sent = 0;
    amoy.answer(async (method, params, forward) => {
      if (method === SEND) return sent++ === 0 ? 'drop answer' : INTERNAL_ERROR;
      if (method === 'eth_getTransactionByHash') return UNKNOWN;
      return oneBlockBehind(await amoy.chain.getBlockNumber())(method, params, forward);
    });
    const request = newRequest();
    void request.send();
    await expectUnderWay(request, () => request.sends() >= MANY_SENDS - 1);
    await amoy.mine();
    await expectUnderWay(request, inMs(2 * LONG_MS));
    await stop();
    await start();
    const answer = request.send();
    await expectUnderWay(request);
    await amoy.mine();
    const { status, text } = await answer;
    expect(status, text).to.equal(200);
    expect(await request.document()).to.deep.equal({ status, text });
    await expectOneToken(request, text);
    await untilFinal(request);
  });

  describe('after a reorganisation', () => {
    /** Sends a request that is answered; `back` reverts the chain to the state before it. */
    async function issued(): Promise<{ request: Request; text: string; back: () => Promise<void> }> {
      const back = await amoy.fork();
      const request = newRequest();
      const answer = request.send();
      await untilPending();
      await amoy.mine();
      const { status, text } = await answer;
      expect(status, text).to.equal(200);
      expect((await request.document()).status).to.equal(200);
      return { request, text, back };
    }

    it('answers 202 for a document until its mint, in the same bytes, is mined again', async () => {
      const { request, text, back } = await issued();
      const hash = hashIn(text);
      expect(await stateOf(request)).to.equal('mined');
      await back();
      await amoy.mine(2);
      expect(await untilDocument(request, 202)).to.equal('{"status":"submitted"}');
      expect(await untilPending()).to.equal(hash);
      await amoy.mine();
      expect(await untilDocument(request, 200)).to.equal(text);
      expect(await stateOf(request)).to.equal('mined');
      await untilFinal(request);
      expect(await request.transactions()).to.have.length(1);
      await expectOneToken(request, text);
    });

    it("signs a mint with a new nonce once another transaction's use of the old one is final", async () => {
      const { request, text, back } = await issued();
      await back();
      await useNextNonce();
      await amoy.mine();
      await expectSubmitted(request);
      expect(await request.transactions()).to.have.length(1);
      await amoy.mine(CONFIRMATIONS);
      expect(await untilPending()).not.to.equal(hashIn(text));
      await amoy.mine();
      const minted = await untilDocument(request, 200);
      expect(documentIn(minted)).to.deep.equal(documentIn(text));
      expect(await request.transactions()).to.have.length(2);
      await untilFinal(request);
      await expectOneToken(request, minted);
    });

    /**
     * Waits longer than the service takes to conclude that the block is gone and that no node has the
     * receipt.
     */
    async function expectSubmitted(request: Request): Promise<void> {
      await untilDocument(request, 202);
      await expectUnderWay(request);
    }

    /** Sends a transaction of the wallet that the service does not know of. */
    async function useNextNonce(): Promise<void> {
      const { address } = amoy.wallet;
      await amoy.wallet.connect(amoy.chain).sendTransaction({ to: address, gasLimit: 21_000n });
    }

    it('logs an error when the block of a final mint is gone, and mints again', async () => {
      const { request, text, back } = await issued();
      await untilFinal(request);
      await back();
      await amoy.mine(2 * CONFIRMATIONS);
      await untilDocument(request, 202);
      const told = service?.log.find(({ msg }) =>
        msg?.startsWith('a reorganisation deeper than CONFIRMATIONS'),
      );
      expect(told).to.include({ level: 'error', mints: 1 });
      expect(await untilPending()).to.equal(hashIn(text));
      await amoy.mine();
      expect(await untilDocument(request, 200)).to.equal(text);
      await untilFinal(request);
      await expectOneToken(request, text);
    });
  });

  describe('with a new wallet', () => {
    const rotated = new Wallet(Wallet.createRandom().privateKey);
    const WALLET_PRIVATE_KEY = rotated.privateKey;

    before(async () => {
      const { chain, wallet, registry } = amoy;
      await chain.send('hardhat_setBalance', [rotated.address, toQuantity(parseEther('1000'))]);
      const admin = TradeTrustTokenStandard__factory.connect(registry, wallet.connect(chain));
      await admin.grantRole(await admin.MINTER_ROLE(), rotated.address);
      await amoy.mine();
    });

    /** The account that sent the mint. */
    async function minterOf(text: string): Promise<string | undefined> {
      return (await amoy.chain.getTransaction(hashIn(text)))?.from;
    }

    it('answers documents of the old wallet, and removes them by age or on request', async () => {
      const kept = newRequest();
      const answer = kept.send();
      await kept.tokenId();
      const old = newRequest();
      const other = old.send();
      await eventually('both wait', async () => (await amoy.pending()).length === 2);
      await amoy.mine();
      const [{ text }] = [await answer, await other];
      await untilFinal(kept);
      await stop();
      await backdate(await old.tokenId(), 40);
      await start({ WALLET_PRIVATE_KEY, DOCUMENT_RETENTION_DAYS: '30' });
      expect(await kept.document()).to.deep.equal({ status: 200, text });
      expect((await kept.send()).text).to.equal(text);
      await untilDocument(old, 404);
      const purge = ['purge-documents', '--token', await kept.tokenId(), '--yes'];
      const { code, stderr } = await askTdocInProcess(purge, { ...settings, WALLET_PRIVATE_KEY });
      expect(code, stderr).to.equal(0);
      expect((await kept.document()).status).to.equal(404);
    });

    /** Sets the end of the issuance to so many days ago. */
    async function backdate(tokenId: string, days: number): Promise<void> {
      const database = await openDatabaseBesideService({
        dataDir: settings.DATA_DIR,
        databaseUrl: undefined,
      });
      const ended_at = Date.now() - days * DAY_MS;
      await database.db.updateTable('issuances').set({ ended_at }).where('token_id', '=', tokenId).execute();
      await database.close();
    }

    it('finishes a mint that the old wallet had sent, with one token', async () => {
      const request = newRequest();
      void request.send();
      await untilPending();
      await stop();
      await start({ WALLET_PRIVATE_KEY });
      const answer = request.send();
      await expectUnderWay(request);
      await amoy.mine();
      const { status, text } = await answer;
      expect(status, text).to.equal(200);
      expect((await request.document()).text).to.equal(text);
      await untilFinal(request);
      await expectOneToken(request, text);
    });

    it('mints, once, what the old wallet had signed but not sent', async () => {
      amoy.answer((method) => (method === SEND ? 'drop request' : 'none'));
      const request = newRequest();
      void request.send();
      await eventually('it is signed', async () => (await request.transactions()).length > 0);
      await stop();
      amoy.answer(THROUGH);
      await start({ WALLET_PRIVATE_KEY });
      await untilPending();
      const answer = request.send();
      await amoy.mine();
      const { status, text } = await answer;
      expect(status, text).to.equal(200);
      expect(await minterOf(text)).to.equal(rotated.address);
      await untilFinal(request);
      await expectOneToken(request, text);
    });
  });
});

/** The node gets the transaction, and the service gets an error. */
const denies: Answerer = async (method, _params, forward) => {
  if (method === 'eth_getTransactionByHash') return UNKNOWN;
  if (method !== SEND) return 'none';
  await forward();
  return INTERNAL_ERROR;
};

/** Receipts and calls are answered by a backend that does not have the newest block. */
function oneBlockBehind(head: number): Answerer {
  const last = head - 1;
  return async (method, params, forward) => {
    if (method === 'eth_getTransactionReceipt') {
      const answer = await forward();
      const receipt = 'result' in answer ? (answer.result as { blockNumber: string } | null) : null;
      return receipt !== null && Number(receipt.blockNumber) > last ? UNKNOWN : answer;
    }
    if (method !== 'eth_call') return 'none';
    const [call, block] = params;
    if (block === 'latest') return forward([call, toQuantity(last)]);
    return Number(block) > last ? { error: { code: -32000, message: 'header not found' } } : 'none';
  };
}

/** Returns a function that tells whether so much time has passed. */
function inMs(ms: number): () => boolean {
  const end = performance.now() + ms;
  return () => performance.now() >= end;
}

function hashIn(text: string): string {
  return (JSON.parse(text) as CreateAnswer['body']).txHash;
}

function documentIn(text: string): unknown {
  return (JSON.parse(text) as CreateAnswer['body']).signedW3CDocument;
}
