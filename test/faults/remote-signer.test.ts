import { expect } from 'chai';
import { Transaction } from 'ethers';
import { codeOf } from '../../service/base/errors';
import type { TransactionFields } from '../../service/keys/transaction-signer';
import { openWallet, type Wallet } from '../../service/keys/wallet';
import { createLocalSetup, DEPLOYER, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';
import {
  startRpcProxy,
  THROUGH,
  type Answerer,
  type HttpAnswer,
  type RpcProxy,
} from '../helpers/chain/rpc-proxy';
import { LIES, STRANGER } from '../helpers/chain/signer-lies';
import { errorOf } from '../helpers/error-of';
import { eventually } from '../helpers/eventually';
import { first, mintsOf, newIssuance, withQueue } from '../helpers/processes/running-mint-queue';
import { VirtualTime } from '../helpers/virtual-time';

const SIGN = 'eth_signTransaction';
const AWAY = "mints wait: the wallet's signer cannot be asked";
// anvil signs: a program that nobody here wrote.
describe('a remote signer', () => {
  let time: VirtualTime;
  let local: LocalSetup;
  let proxy: RpcProxy;

  before(async () => {
    local = await createLocalSetup({ program: 'anvil' });
    proxy = await startRpcProxy(local.node.url);
    time = VirtualTime.ofRequests();
  });
  afterEach(() => proxy.answer(THROUGH));
  const open = (address = DEPLOYER, token?: string): Wallet =>
    openWallet(time, { url: proxy.url, address, token, certificate: undefined });

  const fields: TransactionFields = {
    ...{ type: 2, maxFeePerGas: 3_000_000_000n, maxPriorityFeePerGas: 1n },
    ...{ to: STRANGER.address, data: '0x1234', chainId: 31337, nonce: 7, gasLimit: 300_000n },
  };
  const legacy: TransactionFields = {
    ...{ type: 0, gasPrice: 3_000_000_000n },
    ...{ to: STRANGER.address, data: '0x1234', chainId: 31337, nonce: 7, gasLimit: 300_000n },
  };

  /** Lets the signer lie about every transaction. */
  const lying =
    (lie: (wanted: string) => unknown): Answerer =>
    async (method, _params, forward) => {
      if (method !== SIGN) return 'none';
      const answer = await forward();
      if ('error' in answer) return answer;
      return { result: await lie(String(answer.result)) };
    };

  it('signs the same bytes as the key itself', async () => {
    const itself = openWallet(time, { privateKey: DEPLOYER_KEY });
    for (const wanted of [fields, legacy, { ...fields, to: null }, { ...legacy, gasPrice: 0n }])
      expect(await open().sign(wanted)).to.equal(await itself.sign(wanted));
  });

  it('signs a text as the key itself, with the method that it has', async () => {
    const text = 'a text\nfor nobody';
    const wanted = await openWallet(time, { privateKey: DEPLOYER_KEY }).signMessage(text);
    expect(await open().signMessage(text)).to.equal(wanted);
    const without =
      (...methods: string[]): Answerer =>
      (method) =>
        methods.includes(method) ? { error: { code: -32601, message: 'Method not found' } } : 'none';
    proxy.answer(without('eth_sign'));
    expect(await open().signMessage(text)).to.equal(wanted);
    proxy.answer(without('eth_sign', 'personal_sign'));
    expect(codeOf(await errorOf(open().signMessage(text)))).to.equal('SIGNER_REFUSED');
    const other = await openWallet(time, { privateKey: DEPLOYER_KEY }).signMessage('another');
    for (const result of [other, '0x12', null]) {
      proxy.answer((method) => (method === 'eth_sign' ? { result } : 'none'));
      expect(codeOf(await errorOf(open().signMessage(text)))).to.equal('SIGNER_ANSWER_WRONG');
    }
  });

  for (const [lie, answer] of Object.entries(LIES))
    it(`is not believed when it answers with ${lie}`, async () => {
      proxy.answer(lying(answer));
      const signer = open();
      expect(codeOf(await errorOf(signer.sign(fields)))).to.equal('SIGNER_ANSWER_WRONG');
      expect(signer.remote?.report()).to.include({ state: 'failing', code: 'SIGNER_ANSWER_WRONG' });
      proxy.answer(THROUGH);
      expect(codeOf(await errorOf(signer.remote?.check() ?? Promise.resolve()))).to.equal(
        'SIGNER_ANSWER_WRONG',
      );
      await signer.sign(fields);
      expect(signer.remote?.report()).to.include({ state: 'up', code: undefined, wrongAnswers: 1 });
    });

  /** Results of each type of JSON, and answers that are none of JSON-RPC. */
  const RUBBISH: Record<string, HttpAnswer | { result: unknown }> = {
    ...Object.fromEntries(
      [null, true, 7, 'signed', {}, { toString: 1 }, [{ toString: null }], [[null]], [7]].map((result) => [
        JSON.stringify(result),
        { result },
      ]),
    ),
    'a list': { status: 200, body: '[]' },
    'no result': { status: 200, body: '{"jsonrpc":"2.0","id":1}' },
    'an error that is a number': { status: 200, body: '{"error":5}' },
    'an error without a message': { status: 200, body: '{"error":{"message":{}}}' },
    'no JSON': { status: 200, body: '<html>Log in</html>' },
    'more than is read': { status: 200, body: `{"result":"0x${'00'.repeat(600_000)}"}` },
  };
  for (const [what, answer] of Object.entries(RUBBISH))
    it(`gives a wrong answer when it answers every question with ${what}`, async () => {
      proxy.answer(() => answer);
      const signer = open();
      for (const ask of [() => signer.remote?.check(), () => signer.sign(fields), () => signer.sign(legacy)])
        expect(await Promise.resolve(ask()).catch(codeOf)).to.equal('SIGNER_ANSWER_WRONG');
      expect(signer.remote?.report()).to.include({ state: 'failing', code: 'SIGNER_ANSWER_WRONG' });
    });

  it('is told to be away, refusing, or without the key', async () => {
    const signer = open();
    const failing = async (work: Promise<unknown> | undefined): Promise<unknown> => {
      const code = codeOf(await errorOf(work ?? Promise.resolve()));
      expect(signer.remote?.report()).to.include({ state: 'failing', code });
      return code;
    };
    expect(signer.remote?.report()).to.include({ state: 'unknown', key: 'wallet', at: proxy.url });
    proxy.answer(() => 'drop request');
    expect(await failing(signer.sign(fields))).to.equal('SIGNER_UNREACHABLE');
    expect(await failing(signer.remote?.check())).to.equal('SIGNER_UNREACHABLE');
    proxy.answer(() => ({ status: 502, body: 'Bad gateway' }));
    expect(await failing(signer.sign(fields))).to.equal('SIGNER_UNREACHABLE');
    proxy.answer(() => ({ status: 401 }));
    expect(await failing(signer.sign(fields))).to.equal('SIGNER_REFUSED');
    proxy.answer(() => ({ error: { code: -32000, message: 'locked' } }));
    expect(await failing(signer.sign(fields))).to.equal('SIGNER_REFUSED');
    proxy.answer(THROUGH);
    await signer.sign(fields);
    expect(signer.remote?.report()).to.include({ state: 'up' });
    const other = open(STRANGER.address);
    expect(codeOf(await errorOf(other.remote?.check() ?? Promise.resolve()))).to.equal('SIGNER_REFUSED');
    expect(codeOf(await errorOf(other.sign(fields)))).to.equal('SIGNER_REFUSED');
  });

  it('is asked again once when the connection breaks', async () => {
    proxy.answer(first(SIGN, 1, () => 'drop answer'));
    expect(await open().sign(fields)).to.equal(
      await openWallet(time, { privateKey: DEPLOYER_KEY }).sign(fields),
    );
  });

  it('is asked for all signatures of a batch at once', () =>
    withQueue(local, { wallet: open(), time }, async (queue) => {
      const minted: Promise<string>[] = [];
      let asked = 0;
      proxy.answer(async (method): Promise<'none'> => {
        if (method !== SIGN) return 'none';
        asked++;
        // The first batch is answered when the others wait for the next.
        if (asked === 1) minted.push(...Array.from({ length: 16 }, () => queue.mint()));
        else await eventually('sixteen signatures are asked for', () => asked >= 17);
        return 'none';
      });
      minted.push(queue.mint());
      await time.until('the first is asked for', () => minted.length === 17);
      await time.settled(Promise.all(minted));
      expect(queue.logged(AWAY)).to.equal(0);
    }));

  it('makes no mint with a wrong signature: that one is deferred, by name, and minted later', () =>
    withQueue(local, { wallet: open(), time }, async (queue) => {
      const asked = new Set<unknown>();
      const liars = ['another nonce', 'another recipient', 'another key', 'a high s'].map((lie) =>
        lying(LIES[lie] ?? String),
      );
      proxy.answer((method, params, forward) => {
        const [{ data } = { data: undefined }] = params as { data?: unknown }[];
        if (method !== SIGN || asked.has(data)) return 'none';
        // Each second mint is lied about once.
        const liar = asked.add(data).size % 2 === 0 ? liars.shift() : undefined;
        return liar?.(method, params, forward) ?? 'none';
      });
      const issuances = Array.from({ length: 8 }, () => newIssuance());
      await time.settled(Promise.all(issuances.map((issuance) => queue.mint(issuance))));
      expect(liars).to.deep.equal([]);
      expect(queue.logged('mint deferred: it was not signed')).to.equal(4);
      expect(queue.logged(AWAY)).to.equal(0);
      expect(JSON.stringify(queue.log)).to.contain('SIGNER_ANSWER_WRONG');
      for (const { method, params } of queue.proxy.requests)
        if (method === 'eth_sendRawTransaction')
          expect(Transaction.from(String(params[0]))).to.include({
            from: DEPLOYER,
            to: local.registryAddress,
          });
      for (const { tokenId } of issuances) expect(await mintsOf(local, tokenId)).to.have.length(1);
    }));

  it('may be away when fees must be raised: the mint does not fail', () =>
    withQueue(local, { wallet: open(), time }, async (queue) => {
      let isAway = false;
      proxy.answer((method) => (isAway && method === SIGN ? 'drop request' : 'none'));
      let refusals = 0;
      queue.answer((method) => {
        if (method !== 'eth_sendRawTransaction' || refusals++ > 0) return 'none';
        isAway = true;
        return { error: { code: -32000, message: 'transaction underpriced' } };
      });
      const minted = queue.mint();
      await time.until('no signature', () =>
        JSON.stringify(queue.log).includes('the signer cannot be asked'),
      );
      isAway = false;
      await time.settled(minted);
    }));
});
