import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { maskStandardError } from '../../cli/errors';
import { runTdoc } from '../../cli/program';
import { freePort } from '../../devnet/place';
import { systemTime } from '../../service/base/time';
import { readSettings } from '../../service/config/config';
import { parseDidKeyPair } from '../../service/base/did-key-pair';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { TitleEscrow__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { newTokenId } from '../helpers/chain/direct-mint';
import { askHardhat, askTdoc, type CommandAnswer } from '../helpers/processes/command-answer';
import { askHardhatInProcess } from '../helpers/processes/hardhat-in-process';
import { answerOf, askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { tracesInFiles, tracesOf } from '../helpers/processes/marked-secrets';
import { markedSettings } from '../helpers/processes/marked-settings';
import { giveChainBack, takeChain, type PreparedChain } from '../helpers/chain/prepared-chain';
import { startRpcProxy, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { MODE_NAMES, startEchoingServer, type EchoingServer } from '../helpers/processes/echoing-server';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';
import { VirtualTime } from '../helpers/virtual-time';
import {
  createTestIssuer,
  TEST_REGISTRY as TOKEN_REGISTRY_ADDRESS,
} from '../helpers/credentials/test-issuer';

/** The folders that commands and Hardhat write to. */
const WRITTEN_FOLDERS = ['deploy/deployments', 'cache', 'typechain-types'].map((name) =>
  join(PROJECT_ROOT, name),
);

/** `deploy` has the client of the other commands: one mode for each kind of answer. */
const MODES_OF_DEPLOY = ['status-401', 'rpc-error', 'told-as-result', 'half-json', 'cut'];

/** Throws an error that is not caught as soon as the command has begun. */
const THROW = `
const timer = setInterval(() => {
  if (process.listenerCount('uncaughtException') === 0) return;
  clearInterval(timer);
  throw new Error('stumbled over ' + process.env.RPC_URL, { cause: process.env.WALLET_PRIVATE_KEY });
}, 5);
`;

describe('commands with secrets in their settings', () => {
  const folder = temporaryFolder();
  const marked = markedSettings();
  const { wallet, secrets, secret, nodeUrl } = marked;
  const file = (name: string): string => join(folder.path, name);
  const settings: Record<string, string> = {
    ...marked.settings(1),
    ENV_FILE: file('marked.env'),
    SERVICE_CONFIG: file('service.config.json'),
    DID_DOCUMENT_PATH: file('did.json'),
    DATA_DIR: file('data'),
    DOMAIN: 'localhost:1',
    NET: '31337',
  };
  let chain: PreparedChain;
  let proxy: RpcProxy;
  let echo: EchoingServer;
  let time: VirtualTime;

  before(async () => {
    chain = await takeChain();
    stopLater('the chain of the commands', () => giveChainBack(chain));
    proxy = await startRpcProxy(chain.node.url);
    echo = await startEchoingServer();
    time = VirtualTime.ofRequests();
    await chain.client.send('hardhat_setBalance', [wallet.address, '0xde0b6b3a7640000']);
    settings.RPC_URL = nodeUrl(Number(new URL(proxy.url).port));
    const { webhookHeaders: headers } = marked;
    writeFileSync(file('service.config.json'), JSON.stringify({ webhook: { headers } }));
  });

  /** Runs a command, checks that it reveals no secret, and returns its output. */
  const run = async (
    ask: typeof askTdocInProcess,
    args: string[],
    changes: Record<string, string> = {},
  ): Promise<CommandAnswer> => keptBy(await ask(args, { ...settings, ...changes }), args.join(' '));

  /** Runs `deploy` in this process, where Hardhat's standard error is masked as in one of its own. */
  const deploy = (changes: Record<string, string>, ...options: string[]): Promise<CommandAnswer> => {
    const args = ['deploy', '--network', 'localhost', '--show-stack-traces', ...options];
    return run(askHardhatInProcess, args, changes);
  };

  function keptBy(answer: CommandAnswer, name: string): CommandAnswer {
    const output = `${answer.stdout}\n${answer.stderr}`;
    expect(tracesOf(secrets, output), name).to.deep.equal([]);
    return answer;
  }

  /**
   * Runs commands at once in this process, where their standard error is masked as in one of their own.
   * Checks and returns their output.
   */
  async function runMasked(
    commands: readonly string[][],
    changes: Record<string, string> = {},
  ): Promise<CommandAnswer> {
    const name = commands.map(([command]) => command).join();
    const work = async (): Promise<void> => {
      maskStandardError();
      await time.settled(Promise.all(commands.map((args) => runTdoc([...args, '--stack-traces'], time))));
    };
    return keptBy(await answerOf(work, { ...settings, ...changes }), name);
  }

  /** Runs the commands in each of these modes of the echoing server. Returns their standard error. */
  async function runInModes(
    modes: readonly string[],
    commands: readonly string[][],
    changes: Record<string, string> = {},
  ): Promise<string> {
    let errors = '';
    for (const mode of modes) {
      echo.fail(mode);
      errors += (await runMasked(commands, changes)).stderr;
    }
    return errors;
  }

  it('reveal no secret when they succeed, also with --verbose', async () => {
    const since = systemTime.now();
    for (const args of [['did'], ['signing-key', '--public-key-file', file('key.pem')]])
      expect((await run(askTdocInProcess, [...args, '--stack-traces'])).code, args[0]).to.equal(0);
    const { DID_KEY_PAIRS = '', SIGNING_PRIVATE_KEY = '' } = readSettings(settings).settings;
    const parsed = parseDidKeyPair(DID_KEY_PAIRS);
    secrets.DID_KEY_PAIRS = 'keyPair' in parsed ? parsed.keyPair.secretKeyMultibase : '';
    secrets.SIGNING_PRIVATE_KEY = SIGNING_PRIVATE_KEY;
    expect(secrets.DID_KEY_PAIRS).to.match(/^z42\w+/);

    const verbose = ['deploy', '--network', 'localhost', '--verbose', '--show-stack-traces'];
    const deployed = await run(askHardhat, verbose);
    expect(deployed).to.include({ code: 0 });
    expect(deployed.stderr).to.contain('hardhat:');
    expect(statSync(file('marked.env')).mode & 0o777).to.equal(0o600);
    expect(tracesInFiles(secrets, WRITTEN_FOLDERS, since)).to.deep.equal([]);
    const { code, stdout } = await run(askTdocInProcess, ['did', '--check']);
    expect(code, stdout).to.equal(2);
  });

  it('reveal no secret when the node refuses the transaction and repeats all that it was sent', async () => {
    const since = systemTime.now();
    const told = `refused: ${settings.RPC_URL} ${secret('password of the node')} ${wallet.privateKey}`;
    proxy.answer((method, params) =>
      /estimateGas|sendRawTransaction/.test(method)
        ? { error: { code: -32000, message: `${told} ${JSON.stringify(params)}`, data: told } }
        : 'none',
    );
    const failed = await deploy({}, '--new');
    proxy.answer(() => 'none');
    expect(failed.code).to.equal(1);
    expect(failed.stderr).to.contain('DEPLOYMENT_FAILED').and.to.contain('[secret]');
    expect(tracesInFiles(secrets, WRITTEN_FOLDERS, since)).to.deep.equal([]);
  });

  it('reveal no secret when the node fails in every way', async () => {
    const credential = file('credential.json');
    const issuer = await createTestIssuer(`localhost:${await freePort(0)}`);
    writeFileSync(credential, JSON.stringify(await issuer.sign()));
    const changes = { RPC_URL: nodeUrl(echo.port), TOKEN_REGISTRY_ADDRESS };
    const questions = [
      ['role', 'list'],
      ['token', '1'],
      ['verify-credential', credential, '--json'],
      ['decrypt-remark', credential],
    ];
    expect(await runInModes(MODE_NAMES, questions, changes)).to.contain('[secret]');
    for (const mode of MODE_NAMES) expect(echo.asked[mode], mode).to.be.at.least(3);
    let errors = '';
    for (const mode of MODES_OF_DEPLOY) {
      echo.fail(mode);
      errors += (await deploy(changes)).stderr;
    }
    expect(errors).to.contain('[secret]');
  });

  it('reveal no secret when the node refuses and repeats transactions of the registry admin', async () => {
    const { tokenId, account } = await returnedToken();
    const token = [String(tokenId), '--remark', 'fraud'];
    const commands = [
      ['role', 'grant', '--role', 'minter', '--account', account],
      ['role', 'revoke', '--role', 'restorer', '--account', wallet.address],
      ['pause', '--remark', 'fraud'],
      ['burn', ...token, '--yes'],
      ['restore', ...token],
    ];
    const told = `refused: ${settings.RPC_URL} ${secret('password of the node')} ${wallet.privateKey}`;
    const estimated = new Set<unknown>();
    // Each command fails twice: first at the gas estimate, then when its transaction is sent.
    proxy.answer((method, params) => {
      const { data } = (params[0] ?? {}) as { data?: unknown };
      const isFirstEstimate = method === 'eth_estimateGas' && !estimated.has(data);
      if (isFirstEstimate) estimated.add(data);
      const isRefused = isFirstEstimate || method === 'eth_sendRawTransaction';
      const message = `${told} ${JSON.stringify(params)}`;
      return isRefused ? { error: { code: -32000, message, data: told } } : 'none';
    });
    const answers = [await runMasked(commands), await runMasked(commands)];
    const [stdout, stderr] = [
      answers.map((one) => one.stdout).join(),
      answers.map((one) => one.stderr).join(),
    ];
    proxy.answer(() => 'none');
    for (const code of ['NODE_FAILED', 'TRANSACTION_REJECTED'])
      expect(stderr.split(`code: '${code}'`), code).to.have.length(1 + commands.length);
    expect(stderr).to.contain('warning: The gas station').and.to.contain('refused: [secret]');
    expect(stdout).not.to.contain('sent     0x');
  });

  it('reveal no secret when the signer fails in every way and repeats all that it was sent', async () => {
    let errors = '';
    for (const mode of MODE_NAMES) {
      echo.fail(mode);
      const { code, stderr } = await run(askTdocInProcess, ['pause'], marked.remoteWallet(echo.port));
      expect(code, mode).to.equal(2);
      errors += stderr;
    }
    for (const code of ['SIGNER_REFUSED', 'SIGNER_UNREACHABLE', 'SIGNER_ANSWER_WRONG'])
      expect(errors).to.contain(code);
    expect(errors).to.contain('[secret]');
  });

  /** A token of the deployed registry, and the account that returned it. */
  async function returnedToken(): Promise<{ tokenId: bigint; account: string }> {
    const holder = await chain.client.getSigner(1);
    const minter = new Wallet(wallet.privateKey, chain.client);
    const address = readSettings(settings).settings.TOKEN_REGISTRY_ADDRESS ?? '';
    const registry = TradeTrustTokenStandard__factory.connect(address, minter);
    const tokenId = newTokenId();
    await (await registry.mint(holder.address, holder.address, tokenId, '0x')).wait();
    const escrow = TitleEscrow__factory.connect(await registry.ownerOf(tokenId), holder);
    await (await escrow.returnToIssuer('0x')).wait();
    return { tokenId, account: holder.address };
  }

  it('reveal no secret when a node cannot be reached at all, and when a setting is wrong', async () => {
    const key = secret('key in the path');
    const closed = nodeUrl(await freePort(0));
    const urls = [
      closed.replace('http:', 'https:'),
      `https://node.invalid/v3/${key}?k=${key}`,
      nodeUrl(echo.port).replace('http:', 'ws:'),
      nodeUrl(echo.port).replace('http:', 'https:'),
    ];
    mkdirSync(file('folder.env'));
    writeFileSync(file('broken.json'), `{"webhook": {"url": "https://h.example/${key}" "timeoutMs": 1}}`);
    const DID_KEY_PAIRS = `{"secretKeyMultibase":"${secret('DID_KEY_PAIRS')}"`;
    for (const [changes, problem] of [
      [{ RPC_URL: closed }, /RPC_UNREACHABLE/],
      [{ WALLET_PRIVATE_KEY: wallet.privateKey.slice(0, -2) }, /WALLET_PRIVATE_KEY is not/],
      [{ RPC_URL: `https//n.example:x/v3/${key}?k=${key}` }, /RPC_URL is not a URL/],
    ] as const)
      expect((await deploy(changes)).stderr).to.match(problem);
    let errors = '';
    for (const [command, changes] of [
      ...urls.map((RPC_URL) => [['token', '1'], { RPC_URL }] as const),
      [['redeliver', '--dead'], { NET: key }],
      [['deliveries'], { SERVICE_CONFIG: file('broken.json') }],
      [['did'], { DID_KEY_PAIRS }],
    ] as const)
      errors += (await runMasked([[...command]], { TOKEN_REGISTRY_ADDRESS, ...changes })).stderr;
    // The handshake of the WebSocket is answered 401.
    expect(errors.split(`code: 'RPC_UNREACHABLE'`)).to.have.length(urls.length);
    expect(errors.split(`code: 'RPC_KEY_REFUSED'`)).to.have.length(2);
    expect(echo.asked['web-socket']).to.be.at.least(1);
    expect(errors)
      .to.match(/NET "\[secret\]" is not/)
      .and.to.match(/broken\.json is not JSON: line 1, column \d+/)
      .and.to.match(/DID_KEY_PAIRS is not valid JSON/);
    const unreadable = { ENV_FILE: file('folder.env') };
    const { stderr } = await run(askTdoc, ['deliveries', '--stack-traces'], unreadable);
    expect(stderr).to.match(/ENV_FILE .*folder\.env cannot be read/);
  });

  it('reveal no secret when an error is not caught', async () => {
    writeFileSync(file('throw.cjs'), THROW);
    // The node does not answer, so that the command still runs when the error is thrown.
    proxy.answer(() => new Promise(() => undefined));
    const changes = { NODE_OPTIONS: `--require=${file('throw.cjs')}`, TOKEN_REGISTRY_ADDRESS };
    const { code, stderr } = await run(askTdoc, ['token', '1'], changes);
    expect(stderr).to.contain('stumbled over [secret]');
    expect(code).to.equal(2);
  });
});
