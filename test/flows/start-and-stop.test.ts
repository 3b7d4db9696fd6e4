import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../../devnet/free-port';
import { readSettings } from '../../service/config/config';
import { untilAborted } from '../../service/base/until-aborted';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { EVENTS_OF_A_MINT } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { installRegistry } from '../helpers/chain/installed-registry';
import { startNode } from '../helpers/chain/node';
import { startRecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startRpcProxy, type Fault } from '../helpers/chain/rpc-proxy';
import { startService, type LogLine } from '../helpers/processes/running-service';
import { failToStart, launchServiceProcess, startServiceProcess } from '../helpers/processes/service-process';
import { createLocalSetup, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';

describe('the service at start and stop', () => {
  let local: LocalSetup;

  before(async () => {
    local = await createLocalSetup();
  });

  after(() => local?.stop());

  it('does not start on a node of another network than NET, and names both', async () => {
    const { code, output } = await failToStart({ ...local.settings, NET: 'amoy' });
    expect(code).to.equal(1);
    expect(output).to.match(
      /NET is amoy \(chain id 80002\), but the node .* is of localhost \(chain id 31337\)/,
    );
    expect(output).to.match(/Set NET=31337, or point RPC_URL at a node of amoy/);
    expect(output).not.to.match(/^ {4}at /m);
  });

  it('does not start with a broken setting, and names it without its value', async () => {
    const { code, output } = await failToStart({ ...local.settings, DID_KEY_PAIRS: '{"id": "did:web:x' });
    expect(code).to.equal(1);
    expect(output).to.match(/^The service cannot start\.\nDID_KEY_PAIRS is not valid JSON/m);
    expect(output).not.to.contain('did:web:x');
  });

  it('does not start with a damaged key pair, and names the command that replaces it', async () => {
    const { settings } = readSettings(local.settings);
    const DID_KEY_PAIRS = settings.DID_KEY_PAIRS?.replace(/(z42\w+)\w{6}"/, '$1"') ?? '';
    const { code, output } = await failToStart({ ...local.settings, DID_KEY_PAIRS });
    expect(code).to.equal(1);
    expect(output)
      .to.match(/^DID_KEY_PAIRS is damaged: .*npx tdoc did --force/m)
      .and.not.match(/z42\w/);
  });

  it('does not start when DATA_DIR is not a folder, and says so', async () => {
    const { code, output } = await failToStart({ ...local.settings, DATA_DIR: local.publicKeyFile });
    expect(code).to.equal(1);
    expect(output).to.match(/^DATA_DIR .* cannot be used: .*Set DATA_DIR to a folder/m);
    expect(output).not.to.match(/^ {4}at /m);
  });

  it('does not start without its database, and does not print the password', async () => {
    const DATABASE_URL = `postgres://carrier:secret-of-the-database@127.0.0.1:${await freePort(0)}/state`;
    const { code, output } = await failToStart({ ...local.settings, DATABASE_URL });
    expect(code).to.equal(1);
    expect(output).to.match(
      /^The database at postgres:\/\/127\.0\.0\.1:\d+\/… cannot be used: .*ECONNREFUSED/m,
    );
    expect(output)
      .to.match(/correct DATABASE_URL/)
      .and.not.contain('secret-of-the-database');
    expect(output).not.to.match(/^ {4}at /m);
  });

  it('stays up when TOKEN_REGISTRY_ADDRESS is not a registry, and says so', async () => {
    const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, local.client);
    const TOKEN_REGISTRY_ADDRESS = await registry.titleEscrowFactory();
    const DATA_DIR = join(local.folder, 'no-registry');
    const service = await startServiceProcess({ ...local.settings, TOKEN_REGISTRY_ADDRESS, DATA_DIR });
    await eventually('it is said', () => service.output().includes('REGISTRY_INVALID'));
    const owner = await local.account(1);
    expect((await create(service.url, { ...minimal, owner, holder: owner })).status).to.equal(500);
    expect(service.output()).to.match(
      /Failed to mint token.*check that TOKEN_REGISTRY_ADDRESS is a v5 token registry/,
    );
    expect(await service.end('SIGTERM')).to.equal(0);
  });

  it('starts without a node, and issues once there is one', async () => {
    const port = await freePort(0);
    const settings = { ...local.settings, RPC_URL: `http://127.0.0.1:${port}` };
    const service = await startServiceProcess(settings);
    expect(service.output()).to.contain(`The node at http://127.0.0.1:${port} does not answer`);
    const owner = await local.account(1);
    expect((await create(service.url, { ...minimal, owner, holder: owner })).status).to.equal(500);

    const node = await startNode(port);
    // The same wallet deploys to the same addresses on a fresh chain.
    expect(await installRegistry(node.url)).to.equal(local.registryAddress);
    expect((await create(service.url, { ...minimal, owner, holder: owner })).status).to.equal(200);
    await eventually('the events are read', () => service.output().includes('events recorded'));
    expect(await service.end('SIGTERM')).to.equal(0);
    await node.stop();
  });

  it('says after three seconds that it waits for the node, and starts when it answers', async () => {
    const silent = new AbortController();
    const node = await startRpcProxy(local.node.url, async (): Promise<Fault> => {
      await untilAborted(silent.signal, new Promise<never>(() => undefined)).catch(() => undefined);
      return 'none';
    });
    const begun = performance.now();
    const service = launchServiceProcess({ ...local.settings, RPC_URL: node.url });
    try {
      await eventually('it is said', () => service.output().includes('waiting for the node'));
      expect(performance.now() - begun).to.be.at.least(3_000);
      expect(service.output()).to.contain(`still starting: waiting for the node at ${node.url} to report`);
      expect(service.output()).not.to.contain('"msg":"listening"');
      silent.abort();
      await service.listening();
    } finally {
      expect(await service.end('SIGTERM')).to.equal(0);
      await node.close();
    }
  });

  it('prints how to set it up with --help, even with broken settings, and does not start', async () => {
    const broken = { ENV_FILE: local.folder };
    const [long, short] = await Promise.all([failToStart(broken, ['--help']), failToStart(broken, ['-h'])]);
    expect(long.code).to.equal(0);
    for (const name of [
      'DOMAIN',
      'WALLET_PRIVATE_KEY',
      'TOKEN_REGISTRY_ADDRESS',
      'ENV_FILE',
      'docs/settings.md',
    ])
      expect(long.output).to.contain(name);
    expect(short).to.deep.equal(long);
  });

  it('refuses unknown arguments', async () => {
    const { code, output } = await failToStart(local.settings, ['--port', '4000']);
    expect(code).to.equal(1);
    expect(output).to.match(/^The service cannot start\.\nUnknown argument --port: .*--help/);
  });

  describe('without API_KEY', () => {
    const linesAbout = async (changes: Record<string, string>): Promise<LogLine[]> => {
      const service = await startService({ ...local.settings, ...changes });
      await service.stop();
      return service.log.filter(({ msg = '' }) => msg.includes('API_KEY'));
    };

    it('warns in one line that anybody on this machine can issue, even web pages', async () => {
      const [line, ...others] = await linesAbout({});
      expect(others).to.deep.equal([]);
      expect(line).to.include({ level: 'warn' });
      expect(line?.msg).to.match(
        /API_KEY is not set: anybody who reaches http:\/\/127\.0\.0\.1:\d+ can issue/,
      );
      expect(line?.msg).to.contain('any web page in a browser on this machine');
    });

    it('logs an error instead when other machines reach it', async () => {
      const [line, ...others] = await linesAbout({ HOST: '0.0.0.0' });
      expect(others).to.deep.equal([]);
      expect(line).to.include({ level: 'error' });
      expect(line?.msg).to.match(/API_KEY is not set, and HOST is 0\.0\.0\.0: .*Set API_KEY, or HOST=127/);
    });

    it('logs nothing about it when no documents are issued, nor with a key', async () => {
      expect(await linesAbout({ API_KEY: 'key-of-this-test' })).to.deep.equal([]);
      expect(await linesAbout({ WALLET_PRIVATE_KEY: '' })).to.deep.equal([]);
    });
  });

  it('does not start with a port or a DATA_DIR that is in use, and says which', async () => {
    const service = await startServiceProcess(local.settings);
    try {
      const data = await failToStart(local.settings);
      expect(data.code).to.equal(1);
      expect(data.output).to.match(/is in use by another running service.*DATA_DIR/);
      const other = {
        ...local.settings,
        DATA_DIR: join(local.folder, 'other'),
        PORT: new URL(service.url).port,
      };
      const port = await failToStart(other);
      expect(port.code).to.equal(1);
      expect(port.output).to.match(/Port \d+ of 127\.0\.0\.1 is taken.*set PORT/);
    } finally {
      expect(await service.end('SIGTERM')).to.equal(0);
    }
  });

  it('answers and delivers while connected callers exceed its file descriptors', async () => {
    const receiver = await startRecordingReceiver(local.publicKeyFile);
    const [WEBHOOK_URL, DATA_DIR] = [receiver.url, join(local.folder, 'few-descriptors')];
    const START_BLOCK = String((await local.client.getBlockNumber()) + 1);
    const settings = { ...local.settings, WEBHOOK_URL, DATA_DIR, START_BLOCK };
    const service = await startServiceProcess(settings, { openFiles: 200 });
    const idle = Array.from({ length: 250 }, () => connect(Number(new URL(service.url).port), '127.0.0.1'));
    for (const socket of idle) socket.on('error', () => undefined);
    try {
      await Promise.all(idle.map((socket) => once(socket, 'connect')));
      const owner = await local.account(1);
      expect((await create(service.url, { ...minimal, owner, holder: owner })).status).to.equal(200);
      await eventually('its events', () => receiver.deliveries.length >= EVENTS_OF_A_MINT);
    } finally {
      for (const socket of idle) socket.destroy();
      expect(await service.end('SIGTERM')).to.equal(0);
      await receiver.close();
    }
  });

  it('exits with 0 on SIGTERM after it has answered running requests', async () => {
    const service = await startServiceProcess(local.settings);
    const owner = await local.account(1);
    const answer = create(service.url, { ...minimal, owner, holder: owner });
    await fetch(service.url);
    const code = service.end('SIGTERM');
    expect((await answer).status).to.equal(200);
    expect(await code).to.equal(0);
  });

  it('never prints a secret', async () => {
    const { settings } = readSettings(local.settings);
    const secretUrl = `${local.node.url}/v3/abcdefabcdefabcdefabcdef`;
    const service = await startServiceProcess({
      ...local.settings,
      RPC_URL: secretUrl,
      NODE_ENV: 'development',
    });
    await create(service.url, { ...minimal, owner: 'x', holder: 'y' });
    await service.end('SIGTERM');
    for (const secret of [
      DEPLOYER_KEY.slice(2),
      'abcdefabcdefabcdefabcdef',
      /z42\w+/.exec(settings.DID_KEY_PAIRS ?? '')?.[0] ?? 'no key',
      settings.SIGNING_PRIVATE_KEY ?? 'no key',
    ]) {
      expect(service.output()).not.to.contain(secret);
    }
  });

  it('stays up when the chain does not have its registry yet, and says so', async () => {
    const anew = await startNode();
    try {
      const service = await startServiceProcess({ ...local.settings, RPC_URL: anew.url });
      // The service logs that the registry is missing, and still answers HTTP.
      expect((await fetch(service.url)).status).to.equal(200);
      await eventually('it is said', () => /REGISTRY_MISSING.*npx hardhat deploy/.test(service.output()));
      expect(await service.end('SIGTERM')).to.equal(0);
    } finally {
      await anew.stop();
    }
  });
});
