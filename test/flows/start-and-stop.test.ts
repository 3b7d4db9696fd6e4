import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { readSettings } from '../../service/config/config';
import { messageOf, ServiceError } from '../../service/base/errors';
import { newDeferred } from '../../service/base/time';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { EVENTS_OF_A_MINT, mintTogether } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { installRegistry, startAnvil } from '../helpers/chain/node';
import { ADMIN_API_KEY, callApi } from '../helpers/processes/subscribed-service';
import { startRecordingReceiver, type RecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startRpcProxy, type Fault } from '../helpers/chain/rpc-proxy';
import { startService, type LogLine, type RunningService } from '../helpers/processes/running-service';
import {
  failToStart,
  launchServiceProcess,
  startServiceProcess,
  type ServiceProcess,
} from '../helpers/processes/service-process';
import { createLocalSetup, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';

describe('the service at start and stop', () => {
  let local: LocalSetup;

  before(async () => {
    local = await createLocalSetup();
  });

  /**
   * The message of a service that does not start. A process prints such an error with its code, without its
   * stack, and exits with 1: the test of secrets of a service that cannot start shows it.
   */
  async function refusal(settings: Record<string, string>): Promise<string> {
    const error: unknown = await startService(settings).then(
      (service) => service.stop(),
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(ServiceError);
    return messageOf(error);
  }

  it('does not start on a node of another network than NET, and names both', async () => {
    const output = await refusal({ ...local.settings, NET: 'amoy' });
    expect(output).to.match(
      /NET is amoy \(chain id 80002\), but the node .* is of localhost \(chain id 31337\)/,
    );
    expect(output).to.match(/Set NET=31337, or point RPC_URL at a node of amoy/);
  });

  it('does not start with a broken setting, and names it without its value', async () => {
    const { code, output } = await failToStart({ ...local.settings, DID_KEY_PAIRS: '{"id": "did:web:x#' });
    expect(code).to.equal(1);
    expect(output).to.match(/^The service cannot start\.\nDID_KEY_PAIRS is not valid JSON/m);
    expect(output).not.to.contain('did:web:x');
    expect(output).not.to.match(/^ {4}at /m);
  });

  it('does not start with a damaged key pair, and names the command that replaces it', async () => {
    const { settings } = readSettings(local.settings);
    const DID_KEY_PAIRS = settings.DID_KEY_PAIRS?.replace(/(z42\w+)\w{6}"/, '$1"') ?? '';
    expect(await refusal({ ...local.settings, DID_KEY_PAIRS }))
      .to.match(/^DID_KEY_PAIRS is damaged: .*npx tdoc did --rotate/m)
      .and.not.match(/z42\w/);
  });

  it('does not start without its database, and does not print the password', async () => {
    const DATABASE_URL = `postgres://carrier:secret-of-the-database@127.0.0.1:${await freePort(0)}/state`;
    expect(await refusal({ ...local.settings, DATABASE_URL }))
      .to.match(/^The database at postgres:\/\/127\.0\.0\.1:\d+\/… cannot be used: .*ECONNREFUSED/m)
      .and.match(/correct DATABASE_URL/)
      .and.not.contain('secret-of-the-database');
  });

  it('stays up when TOKEN_REGISTRY_ADDRESS is not a registry, and says so', async () => {
    const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, local.client);
    const TOKEN_REGISTRY_ADDRESS = await registry.titleEscrowFactory();
    const DATA_DIR = join(local.folder, 'no-registry');
    await using service = await startService({ ...local.settings, TOKEN_REGISTRY_ADDRESS, DATA_DIR });
    await logs(service, /REGISTRY_INVALID/);
    const owner = await local.account(1);
    expect((await create(service.url, { ...minimal, owner, holder: owner })).status).to.equal(500);
    await logs(service, /Failed to mint token.*check that TOKEN_REGISTRY_ADDRESS is a v5 token registry/);
  });

  it('starts without a node, stays up without a registry, says so, and issues once both exist', async () => {
    const port = await freePort(0);
    const service = await startService({ ...local.settings, RPC_URL: `http://127.0.0.1:${port}` });
    await logs(service, new RegExp(`The node at http://127\\.0\\.0\\.1:${port} does not answer`));
    const owner = await local.account(1);
    expect((await create(service.url, { ...minimal, owner, holder: owner })).status).to.equal(500);

    const node = await startAnvil(port);
    await logs(service, /REGISTRY_MISSING.*npx hardhat deploy/);
    expect((await fetch(service.url)).status).to.equal(200);
    // The same wallet deploys to the same addresses on a fresh chain.
    expect(await installRegistry(node.url)).to.equal(local.registryAddress);
    expect((await create(service.url, { ...minimal, owner, holder: owner })).status).to.equal(200);
    await logs(service, /events recorded/);
    await service.stop();
    await node.stop();
  });

  it('says that it waits for the node, and starts when it answers', async () => {
    const silent = newDeferred<Fault>();
    await using node = await startRpcProxy(local.node.url, () => silent.promise);
    const settings = { ...local.settings, RPC_URL: node.url, WALLET_PRIVATE_KEY: '' };
    await using service = launchServiceProcess(settings);
    await eventually('it is said', () => service.output().includes('waiting for the node'));
    expect(service.output()).to.contain(`still starting: waiting for the node at ${node.url} to report`);
    expect(service.output()).not.to.contain('"msg":"listening"');
    silent.resolve('none');
    await service.listening();
  });

  it('waits for a START_BLOCK above the head by name, and begins where it is told then', async () => {
    const settings = { ...local.settings, DATA_DIR: join(local.folder, 'ahead'), WALLET_PRIVATE_KEY: '' };
    const head = await local.client.getBlockNumber();
    let service = await startService({ ...settings, START_BLOCK: String(head + 5_000) });
    const feedOf = async () => (await healthOf(service.url)).feeds[0];
    const waiting = await eventually('it waits', async () => {
      const feed = await feedOf();
      return feed?.code === undefined ? undefined : feed;
    });
    expect(waiting).to.include({ state: 'starting', code: 'START_BLOCK_AHEAD' });
    expect(waiting.reason).to.match(new RegExp(`block ${head + 5_000}, .* is ${head}\\. .*START_BLOCK`));
    expect(await healthOf(service.url)).to.include({ httpStatus: 200, status: 'ok' });
    expect(service.log.filter(({ code }) => code === 'START_BLOCK_AHEAD')).to.have.length(1);
    expect(JSON.stringify(service.log)).not.to.contain('were read before');
    await service.stop();
    service = await startService({ ...settings, START_BLOCK: '0' });
    await eventually('all is read', async () => (await feedOf())?.nextBlock === head + 1);
    expect(await feedOf())
      .to.include({ state: 'following' })
      .and.not.have.property('code');
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

  it('says in one line that anybody can issue without API_KEY, and nothing if none can', async () => {
    const linesAbout = async (changes: Record<string, string>): Promise<LogLine[]> => {
      const service = await startService({ ...local.settings, ...changes });
      await service.stop();
      return service.log.filter(({ msg = '' }) => msg.includes('API_KEY'));
    };
    const [line, ...others] = await linesAbout({});
    expect(others).to.deep.equal([]);
    expect(line).to.include({ level: 'warn' });
    expect(line?.msg)
      .to.match(/API_KEY is not set: anybody who reaches http:\/\/127\.0\.0\.1:\d+ can issue/)
      .and.contain('any web page in a browser on this machine');
    const open = await linesAbout({ HOST: '0.0.0.0' });
    expect(open.map(({ level }) => level)).to.deep.equal(['error']);
    for (const closed of [{ API_KEY: 'key-of-this-test' }, { WALLET_PRIVATE_KEY: '' }])
      expect(await linesAbout(closed)).to.deep.equal([]);
  });

  describe('as a process with 200 file descriptors', () => {
    const nodeKey = 'abcdefabcdefabcdefabcdef';
    let settings: Record<string, string>;
    let receiver: RecordingReceiver;
    let service: ServiceProcess;
    let owner: string;

    before(async () => {
      owner = await local.account(1);
      receiver = await startRecordingReceiver(local.publicKeyFile);
      settings = {
        ...local.settings,
        RPC_URL: `${local.node.url}/v3/${nodeKey}`,
        WEBHOOK_URL: receiver.url,
        START_BLOCK: String((await local.client.getBlockNumber()) + 1),
        DATA_DIR: join(local.folder, 'few-descriptors'),
        ADMIN_API_KEY,
        NODE_ENV: 'development',
      };
      service = await startServiceProcess(settings, { openFiles: 200 });
    });

    it('refuses another service its port and its DATA_DIR, and the refusal says which', async () => {
      expect(await refusal(settings)).to.match(/is in use by another running service.*DATA_DIR/);
      const DATA_DIR = join(local.folder, 'other');
      const { port: PORT } = new URL(service.url);
      expect(await refusal({ ...settings, WALLET_PRIVATE_KEY: '', DATA_DIR, PORT })).to.match(
        /Port \d+ of 127\.0\.0\.1 is taken.*set PORT/,
      );
    });

    it('answers and delivers while connected callers exceed its file descriptors', async () => {
      const idle = Array.from({ length: 250 }, () => connect(Number(new URL(service.url).port), '127.0.0.1'));
      for (const socket of idle) socket.on('error', () => undefined);
      try {
        await Promise.all(idle.map((socket) => once(socket, 'connect')));
        expect((await create(service.url, { ...minimal, owner, holder: owner })).status).to.equal(200);
        await eventually('its events', () => receiver.deliveries.length >= EVENTS_OF_A_MINT);
      } finally {
        for (const socket of idle) socket.destroy();
      }
    });

    it('answers and delivers while sinks that do not answer exceed its file descriptors', async () => {
      const connected = new Set<Socket>();
      const sink = createServer((socket) => {
        connected.add(
          socket
            .resume()
            .on('error', () => undefined)
            .on('close', () => connected.delete(socket)),
        );
      }).listen(0, '127.0.0.1');
      await once(sink, 'listening');
      const { port } = sink.address() as AddressInfo;
      const subscription = {
        sink: `http://127.0.0.1:${port}/`,
        protocol: 'HTTP',
        config: { timeoutMs: 120_000, maxConcurrentDeliveries: 1_000 },
      };
      try {
        for (let count = 0; count < 60; count++)
          expect(await callApi(service.url, 'POST', '/subscriptions', subscription)).to.include({
            status: 201,
          });
        receiver.deliveries.length = 0;
        await mintTogether(local, owner, 8);
        await eventually('the events of others', () => receiver.deliveries.length === 8 * EVENTS_OF_A_MINT);
        await eventually('some wait for a connection', () =>
          /deliveries wait for a connection/.test(service.output()),
        );
        expect(connected.size).to.be.within(8, 60);
        expect((await healthOf(service.url)).httpStatus).to.equal(200);
        expect((await create(service.url, { ...minimal, owner, holder: owner })).status).to.equal(200);
        await eventually('its events', () => receiver.deliveries.length === 9 * EVENTS_OF_A_MINT);
        expect(service.output()).not.to.match(/EMFILE/);
      } finally {
        for (const socket of connected) socket.destroy();
        sink.close();
      }
    });

    it('exits with 0 on SIGTERM after it answered running requests, and never printed a secret', async () => {
      const { body } = await create(service.url, { ...minimal, owner: 'x', holder: 'y' });
      expect(body.error?.stack, 'in development').to.be.a('string');
      const answer = create(service.url, { ...minimal, owner, holder: owner });
      await fetch(service.url);
      const code = service.end('SIGTERM');
      expect((await answer).status).to.equal(200);
      expect(await code).to.equal(0);
      const made = readSettings(local.settings).settings;
      for (const secret of [
        DEPLOYER_KEY.slice(2),
        nodeKey,
        /z42\w+/.exec(made.DID_KEY_PAIRS ?? '')?.[0] ?? 'no key',
        made.SIGNING_PRIVATE_KEY ?? 'no key',
      ]) {
        expect(service.output()).not.to.contain(secret);
      }
    });
  });
});

/** Waits until a line of the service's log matches. */
const logs = ({ log }: RunningService, pattern: RegExp): Promise<unknown> =>
  eventually(`the log has ${pattern}`, () => log.some((line) => pattern.test(JSON.stringify(line))));
