import { join } from 'node:path';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { expect } from 'chai';
import { readSettings } from '../../service/config/config';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { createLocalSetup, DEPLOYER, type LocalSetup } from '../helpers/chain/local-setup';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { startRpcProxy, THROUGH, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { eventually } from '../helpers/eventually';
import { askTdoc } from '../helpers/processes/command-answer';
import { create } from '../helpers/processes/create-call';
import { API_KEY, AUTHORIZATION, fetchDocument } from '../helpers/processes/documents-call';
import { whileFollowing } from '../helpers/processes/followed-registry';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { askHardhatInProcess } from '../helpers/processes/hardhat-in-process';
import { forwardTo, hasOpenssl, startHttpsFront } from '../helpers/processes/https-front';
import { startService } from '../helpers/processes/running-service';
import { startServiceProcess } from '../helpers/processes/service-process';
import { askTdocInProcess, tdocInProcess } from '../helpers/processes/tdoc-in-process';

const SIGN = 'eth_signTransaction';
const TOKEN = 'token-of-the-signer';

// The node and the signer are anvil, which nobody here wrote. The process has no private key of the wallet.
describe('WALLET_SIGNER_URL', () => {
  let local: LocalSetup;
  let signer: RpcProxy;
  let owner: string;
  let remote: Record<string, string>;

  before(async () => {
    local = await createLocalSetup({ program: 'anvil' });
    signer = await startRpcProxy(local.node.url);
    owner = await local.account(1);
    remote = { WALLET_PRIVATE_KEY: '', WALLET_SIGNER_URL: signer.url, WALLET_ADDRESS: DEPLOYER };
  });
  afterEach(() => signer.answer(THROUGH));
  const body = () => ({ ...minimal, owner, holder: owner });

  const settingsOf = (folder: string): Record<string, string> => ({
    ...local.settings,
    ...remote,
    DATA_DIR: join(local.folder, folder),
  });

  it('signs a document’s mint from POST /create to the webhook, and is waited for while a caller waits', () =>
    whileFollowing(local, { settings: remote }, async ({ service: { url }, ...followed }) => {
      const { status, text } = await create(url, body());
      expect(status, text).to.equal(200);
      expect(signer.counts()).to.include({ [SIGN]: 1 });
      await signer.refuse();
      const asked = create(url, body());
      await eventually('it fails', async () => (await metricOf(url, 'etr_signer_up')) === 0);
      await signer.accept();
      expect(await asked).to.include({ status: 200 });
      await followed.allDeliveredOnce();
      expect(followed.accepted.filter(({ type }) => type === 'com.service.etr.minted')).to.have.length(2);
    }));

  it('may be away at the start: nothing is stored for callers who wait, all else goes on', async () => {
    await signer.refuse();
    const following = { settings: { ...remote, API_KEY } };
    await whileFollowing(local, following, async ({ service: { url }, ...followed }) => {
      const issuing = async () => (await healthOf(url)).issuing;
      const leaving = new AbortController();
      const left = create(url, body(), { headers: AUTHORIZATION, signal: leaving.signal }).catch(String);
      await eventually('it fails', async () => (await issuing())?.signers[0]?.state === 'failing');
      const failing = { key: 'wallet', at: signer.url, state: 'failing', code: 'SIGNER_UNREACHABLE' };
      expect((await issuing())?.signers[0]).to.include(failing);
      expect(await metricOf(url, 'etr_signer_up')).to.equal(0);
      expect((await issuing())?.mints).to.include({ waiting: 0, inFlight: 0 });
      leaving.abort();
      await left;
      const accepted = await create(url, body(), { headers: { ...AUTHORIZATION, Prefer: 'respond-async' } });
      expect(accepted.status, accepted.text).to.equal(202);
      const { tokenId } = JSON.parse(accepted.text) as { tokenId: string };
      const direct = await mintDirectly(local, owner);
      await eventually('the event of another mint is delivered', () =>
        followed.accepted.some(({ data }) => data.tokenId === String(direct.tokenId)),
      );
      expect((await issuing())?.mints).to.include({ waiting: 1 });
      await signer.accept();
      await eventually('it is minted', async () => (await fetchDocument(url, tokenId)).status === 200);
      const { status, text } = await create(url, body(), { headers: AUTHORIZATION });
      expect(status, text).to.equal(200);
      await followed.allDeliveredOnce();
      expect((await issuing())?.signers[0]).to.include({ state: 'up' });
      expect(await metricOf(url, 'etr_signer_up')).to.equal(1);
    });
  });

  it('is not waited for when it answers with rubbish: nothing is stored, and the caller gets 503', () =>
    whileFollowing(local, { settings: { ...remote, API_KEY } }, async ({ service: { url } }) => {
      signer.answer(() => ({ result: [{ toString: null }] }));
      const { status, errorCode, headers } = await create(url, body(), { headers: AUTHORIZATION });
      expect([status, errorCode]).to.deep.equal([503, 'SIGNER_ANSWER_WRONG']);
      expect(headers.get('X-Token-Id')).to.equal(null);
      signer.answer(THROUGH);
      await eventually('it is issued', async () => {
        const { status } = await create(url, body(), { headers: AUTHORIZATION });
        return status === 200;
      });
    }));

  it('may go away from a stored document, whose caller leaves: it gets its token later', async () => {
    const following = { settings: { ...remote, API_KEY } };
    await whileFollowing(local, following, async ({ service: { url }, ...followed }) => {
      const headers = { ...AUTHORIZATION, 'Idempotency-Key': '"stored"' };
      let asked = 0;
      signer.answer((method) => (method === SIGN && ++asked > 0 ? 'drop request' : 'none'));
      const leaving = new AbortController();
      const left = create(url, body(), { headers, signal: leaving.signal }).catch(String);
      await eventually('it is asked to sign', () => asked > 0);
      leaving.abort();
      await left;
      signer.answer(THROUGH);
      const { status, text } = await create(url, body(), { headers });
      expect(status, text).to.equal(200);
      await followed.allDeliveredOnce();
      expect(followed.accepted.filter(({ type }) => type === 'com.service.etr.minted')).to.have.length(1);
    });
  });

  for (const moment of ['before', 'after'] as const)
    it(`makes one token when the service is killed ${moment} the signature`, async () => {
      const before = [...(await mintedTokens(local, 0)).keys()];
      const settings = settingsOf(`killed-${moment}`);
      const headers = { 'Idempotency-Key': '"one-document"' };
      let isAsked = false;
      signer.answer(async (method, _params, forward) => {
        if (method !== SIGN) return 'none';
        const answer = moment === 'after' ? await forward() : undefined;
        isAsked = true;
        await eventually('the service is killed', () => signer.waiting() === 0);
        return answer ?? 'none';
      });
      const first = await startServiceProcess(settings);
      const lost = create(first.url, body(), { headers }).catch(() => undefined);
      await eventually('the signer is asked', () => isAsked);
      await first.end('SIGKILL');
      await lost;
      expect(await mintedTokens(local, 0)).to.have.property('size', before.length);
      signer.answer(THROUGH);
      await using second = await startService(settings);
      const { status, body: answer, text } = await create(second.url, body(), { headers });
      expect(status, text).to.equal(200);
      const tokens = [...(await mintedTokens(local, 0)).keys()].slice(before.length);
      expect(tokens).to.deep.equal([answer.signedW3CDocument.credentialStatus.tokenId]);
    });

  it('deploys a registry whose admin is WALLET_ADDRESS', async () => {
    const ENV_FILE = join(local.folder, 'deployed.env');
    const settings = { RPC_URL: local.node.url, NET: '31337', ENV_FILE, ...remote };
    const { code, stdout, stderr } = await askHardhatInProcess(
      ['deploy', '--network', 'localhost', '--new'],
      settings,
    );
    expect(code, stdout + stderr).to.equal(0);
    const registry = readSettings({ ENV_FILE }).settings.TOKEN_REGISTRY_ADDRESS ?? '';
    const list = await tdocInProcess(['role', 'list', '--role', 'admin', '--registry', registry], settings);
    expect(list).to.contain(DEPLOYER);
  });

  it('signs the transactions of the registry admin, and none that it answers wrongly', async () => {
    const settings = settingsOf('admin');
    const state = await tdocInProcess(['pause', '--json'], settings);
    expect(JSON.parse(state)).to.deep.include({ outcome: 'done', wallet: DEPLOYER });
    signer.answer(async (method) => {
      if (method !== SIGN) return 'none';
      return {
        result: await local.client.send(SIGN, [{ from: owner, to: owner, gas: '0x5208', nonce: '0x0' }]),
      };
    });
    const { code, stderr } = await askTdocInProcess(['unpause'], settings);
    expect(code).to.equal(2);
    expect(stderr).to.contain('SIGNER_ANSWER_WRONG');
    signer.answer(THROUGH);
    await tdocInProcess(['unpause'], settings);
    await tdocInProcess(['role', 'grant', '--role', 'minter', '--account', owner], settings);
    await tdocInProcess(['role', 'revoke', '--role', 'minter', '--account', owner], settings);
  });

  it('is checked by `tdoc check`, which names a signer that is away', async () => {
    const settings = { ...settingsOf('check'), WEBHOOK_URL: '' };
    const { stdout } = await askTdocInProcess(['check'], settings);
    expect(stdout).to.contain(`ok       signer ${signer.url}: answers, and has the key of WALLET_ADDRESS`);
    await signer.refuse();
    const away = await askTdocInProcess(['check'], settings).finally(() => signer.accept());
    expect(away.stdout).to.contain(
      `fault    signer ${signer.url}: The signer at ${signer.url} cannot be reached`,
    );
    expect(away.code).to.equal(1);
  });

  it('is asked with the token and the client certificate of the settings', async function () {
    if (!hasOpenssl) return this.skip();
    const toAnvil = forwardTo(() => local.node.url);
    await using front = await startHttpsFront(
      local.folder,
      {
        localhost(request: IncomingMessage, response: ServerResponse) {
          const isKnown = request.headers.authorization === `Bearer ${TOKEN}`;
          const isTrusted = (request.socket as TLSSocket).authorized;
          if (isKnown && isTrusted) toAnvil(request, response);
          else response.writeHead(isTrusted ? 401 : 403).end();
        },
      },
      0,
      true,
    );
    const tls = {
      WALLET_SIGNER_CERTIFICATE: join(local.folder, 'certificate.pem'),
      WALLET_SIGNER_CERTIFICATE_KEY: join(local.folder, 'key.pem'),
    };
    const settings = {
      ...settingsOf('tls'),
      ...front.trust,
      ...tls,
      WALLET_SIGNER_URL: `https://localhost:${front.port}`,
      WALLET_SIGNER_TOKEN: TOKEN,
    };
    const grant = ['role', 'grant', '--role', 'accepter', '--account', owner];
    const wrong = await askTdoc(grant, { ...settings, WALLET_SIGNER_TOKEN: `${TOKEN}-of-old` });
    expect(wrong.stderr).to.contain('SIGNER_REFUSED').and.to.contain('answers 401').and.not.to.contain(TOKEN);
    const { code, stdout, stderr } = await askTdoc(grant, settings);
    expect(code, stdout + stderr).to.equal(0);
  });
});
