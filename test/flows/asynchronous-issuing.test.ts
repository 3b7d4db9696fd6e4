import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { withoutMining } from '../helpers/chain/mine-blocks';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { eventually } from '../helpers/eventually';
import { startRpcProxy } from '../helpers/chain/rpc-proxy';
import { API_KEY, AUTHORIZATION, fetchDocument } from '../helpers/processes/documents-call';
import { startService, type RunningService } from '../helpers/processes/running-service';

const ASYNC = { Prefer: 'respond-async' };

describe('POST /create with Prefer: respond-async', () => {
  let local: LocalSetup;
  let service: RunningService;
  let body: string;

  before(async () => {
    local = await createLocalSetup();
    const owner = await local.account(1);
    body = JSON.stringify({ ...minimal, owner, holder: owner });
    service = await startService({ ...local.settings, API_KEY });
  });

  const post = (headers: Record<string, string>, sent = body): Promise<Response> =>
    fetch(`${service.url}/create/BILL_OF_LADING`, {
      method: 'POST',
      headers: { ...AUTHORIZATION, 'Content-Type': 'application/json', ...headers },
      body: sent,
    });

  /** Checks the answer, and returns the token. */
  async function accepted(response: Response): Promise<string> {
    const { tokenId } = (await response.json()) as { tokenId: string };
    expect(response.status).to.equal(202);
    expect(response.headers.get('Preference-Applied')).to.equal('respond-async');
    expect(response.headers.get('Location')).to.equal(`/documents/${tokenId}`);
    expect(response.headers.get('Retry-After')).to.equal('1');
    return tokenId;
  }

  const mined = (tokenId: string) =>
    eventually('the document is mined', async () => {
      const { status, text } = await fetchDocument(service.url, tokenId);
      return status === 200 ? (JSON.parse(text) as { txHash: string }) : undefined;
    });

  it('answers 202 before the mint is mined; its Location has the document afterwards', async () => {
    let tokenId = '';
    await withoutMining(local, async () => {
      tokenId = await accepted(await post(ASYNC));
      const { status, text } = await fetchDocument(service.url, tokenId);
      expect(status, text).to.equal(202);
    });
    const { txHash } = await mined(tokenId);
    const receipt = await local.client.getTransactionReceipt(txHash);
    expect(receipt?.status).to.equal(1);
  });

  it('mints once for an Idempotency-Key, repeated with or without the preference', async () => {
    const key = { 'Idempotency-Key': randomUUID() };
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    const answered = async (): Promise<string> => accepted(await post({ ...ASYNC, ...key }));
    const tokens = await Promise.all([answered(), answered()]);
    const waiting = await post(key);
    const { txHash } = (await waiting.json()) as { txHash: string };
    expect(waiting.status).to.equal(200);
    tokens.push(await answered());
    const [tokenId = ''] = tokens;
    expect(new Set(tokens).size).to.equal(1);
    expect((await mined(tokenId)).txHash).to.equal(txHash);
    expect([...(await mintedTokens(local, fromBlock)).keys()]).to.deep.equal([tokenId]);

    const other = await post({ ...ASYNC, ...key }, body.replace('{', '{ '));
    expect(other.status).to.equal(422);
  });

  it('mints a document that was accepted shortly before a restart', async () => {
    await using node = await startRpcProxy(local.node.url);
    await service.stop();
    service = await startService({ ...local.settings, API_KEY, RPC_URL: node.url });
    node.answer((method) => (method === 'eth_sendRawTransaction' ? 'drop request' : 'none'));
    const tokenId = await accepted(await post(ASYNC));
    await service.stop();
    expect([...(await mintedTokens(local, 0)).keys()]).not.to.include(tokenId);
    service = await startService({ ...local.settings, API_KEY });
    await mined(tokenId);
  });

  it('has no effect without API_KEY, because GET /documents does not exist then', async () => {
    await service.stop();
    service = await startService(local.settings);
    const response = await post(ASYNC);
    expect(response.status).to.equal(200);
    expect(response.headers.get('Preference-Applied')).to.equal(null);
  });
});
