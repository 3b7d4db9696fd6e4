import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import * as ngrok from '@ngrok/ngrok';
import { expect } from 'chai';
import type { TunnelLibrary } from '../../service/http/tunnel';
import { eventually } from '../helpers/eventually';
import { startService, type LogLine, type RunningService } from '../helpers/processes/running-service';
import { startServiceProcess } from '../helpers/processes/service-process';
import { temporaryFolder } from '../helpers/temporary-folder';

/** Has the form of ngrok's tokens, and belongs to nobody. */
const TOKEN = '2abcDEFghiJKLmnoPQRstuVWXyz_3AbCdEfGhIjKlMnOpQrStU';

// A compile error here means that the package no longer has the type that the service expects.
const real: TunnelLibrary = ngrok;

describe('the tunnel (TUNNEL_AUTHTOKEN)', () => {
  const folder = temporaryFolder();
  const settings = {
    ENV_FILE: join(folder.path, 'none.env'),
    SERVICE_CONFIG: join(folder.path, 'none.json'),
    DATA_DIR: join(folder.path, 'data'),
    NET: '31337',
    // Nobody listens there: a tunnel needs no chain.
    RPC_URL: 'http://127.0.0.1:9',
    DOMAIN: 'trade.example.com',
    TUNNEL_AUTHTOKEN: TOKEN,
  };
  let service: RunningService | undefined;

  afterEach(async () => {
    await service?.stop();
    service = undefined;
  });

  const logged = (part: string): LogLine[] => service?.log.filter(({ msg = '' }) => msg.includes(part)) ?? [];

  /** Waits for the warning that no tunnel was opened, and expects the service to answer nevertheless. */
  async function warning(): Promise<Record<string, unknown>> {
    const line = await eventually('the warning', () => logged('without a public address')[0]);
    expect(line.level).to.equal('warn');
    expect((await fetch(service?.url ?? '')).status).to.equal(200);
    return line.error as Record<string, unknown>;
  }

  for (const HOST of ['127.0.0.1', '0.0.0.0', '::1', '::']) {
    it(`leads to a service that listens on ${HOST}, on any port, until the service stops`, async () => {
      const standIn = tunnelStandIn();
      service = await startService({ ...settings, HOST }, { load: standIn.load });
      await eventually('the tunnel is open', () => logged('tunnel open')[0]);
      const { addr, ...others } = standIn.asked();
      expect(addr).not.to.contain('0.0.0.0').and.not.to.contain('[::]');
      const answer = await fetch(addr, { headers: { connection: 'close' } });
      expect(await answer.text()).to.equal('Transferable Document Creator Service\n');
      expect(others).to.include({ authtoken: TOKEN, domain: 'trade.example.com' });
      await service.stop();
      service = undefined;
      expect(standIn.openEnds()).to.equal(0);
    });
  }

  it('does not load its library without TUNNEL_AUTHTOKEN', async () => {
    let isLoaded = false;
    const load = async (): Promise<TunnelLibrary> => {
      isLoaded = true;
      return real;
    };
    service = await startService({ ...settings, TUNNEL_AUTHTOKEN: '' }, { load });
    await fetch(service.url);
    expect(isLoaded).to.equal(false);
  });

  it('logs once when its connection is lost, and once when it is back', async () => {
    const standIn = tunnelStandIn();
    service = await startService(settings, { load: standIn.load });
    await eventually('the tunnel is open', () => logged('tunnel open')[0]);
    for (const status of ['connected', 'closed', 'closed', 'connected', 'connected', 'closed'])
      standIn.tell(status);
    const told = service.log.flatMap(
      ({ msg = '' }) => /^tunnel (disconnected|reconnected)/.exec(msg)?.[1] ?? [],
    );
    expect(told).to.deep.equal(['disconnected', 'reconnected', 'disconnected']);
  });

  it('does not delay start and stop while it opens, and is closed if it opens after the stop', async () => {
    let allow = (): void => undefined;
    const standIn = tunnelStandIn(new Promise<void>((resolve) => (allow = resolve)));
    service = await startService(settings, { load: standIn.load });
    await eventually('it was asked for', () => standIn.asked());
    await service.stop();
    expect(logged('public address')).to.have.length(0);
    service = undefined;
    allow();
    await eventually('it opened, and is closed', () => standIn.opened() && standIn.openEnds() === 0);
  });

  it('is given up when ngrok accepts the connection but does not answer', async () => {
    const connections: Socket[] = [];
    const silent = createServer((socket) => void connections.push(socket.on('error', () => undefined)));
    silent.listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const server_addr = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const load = async (): Promise<TunnelLibrary> => ({
      forward: (options) => ngrok.forward({ ...options, server_addr }),
    });
    try {
      service = await startService(settings, { load, openWithinMs: 300 });
      const error = await warning();
      expect(error).to.include({ code: 'TUNNEL_UNREACHABLE', retryable: true });
      expect(error.message).to.contain('no answer within 0.3 s');
    } finally {
      await service?.stop();
      service = undefined;
      silent.close();
      // The library makes one connection at a time: the next test would wait for this one.
      for (const socket of connections) socket.destroy();
    }
  });

  it('fails with a wrong token or without ngrok; the service goes on, and prints no token', async () => {
    // Without the cache of compiled code, in which a program cannot import the library.
    const child = await startServiceProcess({ ...settings, NODE_OPTIONS: '' });
    const lines = (): string[] => child.output().trimEnd().split('\n');
    try {
      const said = () => lines().find((line) => line.includes('without a public address'));
      // The code depends on whether this machine reaches ngrok.
      expect(await eventually('the warning', said)).to.match(/"code":"TUNNEL_(REFUSED|UNREACHABLE)"/);
      expect((await fetch(child.url)).status).to.equal(200);
    } finally {
      expect(await child.end('SIGTERM')).to.equal(0);
    }
    expect(child.output()).not.to.contain(TOKEN);
    for (const line of lines()) expect(() => void JSON.parse(line), line).not.to.throw();
  });

  it('reports the error of ngrok with its code and a remedy, but masks the token in it', async () => {
    // The package's own error for an invalid token, which has several lines.
    const text =
      'failed to connect session: authentication failed: ' +
      'The authtoken you specified is properly formed, but it is invalid.\n' +
      `Your authtoken: ${TOKEN}\r\n\r\nERR_NGROK_107\r\n, error_code: ERR_NGROK_107`;
    service = await startService(settings, {
      load: async () => ({ forward: () => Promise.reject(new Error(text)) }),
    });
    const error = await warning();
    expect(error).to.include({ code: 'TUNNEL_REFUSED', retryable: false });
    expect(error.message).to.contain('Your authtoken: [secret] ERR_NGROK_107');
    expect(error.remedy)
      .to.contain('TUNNEL_AUTHTOKEN')
      .and.to.contain('https://ngrok.com/docs/errors/err_ngrok_107');
    expect(JSON.stringify(service.log)).not.to.contain(TOKEN);
  });

  it('names the command that installs its library when it is missing', async () => {
    const missing = '@ngrok/not-installed';
    service = await startService(settings, { load: () => import(missing) as Promise<TunnelLibrary> });
    const error = await warning();
    expect(error).to.include({ code: 'TUNNEL_LIBRARY_MISSING' });
    expect(error.remedy).to.contain('npm ci');
  });

  for (const [DOMAIN, problem] of [
    ['', 'DOMAIN is not set'],
    ['localhost:3000', 'DOMAIN localhost:3000 has a port'],
  ] as const) {
    it(`is not opened when ${problem}`, async () => {
      const standIn = tunnelStandIn();
      service = await startService({ ...settings, DOMAIN }, { load: standIn.load });
      const error = await warning();
      expect(error).to.include({ code: 'TUNNEL_DOMAIN_UNUSABLE' });
      expect(error.message).to.contain(problem);
      expect(() => standIn.asked()).to.throw();
    });
  }
});

/** A stand-in for ngrok, which opens after `until`. */
function tunnelStandIn(until: Promise<unknown> = Promise.resolve()) {
  let options: Parameters<TunnelLibrary['forward']>[0] | undefined;
  let [openEnds, hasOpened] = [0, false];
  const asked = (): Parameters<TunnelLibrary['forward']>[0] => {
    if (options === undefined) throw new Error('no tunnel was asked for');
    return options;
  };
  const forward: TunnelLibrary['forward'] = async (given) => {
    options = given;
    await until;
    [openEnds, hasOpened] = [openEnds + 1, true];
    return { url: () => 'https://trade.example.com', close: async () => void (openEnds -= 1) };
  };
  return {
    load: async (): Promise<TunnelLibrary> => ({ forward }),
    /** The options of the service. */
    asked,
    /** The number of open public ends. */
    openEnds: () => openEnds,
    opened: () => hasOpened,
    /** Reports a change of the connection to the service, as the library does. */
    tell: (status: string) => asked().onStatusChange(status),
  };
}
