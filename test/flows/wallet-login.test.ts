import { expect } from 'chai';
import { Wallet, zeroPadBytes, type BaseWallet } from 'ethers';
import { createClient } from '../../client/create-client';
import { systemTime } from '../../service/base/time';
import { SigningAccount__factory, type SigningAccount } from '../../typechain-types';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { startRpcProxy, THROUGH, type Answerer, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { ENGINES } from '../helpers/database/engines';
import { loginMessage, type LoginLines } from '../helpers/login-message';
import { callService, type ApiAnswer } from '../helpers/processes/create-call';
import { startSubscribedService, type SubscribedService } from '../helpers/processes/subscribed-service';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';

const CHAIN = 31337;
const VALID = '0x1626ba7e';
const YES = zeroPadBytes(VALID, 32);

interface Key {
  id: string;
  key: string;
  scope: object;
  may: string[];
  expiresAt: string;
}

for (const engine of ENGINES)
  describe(`The log-in of a wallet on ${engine}`, () => {
    let api: SubscribedService;
    let wallet: BaseWallet;
    let tokenId: bigint;
    /** Two ways to the node. */
    let nodes: RpcProxy[];

    before(async function () {
      const started = await startSubscribedService(engine, { CONFIRMATIONS: '0', WALLET_LOGIN: 'true' });
      if (started === undefined) return this.skip();
      api = started;
      nodes = [await startRpcProxy(api.local.node.url), await startRpcProxy(api.local.node.url)];
      await api.restart({ RPC_URL: nodes.map(({ url }) => url).join(' ') });
      wallet = Wallet.createRandom();
      ({ tokenId } = await mintDirectly(api.local, wallet.address));
      await mintDirectly(api.local, await api.local.account(1));
      await api.caughtUp();
    });
    afterEach(() => nodes.forEach((node) => node.answer(THROUGH)));

    const ask = <Body>(path: string, body?: unknown, key?: string, method = 'POST') =>
      callService<Body>(method, `${api.service.url}${path}`, body, {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      });
    const makeNonce = async (): Promise<string> => {
      const { status, body, headers } = await ask<{ nonce: string }>('/login/nonce');
      expect([status, headers.get('cache-control')]).to.deep.equal([200, 'no-store']);
      return body.nonce;
    };
    const signed = async (lines: Partial<LoginLines> = {}, signer = wallet, prefix = '0x') => {
      const nonce = await makeNonce();
      const message = loginMessage({ address: signer.address, nonce, ...lines });
      const signature = await signer.signMessage(message);
      return { message, signature: signature.replace('0x', prefix) };
    };
    const logIn = async (...terms: Parameters<typeof signed>): Promise<ApiAnswer<Key>> =>
      ask<Key>('/login', await signed(...terms));
    const answered = ({ status, code, message }: ApiAnswer<unknown>): unknown[] => [
      status,
      code,
      /^\/\w+(: \w+( ID)?)?/.exec(message)?.[0],
    ];
    const refused = (line: string): unknown[] => [403, 'LOGIN_REFUSED', `/message: ${line}`];

    it('gives a key that fetches the events of its token, and verifies them, and no others', async () => {
      const { status, body, message, headers } = await logIn();
      expect(status, message).to.equal(201);
      expect(headers.get('cache-control')).to.equal('no-store');
      const party = `eip155:${CHAIN}:${wallet.address.toLowerCase()}`;
      expect(body).to.deep.include({ name: party, scope: { parties: [party] }, may: ['read', 'subscribe'] });
      const hours = (Date.parse(body.expiresAt) - systemTime.now()) / 3_600_000;
      expect(hours).to.be.within(23, 24);
      const client = createClient({ url: api.service.url, key: body.key });
      const tokens = new Set<string>();
      for await (const { body: text } of client.events({ follow: false }))
        if (text !== undefined) tokens.add((JSON.parse(text) as { subject: string }).subject);
      expect(tokens).to.deep.equal(new Set([String(tokenId)]));
    });

    it('is for one time, one service and one chain', async () => {
      const once = await signed();
      expect((await ask('/login', once)).status).to.equal(201);
      expect(answered(await ask('/login', once))).to.deep.equal(refused('Nonce'));
      const both = await signed();
      const raced = await Promise.all([ask('/login', both), ask('/login', both)]);
      expect(raced.map(({ status }) => status).sort()).to.deep.equal([201, 403]);
      const over = new Date(systemTime.now() - 61_000).toISOString();
      for (const [lines, line] of [
        [{ domain: 'carrier.example' }, 'domain'],
        [{ chainId: 1 }, 'Chain ID'],
        [{ nonce: 'a1b2c3d4' }, 'Nonce'],
        [{ expirationTime: over }, 'Expiration'],
      ] as const)
        expect(answered(await logIn(lines)), line).to.deep.equal(refused(line));
      const { address } = Wallet.createRandom();
      expect(answered(await logIn({ address }))).to.deep.equal(refused('address'));
      const { message } = await signed();
      const wrong = { message, signature: '0x' };
      expect(answered(await ask('/login', wrong))).to.deep.equal([400, 'LOGIN_INVALID', '/signature']);
      expect(answered(await ask('/login', { signature: '0x12' }))).to.deep.equal([
        400,
        'LOGIN_INVALID',
        '/message',
      ]);
    });

    it('believes the settings for its domain, and never the header Host', async () => {
      const body = await signed({ domain: 'carrier.example' });
      const answer = await callService('POST', `${api.service.url}/login`, body, { host: 'carrier.example' });
      expect(answered(answer)).to.deep.equal(refused('domain'));
    });

    it('ends with its message', async () => {
      const expirationTime = new Date(systemTime.now() + 60_000).toISOString();
      const { body } = await logIn({ expirationTime });
      expect(Date.parse(body.expiresAt)).to.equal(Date.parse(expirationTime) + 60_000);
    });

    it('that is revoked ends its key, and the next one has the subscriptions', async () => {
      const own = Wallet.createRandom();
      const first = (await logIn({}, own)).body;
      const sink = await api.sink();
      const subscription = { sink: sink.url, protocol: 'HTTP' };
      const made = await ask<{ id: string }>('/subscriptions', subscription, first.key);
      expect(made.status, made.message).to.equal(201);
      expect((await api.call('DELETE', `/keys/${first.id}`)).status).to.equal(204);
      expect((await ask('/subscriptions', undefined, first.key, 'GET')).status).to.equal(401);
      const { key } = (await logIn({}, own)).body;
      const path = `/subscriptions/${made.body.id}`;
      const { body } = await ask<{ config: { state: string } }>(path, undefined, key, 'GET');
      expect(body.config.state).to.equal('paused');
      const again = { ...subscription, config: { state: 'active' } };
      expect((await ask(path, again, key, 'PUT')).status).to.equal(200);
      expect((await ask(path, undefined, (await logIn()).body.key, 'GET')).status).to.equal(404);
    });

    describe('that is a contract', () => {
      let account: SigningAccount;
      let address: string;
      const modes = { ofOwner: 0, wrongValue: 1, tooMuch: 2, tooLittle: 3, burnsGas: 4, reverts: 5 };

      before(async () => {
        const deployer = await api.local.client.getSigner(0);
        account = await new SigningAccount__factory(deployer).deploy(wallet.address);
        address = await (await account.waitForDeployment()).getAddress();
      });
      const answerWith = async (mode: number): Promise<void> => {
        await (await account.answerWith(mode)).wait();
      };
      /** Its signature has a byte before that of the owner. */
      const enter = (signer = wallet): Promise<ApiAnswer<Key>> => logIn({ address }, signer, '0x00');
      const say =
        (answer: Awaited<ReturnType<Answerer>>): Answerer =>
        (method, [call]) =>
          method === 'eth_call' && (call as { data: string }).data.startsWith(VALID) ? answer : 'none';

      it('is asked whose the signature is: only its own answer for its owner is right', async () => {
        const { status, body, message } = await enter();
        expect(status, message).to.equal(201);
        expect(body.scope).to.deep.equal({ parties: [`eip155:${CHAIN}:${address.toLowerCase()}`] });
        expect(answered(await enter(Wallet.createRandom()))).to.deep.equal(refused('address'));
        for (const [name, mode] of Object.entries(modes).slice(1)) {
          await answerWith(mode);
          expect(answered(await enter()), name).to.deep.equal(refused('address'));
        }
        await answerWith(modes.ofOwner);
        // This precompiled contract answers with what it was sent, which begins with the right value.
        const identity = '0x0000000000000000000000000000000000000004';
        expect(answered(await logIn({ address: identity }))).to.deep.equal(refused('address'));
      });

      it('is believed when two nodes say the same: otherwise it can be sent again', async () => {
        const [first, second] = nodes;
        const undecided = [503, 'LOGIN_UNDECIDED', undefined];
        first?.answer(say({ result: YES }));
        const stranger = Wallet.createRandom();
        const differing = await enter(stranger);
        expect(answered(differing)).to.deep.equal(undecided);
        expect(differing.headers.get('retry-after')).to.equal('10');
        first?.answer(say({ error: { code: -32000, message: 'out of order' } }));
        expect(answered(await enter())).to.deep.equal(undecided);
        first?.answer(say({ result: '0x12' }));
        second?.answer(say({ result: '0x12' }));
        expect(answered(await enter())).to.deep.equal(refused('address'));
        nodes.forEach((node) => node.answer(say({ error: { code: -32000, message: 'out of order' } })));
        expect(answered(await enter())).to.deep.equal(undecided);
        nodes.forEach((node) => node.answer(THROUGH));
        // The nonce is used when the key is made, so the same message can be sent again.
        const body = await signed({ address }, wallet, '0x00');
        first?.answer(say({ result: 'none' }));
        expect((await ask('/login', body)).status).to.equal(503);
        first?.answer(THROUGH);
        expect((await ask('/login', body)).status).to.equal(201);
      });
    });

    it('is limited for each account, and says when the next one is possible', async () => {
      const own = Wallet.createRandom();
      for (let times = 0; times < 20; times++) expect((await logIn({}, own)).status).to.equal(201);
      const next = await logIn({}, own);
      expect(answered(next)).to.deep.equal([429, 'LOGIN_ATTEMPTS', undefined]);
      expect(Number(next.headers.get('retry-after'))).to.be.within(3_000, 3_600);
      expect((await logIn()).status).to.equal(201);
    });

    it('is done by `tdoc login`, whose key `tdoc events` takes', async () => {
      const { url } = api.service;
      const settings = { ENV_FILE: `${api.local.folder}/none.env`, WALLET_PRIVATE_KEY: wallet.privateKey };
      const ofPlace = ['--url', url, '--domain', 'localhost:3000', '--chain-id', String(CHAIN)];
      const shown = await askTdocInProcess(['login', ...ofPlace], settings);
      expect(shown.code, shown.stderr).to.equal(0);
      expect(shown.stdout).to.match(/^tdk_[\w-]{43}\n$/);
      const { stdout } = await askTdocInProcess(['login', ...ofPlace, '--json'], settings);
      const { key } = JSON.parse(stdout) as Key;
      const events = await askTdocInProcess(['events', '--url', url], { ...settings, RECEIVER_API_KEY: key });
      expect(events.code, events.stderr).to.equal(0);
      expect(events.stdout).to.contain(`subject ${tokenId}`);
      const elsewhere = await askTdocInProcess(['login', '--url', url], settings);
      expect([elsewhere.code, elsewhere.stderr]).to.deep.include(1);
      expect(elsewhere.stderr).to.contain('LOGIN_REFUSED');
    });

    describe('without WALLET_LOGIN', () => {
      it('does not exist', async () => {
        const body = await signed();
        await api.restart({ WALLET_LOGIN: '' });
        for (const path of ['/login', '/login/nonce'])
          expect(answered(await ask(path, body))).to.deep.equal([404, 'NOT_FOUND', undefined]);
        const { url } = api.service;
        const settings = { WALLET_PRIVATE_KEY: wallet.privateKey };
        const answer = await askTdocInProcess(['login', '--url', url], settings);
        expect([answer.code, answer.stderr.includes('WALLET_LOGIN=true')]).to.deep.equal([1, true]);
      });
    });
  });
