import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { startChild, type Child } from '../../devnet/child-process';
import type { DevnetFacts } from '../../devnet/place';
import { nodeClient } from '../../devnet/hardhat-node';
import { PROJECT_ROOT } from '../../service/base/project-root';
import type { Overview } from '../../service/console/views';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { ask, type CommandAnswer } from '../helpers/processes/command-answer';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { API, openConsolePage } from '../helpers/processes/console-page';
import { create } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { serve } from '../helpers/http-server';
import { startRawReceiver } from '../helpers/receiver/raw-receiver';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';

const DEVNET = join(PROJECT_ROOT, 'dist/devnet/main.js');

describe('npm run devnet', () => {
  // Both wait ten seconds for the wallet to be read again, while the other tests run.
  let withFaults: Promise<CommandAnswer>;
  let onlyFaults: ReturnType<typeof startReady>;

  before(async () => {
    await Promise.allSettled([8545, 3000, 4000].map((port) => serve(() => undefined, port)));
    withFaults = ask(DEVNET, ['--once', '--faults'], {}, { cwd: temporaryFolder().path });
    onlyFaults = startReady(['--faults', '--no-walk', '--json'], temporaryFolder().path);
    onlyFaults.catch(() => undefined);
  });

  it('stops after the start if it is interrupted meanwhile', async () => {
    const { path } = temporaryFolder();
    const child = startChild('devnet', DEVNET, [], {}, undefined, path);
    const lines: string[] = [];
    child.onLine((line) => lines.push(line));
    await child.lineMatching(/reference receiver at/);
    // The start is finished first, which takes long while other tests run.
    await child.stop(50_000);
    expect(await child.ended).to.equal(0);
    expect(lines.join('\n'))
      .to.match(/stopping/)
      .and.not.match(/Bill of Lading|Try next/);
    expect(existsSync(join(path, '.devnet/current.json'))).to.equal(false);
  });

  it('-- --json names all that a test needs, in JSON lines; --keep goes on after a kill', async () => {
    const folder = temporaryFolder();
    const operate = (...words: string[]): Promise<CommandAnswer> =>
      askTdocInProcess(['operate', ...words], {}, { cwd: folder.path });
    const first = await startReady(['--json', '--no-walk', '--keep'], folder.path);
    const { nodeUrl, serviceUrl, registryAddress, accounts } = first.ready;
    const owner = accounts[1] ?? '';
    expect(first.lines.at(-1), 'the last line').to.equal(JSON.stringify(first.ready));
    const names =
      'type seconds serviceUrl nodeUrl registryAddress chainId receiverUrl adminApiKey accounts folder ' +
      'publicKeyFile didDocumentFile envFile consoleLink';
    expect(first.ready).to.have.all.keys(names.split(' ')).and.to.include({ chainId: 31337 });
    const { body } = await create(serviceUrl, { ...minimal, owner, holder: owner });
    const { tokenId } = body.signedW3CDocument.credentialStatus;
    const done = await operate('transferHolder', '--token', tokenId, '--to', '2', '--json');
    expect(done.code, done.stderr).to.equal(0);
    expect(JSON.parse(done.stdout)).to.include({ operation: 'transferHolder', tokenId, as: owner });
    const refused = await operate('transferHolder', '--token', tokenId, '--to', '3', '--as', '1', '--json');
    expect(refused.code).to.equal(1);
    const why = { code: 'OPERATION_REFUSED', reason: 'CallerNotHolder' };
    expect(JSON.parse(refused.stdout)).to.include({ outcome: 'refused', ...why });
    const other = join(folder.path, 'other.json');
    writeFileSync(other, JSON.stringify(body.signedW3CDocument).replaceAll(registryAddress, owner));
    expect((await operate('burn', '--token', other)).stderr).to.contain(`is in registry ${owner}`);
    const settings = { ENV_FILE: join(folder.path, 'none.env') };
    const elsewhere = await askTdocInProcess(['operate', 'pause'], settings, { cwd: folder.path });
    expect(elsewhere.stderr).to.contain('DEVNET_UNKNOWN');
    expect((await operate('pause', '--remark', 'stock-taking')).stdout).to.match(/^pause mined in block \d+/);
    await operate('unpause');
    const webhooks = () => first.lines.filter((line) => line.startsWith('{"type":"webhook"'));
    await eventually('eight webhooks', () => webhooks().length === 8);
    const received = readFileSync(join(first.ready.folder, 'received-events.jsonl'), 'utf8');
    expect(received.trim().split('\n')).to.have.length(8);
    const head = await blockOf(nodeUrl);
    await eventually('its blocks are written', () =>
      readFileSync(join(first.ready.folder, 'chain.jsonl'), 'utf8').includes(head.hash),
    );
    const keys = await (await fetch(`${serviceUrl}/.well-known/did.json`)).text();
    first.child.kill();
    await first.child.ended;
    for (const url of [serviceUrl, nodeUrl]) await gone(url);

    const receiver = await startRawReceiver();
    const { child, ready, lines } = await startReady(
      ['--json', '--keep', '--block-time', '0.1', '--receiver', receiver.url],
      folder.path,
    );
    expect(ready).to.include({ nodeUrl, serviceUrl, receiverUrl: receiver.url });
    expect(await blockOf(nodeUrl, head.number)).to.deep.equal(head);
    expect(await (await fetch(`${serviceUrl}/.well-known/did.json`)).text()).to.equal(keys);
    // A chain that goes on gets no document.
    expect(lines.join()).not.to.contain('Bill of Lading signed');
    const { code, stderr } = await operate('transferHolder', '--token', tokenId, '--to', '4');
    expect(code, stderr).to.equal(0);
    await eventually('the webhook', () => receiver.deliveries.length === 1);
    const current = readFileSync(join(folder.path, '.devnet/current.json'), 'utf8');
    const { pid } = JSON.parse(current) as { pid: number };
    // As a terminal does, which signals the whole group.
    process.kill(-pid, 'SIGINT');
    expect(await child.ended).to.equal(0);
    const log = readFileSync(join(ready.folder, 'service.log'), 'utf8');
    expect(log, 'the service ends before the node').not.to.match(
      /ECONNREFUSED|RPC_UNREACHABLE|"level":"(error|fatal)"/,
    );
    await gone(serviceUrl);
    expect((await operate('pause')).stderr).to.contain('DEVNET_UNKNOWN');
    for (const line of [...first.lines, ...lines]) JSON.parse(line);
  }).timeout(120_000);

  for (const [what, args, problem] of [
    ['an unknown flag', ['--prot', '4000'], /unknown option '--prot'[^]*Did you mean --port/],
    [
      'a port that is no number',
      ['--port', 'x'],
      /option '--port <n>' argument 'x' is invalid. Give a number/,
    ],
    ['an unknown network', ['--network', 'amoi'], /no network "amoi".*\[NETWORK_UNKNOWN\]/],
    ['an argument too many', ['--once', 'amoy'], /too many arguments/],
  ] as const) {
    it(`exits with 2 and explains ${what}`, async () => {
      const { code, stdout, stderr } = await ask(DEVNET, [...args], {}, { cwd: PROJECT_ROOT });
      expect(code, stderr).to.equal(2);
      expect(stdout).not.to.contain('stopping');
      expect(stderr).to.match(problem);
    });
  }

  it('-- --port N exits with 1 and names the port if it is taken', async () => {
    const { port } = await serve(() => undefined);
    const { code, stderr } = await ask(DEVNET, ['--once', '--port', String(port)], {});
    expect(code).to.equal(1);
    expect(stderr).to.contain(`Port ${port} of the service is taken.`);
  });

  it('-- --once --faults uses free ports, verifies each webhook and tells of three faults', async () => {
    const { code, stdout } = await withFaults;
    for (const [port, name] of [
      [8545, 'node'],
      [3000, 'service'],
      [4000, 'receiver'],
    ] as const)
      expect(stdout).to.match(new RegExp(`port ${port} is taken: the ${name} uses \\d+`));
    expect(stdout).to.match(/Bill of Lading signed and minted: token [0-9a-f]{64}/);
    const [walk = '', faults = ''] = stdout.split('all 9 webhooks verified, in order');
    expect(walk.match(/webhook verified: /g)).to.have.length(9);
    for (const type of ['subscription_gone', 'dead_letter', 'wallet_low'])
      expect(faults).to.match(new RegExp(`webhook verified: operations.${type} `));
    expect(code).to.equal(0);
  });

  it('-- --faults goes on, and its console shows the faults', async () => {
    const { ready, lines } = await onlyFaults;
    expect(lines.join()).not.to.contain('Bill of Lading signed');
    const page = openConsolePage(ready.serviceUrl);
    await page.logIn(ready.adminApiKey);
    // The overview may be a second old.
    await eventually('the console shows them', async () => {
      const { problems } = (await page.call<Overview>('GET', `${API}/overview`)).body;
      const shown = problems.map(({ message }) => message).join(' ');
      return ['is gone', 'dead letters', 'cannot pay'].every((part) => shown.includes(part));
    });
  });
});

/** The last line before devnet waits. */
type Ready = DevnetFacts & { type: 'ready'; consoleLink: string };

/** Starts devnet in a folder and waits until it is ready. `lines` gets each line of its output. */
async function startReady(
  args: string[],
  cwd: string,
): Promise<{ child: Child; ready: Ready; lines: string[] }> {
  const child = startChild('devnet', DEVNET, args, {}, undefined, cwd);
  stopLater('devnet', () => child.stop());
  const lines: string[] = [];
  child.onLine((line) => lines.push(line));
  const { input } = await child.lineMatching(/^{"type":"ready".*}$/);
  return { child, ready: JSON.parse(input) as Ready, lines };
}

async function blockOf(
  nodeUrl: string,
  wanted: number | 'latest' = 'latest',
): Promise<{ number: number; hash: string }> {
  const client = nodeClient(nodeUrl);
  const block = await client.getBlock(wanted);
  client.destroy();
  return { number: block?.number ?? -1, hash: block?.hash ?? '' };
}

async function gone(url: string): Promise<void> {
  await eventually(`nothing answers at ${url}`, () =>
    fetch(url).then(
      () => false,
      () => true,
    ),
  );
}
