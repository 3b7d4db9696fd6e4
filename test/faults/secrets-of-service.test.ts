import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { freePort } from '../../devnet/place';
import { connectNode } from '../../service/chain/chain';
import { messageOf } from '../../service/base/errors';
import { createLogger } from '../../service/base/logger';
import { secretMasker } from '../../service/base/mask-secrets';
import { knownSecrets, loadConfig, readSettings } from '../../service/config/config';
import { parseDidKeyPair } from '../../service/base/did-key-pair';
import { openWallet } from '../../service/keys/wallet';
import type { TunnelLibrary } from '../../service/http/tunnel';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { eventually } from '../helpers/eventually';
import { tracesInFiles, tracesOf } from '../helpers/processes/marked-secrets';
import { markedSettings } from '../helpers/processes/marked-settings';
import { postgresDatabase, type PostgresDatabase } from '../helpers/database/postgres';
import { startRpcProxy, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { startService } from '../helpers/processes/running-service';
import { failToStart, startServiceProcess } from '../helpers/processes/service-process';
import { MODE_NAMES, startEchoingServer, type EchoingServer } from '../helpers/processes/echoing-server';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { VirtualTime } from '../helpers/virtual-time';

/** Methods that are called for each document, and for nothing else. */
const ISSUING = /eth_call|estimateGas|getTransactionCount/;

/** The mode after which a node is asked again for a long time. */
const THROTTLED = 'status-429';

/** Addresses of the registries that are followed through failing nodes. */
const address = (n: number): string => `0x${String(n).padStart(40, '1')}`;

describe('the service with secrets in its settings', () => {
  const marked = markedSettings();
  const { wallet, secrets, secret, nodeUrl } = marked;
  const password = secret('password of the node');
  let local: LocalSetup;
  let proxy: RpcProxy;
  let echo: EchoingServer;
  let database: PostgresDatabase | undefined;
  let settings: Record<string, string>;

  before(async () => {
    local = await createLocalSetup();
    proxy = await startRpcProxy(local.node.url);
    echo = await startEchoingServer();
    const parsed = parseDidKeyPair(readSettings(local.settings).settings.DID_KEY_PAIRS ?? '');
    const signingKey = generateKeyPairSync('ed25519').privateKey;
    secrets.SIGNING_PRIVATE_KEY = signingKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    secrets.SIGNING_PRIVATE_KEY_NEXT = randomBytes(32).toString('base64');
    secrets.DID_KEY_PAIRS = 'keyPair' in parsed ? parsed.keyPair.secretKeyMultibase : '';
    await local.client.send('hardhat_setBalance', [wallet.address, '0xde0b6b3a7640000']);
    settings = {
      ...local.settings,
      ...marked.settings(echo.port),
      RPC_URL: nodeUrl(Number(new URL(proxy.url).port)),
      SIGNING_PRIVATE_KEY: secrets.SIGNING_PRIVATE_KEY.replaceAll('\n', '\\n'),
      SIGNING_PRIVATE_KEY_NEXT: secrets.SIGNING_PRIVATE_KEY_NEXT,
      SIGNING_KEY_SWITCH_AT: '2100-01-01T00:00:00Z',
      LOG_LEVEL: 'trace',
      NODE_ENV: 'development',
    };
  });

  /**
   * Configures registries with failing nodes: the echoing server over HTTP, WebSocket and TLS to its plain
   * port, two closed ports, and an unknown name.
   */
  async function writeRegistries(): Promise<void> {
    const rpcUrls = [
      nodeUrl(echo.port),
      nodeUrl(echo.port, 'ws'),
      nodeUrl(echo.port, 'https'),
      nodeUrl(await freePort(0), 'wss'),
      nodeUrl(await freePort(0)),
      nodeUrl(1).replace('127.0.0.1:1', 'node.invalid'),
    ];
    const registries = rpcUrls.map((rpcUrl, n) => ({
      network: 'localhost',
      address: address(n),
      rpcUrl,
      pollIntervalMs: 50,
    }));
    const webhook = {
      headers: marked.webhookHeaders,
      timeoutMs: 500,
      retry: { initialDelayMs: 20, maxDelayMs: 50 },
    };
    writeFileSync(settings.SERVICE_CONFIG ?? '', JSON.stringify({ webhook, registries }));
  }

  it('reveals no secret when the node, the webhook or the gas station fail in every way', async () => {
    await writeRegistries();
    const service = await startServiceProcess(settings);
    const answers: string[] = [];
    const owner = await local.account(1);
    const ask = async (path: string, init: RequestInit = {}): Promise<number> => {
      const response = await fetch(`${service.url}${path}`, init);
      answers.push(JSON.stringify([...response.headers]), await response.text());
      return response.status;
    };
    const issue = (
      key: string,
      body = JSON.stringify({ ...minimal, owner, holder: owner }),
    ): Promise<number> => {
      const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${key}` };
      return ask('/create/BILL_OF_LADING', { method: 'POST', headers, body });
    };

    // The wallet is not the minter: the simulation reverts.
    expect(await issue(secret('API_KEY'))).to.equal(500);
    const registry = TradeTrustTokenStandard__factory.connect(
      local.registryAddress,
      await local.client.getSigner(0),
    );
    await registry.grantRole(await registry.MINTER_ROLE(), wallet.address);
    const statuses: number[] = [];
    for (const mode of MODE_NAMES) {
      // The gas station, the webhook and a followed registry's node fail in this mode; then the node for
      // issuing, unless the caller would wait long.
      echo.fail(mode);
      statuses.push(await issue(secret('API_KEY')));
      await eventually(`${mode} is met`, () => (echo.asked[mode] ?? 0) > 0);
      if (mode === THROTTLED) continue;
      proxy.answer(async (method) => {
        if (!ISSUING.test(method)) return 'none';
        const told = await fetch(`http://127.0.0.1:${echo.port}/`, { method: 'POST', body: nodeUrl(1) });
        return { status: told.status, body: `${await told.text()} ${nodeUrl(1)} ${password}` };
      });
      statuses.push(await issue(secret('API_KEY')));
      proxy.answer(() => 'none');
      await Promise.all([ask('/health'), ask('/metrics')]);
    }
    expect(statuses).to.include.members([200, 500]);
    // After an unknown refusal the node may have the transaction: the caller waits until it is mined.
    let refusals = 2;
    proxy.answer((method, params) =>
      method === 'eth_sendRawTransaction' && refusals-- > 0
        ? { error: { code: -32000, message: `${nodeUrl(1)} ${JSON.stringify(params)} ${password}` } }
        : 'none',
    );
    expect(await issue(secret('API_KEY'))).to.equal(200);
    expect(refusals).to.be.lessThan(2);
    proxy.answer(() => 'none');
    expect(await issue(`${secret('API_KEY')}x`)).to.equal(401);
    expect(await issue(secret('API_KEY'), `{"a": "${secret('API_KEY')}`)).to.equal(400);
    await ask(`/nothing?key=${secret('API_KEY')}`);
    await ask('/.well-known/did.json');
    expect(await ask('/.well-known/jwks.json')).to.equal(200);
    expect(echo.asked['web-socket']).to.be.at.least(1);

    const underWay = issue(secret('API_KEY')).catch(() => undefined);
    await service.end('SIGTERM');
    await underWay;
    expect(service.output())
      .to.contain('gas station')
      .and.to.contain('[secret]')
      .and.to.contain('delivery failed');
    expect(tracesOf(secrets, service.output())).to.deep.equal([]);
    expect(tracesOf(secrets, answers.join('\n'))).to.deep.equal([]);
    const { DATA_DIR = '' } = settings;
    expect(tracesInFiles(secrets, [DATA_DIR])).to.deep.equal([]);
  });

  it('reveals no secret when the tunnel cannot be opened and its library repeats all options', async () => {
    const reachable = { ...settings, DOMAIN: 'carrier.example', DID_KEY_PAIRS: '' };
    for (const failure of ['rejects', 'throws', 'is no library'] as const) {
      const service = await startService(reachable, {
        async load() {
          if (failure === 'throws') throw new Error(`no library for ${inspect(settings)}`);
          if (failure === 'is no library') return {} as TunnelLibrary;
          const tell = async (options: object): Promise<never> => {
            throw Object.assign(new Error(`${inspect(options)}, ERR_NGROK_107`), { options });
          };
          return { forward: tell };
        },
      });
      const warning = await eventually('the warning', () =>
        service.log.find(({ msg = '' }) => msg.includes('without a public address')),
      ).finally(() => service.stop());
      expect(warning.error)
        .to.have.property('code')
        .that.matches(/^TUNNEL_/);
      expect(tracesOf(secrets, JSON.stringify(service.log)), failure).to.deep.equal([]);
    }
  });

  for (const [what, mode, status] of [
    ['an answer is cut off in the middle of a key', 'long-refusal', 500],
    ['a node throttles until the last attempt', THROTTLED, 429],
  ] as const)
    it(`reveals no secret when ${what}`, async () => {
      echo.fail(mode);
      const time = VirtualTime.ofRequests();
      for (const use of ['single', 'bulk'] as const) {
        const client = connectNode(nodeUrl(echo.port), {}, time, use);
        const error: unknown = await time.settled(
          client.send('eth_chainId', []).catch((thrown: unknown) => thrown),
        );
        client.close();
        expect(String(error)).to.contain(`server response ${status}`).and.to.contain('/v3/[secret]');
        expect(tracesOf(secrets, inspect(error, { depth: null }))).to.deep.equal([]);
      }
    });

  it('reveals no secret when the signer fails in every way and repeats all that it was sent', async () => {
    const { walletKey, secrets: masked } = loadConfig({ ...settings, ...marked.remoteWallet(echo.port) });
    let log = '';
    const logger = createLogger({
      level: 'trace',
      mask: secretMasker(masked),
      destination: { write: (line) => void (log += line) },
    });
    if (walletKey === undefined) throw new Error('there is no wallet');
    const signer = openWallet(systemTime, walletKey, logger);
    const fees = { type: 0, gasPrice: 1n, gasLimit: 300_000n } as const;
    const fields = { ...fees, to: local.registryAddress, data: '0x', chainId: 31337, nonce: 0 };
    for (const mode of MODE_NAMES) {
      echo.fail(mode);
      const before = echo.asked[mode] ?? 0;
      for (const ask of [() => signer.sign(fields), () => signer.remote?.check()])
        await ask()?.catch((error: unknown) => logger.warn({ error }, messageOf(error)));
      expect(echo.asked[mode], mode).to.be.at.least(before + 2);
      log += JSON.stringify(signer.remote?.report());
    }
    expect(log).to.contain('SIGNER_REFUSED').and.to.contain('[secret]');
    expect(tracesOf(secrets, log)).to.deep.equal([]);
  });

  it('reveals no secret when an error is not caught', async () => {
    const script = join(local.folder, 'throw.cjs');
    writeFileSync(
      script,
      `const t = setInterval(() => {
        if (process.listenerCount('SIGTERM') === 0) return;
        clearInterval(t);
        throw new Error('stumbled over ' + process.env.RPC_URL, { cause: process.env.WALLET_PRIVATE_KEY });
      }, 5);`,
    );
    const { code, output } = await failToStart({ ...settings, NODE_OPTIONS: `--require=${script}` });
    expect(code).to.equal(1);
    expect(output).to.contain('ended by an unexpected error: stumbled over [secret]');
    expect(tracesOf(secrets, output)).to.deep.equal([]);
  });

  it('reveals no secret when it cannot start', async () => {
    const broken = join(local.folder, 'broken.json');
    const key = secret('key of the webhook');
    writeFileSync(broken, `{"webhook": {"url": "https://h.example/${key}" "timeoutMs": 1}}`);
    const odd = join(local.folder, 'odd.json');
    writeFileSync(
      odd,
      JSON.stringify({ webhook: { headers: { [`Authorization: Bearer ${key}`]: key }, url: key } }),
    );
    database = await postgresDatabase();
    const wrongPassword = database && new URL(database.url);
    const password = secret('password of the database');
    if (wrongPassword) wrongPassword.password = password;
    const closed = `postgres://postgres:${password}@127.0.0.1:${await freePort(0)}/x`;
    const refused: [Record<string, string>, RegExp][] = [
      [{ SERVICE_CONFIG: odd }, /odd\.json: .*webhook\.url.*|header 1 is not a header name/],
      [{ DATABASE_URL: closed.replace('postgres:', 'postgres') }, /DATABASE_URL is not a URL/],
      [{ NET: secret('key in the path') }, /NET "\[secret\]" is not/],
      [{ TOKEN_REGISTRY_ADDRESS: wallet.privateKey }, /TOKEN_REGISTRY_ADDRESS \(66 characters\) is not/],
      [{ DOMAIN: nodeUrl(1) }, /DOMAIN \(\d+ characters\) is not/],
      [{ SIGNING_PRIVATE_KEY: secret('SIGNING_PRIVATE_KEY').slice(0, 80) }, /SIGNING_PRIVATE_KEY is not/],
      [
        { SIGNING_PRIVATE_KEY_NEXT: secret('SIGNING_PRIVATE_KEY_NEXT').slice(1) },
        /SIGNING_PRIVATE_KEY_NEXT is not/,
      ],
      [
        { SIGNING_KEY_SWITCH_AT: secret('SIGNING_PRIVATE_KEY_NEXT') },
        /SIGNING_KEY_SWITCH_AT \(44 characters\)/,
      ],
    ];
    for (const [changes, problem] of refused) {
      const changed = { ...settings, ...changes };
      const message = secretMasker(knownSecrets(changed))(thrownBy(() => loadConfig(changed)));
      expect(message).to.match(problem);
      expect(tracesOf(secrets, message), message.slice(0, 200)).to.deep.equal([]);
    }
    const starting: [Record<string, string>, RegExp][] = [[{ NET: 'amoy' }, /CHAIN|NET is amoy/]];
    if (wrongPassword)
      starting.push([{ DATABASE_URL: wrongPassword.href }, /password authentication failed/]);
    for (const [changes, problem] of starting) {
      const changed = { ...settings, ...changes };
      const thrown: unknown = await startService(changed).catch((error: unknown) => error);
      const printed = secretMasker(knownSecrets(changed))(inspect(thrown));
      expect(printed).to.match(problem);
      expect(tracesOf(secrets, printed), printed.slice(0, 200)).to.deep.equal([]);
    }
    // A process for each place that prints.
    const failing: [Record<string, string>, RegExp][] = [
      [{ SERVICE_CONFIG: broken }, /broken\.json is not JSON: line 1, column \d+/],
      [{ DATABASE_URL: closed }, /\nThe database .*ECONNREFUSED.* \[DATABASE_UNREACHABLE\]\n.*\n$/],
      [
        { ENV_FILE: local.folder },
        /^The service cannot start\.\nENV_FILE .* cannot be read: EISDIR.*\n.*\n$/,
      ],
    ];
    const ends = await Promise.all(failing.map(([changes]) => failToStart({ ...settings, ...changes })));
    for (const [index, { code, output }] of ends.entries()) {
      expect(code).to.equal(1);
      expect(output).to.match(failing[index]?.[1] ?? /never/);
      expect(tracesOf(secrets, output), output.slice(0, 200)).to.deep.equal([]);
    }
  });
});

/** The message of what a function throws; empty if it throws nothing. */
function thrownBy(work: () => unknown): string {
  try {
    work();
    return '';
  } catch (thrown) {
    return messageOf(thrown);
  }
}
