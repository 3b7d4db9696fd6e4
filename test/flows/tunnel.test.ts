import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import * as ngrok from '@ngrok/ngrok';
import { expect } from 'chai';
import type { ReplacedParts } from '../../service/composition/app';
import type { TunnelLibrary } from '../../service/http/tunnel';
import { eventually } from '../helpers/eventually';
import { startService, type LogLine, type RunningService } from '../helpers/processes/running-service';
import { startServiceProcess } from '../helpers/processes/service-process';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';
import { VirtualTime } from '../helpers/virtual-time';

type TunnelParts = Pick<ReplacedParts, 'load'> & { time?: VirtualTime };

/** Has the form of ngrok's tokens, and belongs to nobody. */
const TOKEN = '2abcDEFghiJKLmnoPQRstuVWXyz_3AbCdEfGhIjKlMnOpQrStU';

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
  const start = (changed: Record<string, string>, tunnel: TunnelParts): Promise<RunningService> =>
    startService({ ...settings, ...changed }, tunnel);
  const logged = ({ log }: RunningService, part: string): LogLine[] =>
    log.filter(({ msg = '' }) => msg.includes(part));

  for (const HOST of ['127.0.0.1', '0.0.0.0', '::1', '::'])
    it(`leads to a service that listens on ${HOST}, on any port, until the service stops`, async () => {
      const standIn = tunnelStandIn();
      await using service = await start({ HOST }, { load: standIn.load });
      await eventually('the tunnel is open', () => logged(service, 'tunnel open')[0]);
      const { addr, ...others } = standIn.asked();
      expect(addr).not.to.contain('0.0.0.0').and.not.to.contain('[::]');
      const answer = await fetch(addr, { headers: { connection: 'close' } });
      expect(await answer.text()).to.equal('Transferable Document Creator Service\n');
      expect(others).to.include({ authtoken: TOKEN, domain: 'trade.example.com' });
      for (const status of ['connected', 'closed', 'closed', 'connected', 'connected', 'closed'])
        standIn.tell(status);
      const told = service.log.flatMap(
        ({ msg = '' }) => /^tunnel (disconnected|reconnected)/.exec(msg)?.[1] ?? [],
      );
      expect(told, 'each change is logged once').to.deep.equal([
        'disconnected',
        'reconnected',
        'disconnected',
      ]);
      await service.stop();
      expect(standIn.openEnds()).to.equal(0);
    });

  it('does not delay start and stop while it opens, and is closed if it opens after the stop', async () => {
    let allow = (): void => undefined;
    const standIn = tunnelStandIn(new Promise<void>((resolve) => (allow = resolve)));
    await using service = await start({}, { load: standIn.load });
    await eventually('it was asked for', () => standIn.asked());
    await service.stop();
    expect(logged(service, 'public address')).to.have.length(0);
    allow();
    await eventually('it opened, and is closed', () => standIn.opened() && standIn.openEnds() === 0);
  });

  const connections: Socket[] = [];
  const silent = createServer((socket) => void connections.push(socket.on('error', () => undefined)));
  before(async () => {
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    stopLater('the silent server', () => silent.close());
  });

  const missing = '@ngrok/not-installed';
  const never = () => Promise.reject(new Error('it is loaded'));
  const failures: [what: string, tunnel: TunnelParts, error: object, said: RegExp, changed?: object][] = [
    [
      'ngrok accepts the connection but does not answer',
      {
        // Nothing else happens meanwhile.
        time: new VirtualTime(),
        load: async () => ({
          forward: (options) => {
            const server_addr = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
            return ngrok.forward({ ...options, server_addr });
          },
        }),
      },
      { code: 'TUNNEL_UNREACHABLE', retryable: true },
      /no answer within 30 s/,
    ],
    [
      // The package's own error for an invalid token, which has several lines.
      'ngrok refuses the token, which is masked',
      {
        load: async () => ({
          forward: () =>
            Promise.reject(
              new Error(
                'failed to connect session: authentication failed: ' +
                  'The authtoken you specified is properly formed, but it is invalid.\n' +
                  `Your authtoken: ${TOKEN}\r\n\r\nERR_NGROK_107\r\n, error_code: ERR_NGROK_107`,
              ),
            ),
        }),
      },
      { code: 'TUNNEL_REFUSED', retryable: false },
      /Your authtoken: \[secret\] ERR_NGROK_107.*TUNNEL_AUTHTOKEN.*docs\/errors\/err_ngrok_107/,
    ],
    [
      'its library is missing',
      { load: () => import(missing) as Promise<TunnelLibrary> },
      { code: 'TUNNEL_LIBRARY_MISSING' },
      /npm ci/,
    ],
    [
      'DOMAIN is not set',
      { load: never },
      { code: 'TUNNEL_DOMAIN_UNUSABLE' },
      /DOMAIN is not set/,
      { DOMAIN: '' },
    ],
    [
      'DOMAIN has a port',
      { load: never },
      { code: 'TUNNEL_DOMAIN_UNUSABLE' },
      /DOMAIN localhost:3000 has a port/,
      { DOMAIN: 'localhost:3000' },
    ],
  ];
  for (const [what, tunnel, error, said, changed] of failures)
    it(`is not opened when ${what}: the service goes on, and says why`, async () => {
      await using service = await start({ ...changed }, tunnel);
      const warning = () => logged(service, 'without a public address')[0];
      const { time } = tunnel;
      const line = await (time ? time.until('the warning', warning) : eventually('the warning', warning));
      expect(line.level).to.equal('warn');
      expect(line.error).to.include(error);
      const { message, remedy } = line.error as { message: string; remedy?: string };
      expect(`${message} ${remedy}`).to.match(said);
      expect(JSON.stringify(service.log)).not.to.contain(TOKEN);
      expect((await fetch(service.url)).status).to.equal(200);
      // The library makes one connection at a time: the next test would wait for these.
      for (const socket of connections.splice(0)) socket.destroy();
    });

  it('fails in a process of its own, which goes on, prints no token, and ends', async () => {
    // Without the cache of compiled code, in which a program cannot import the library.
    await using child = await startServiceProcess({ ...settings, NODE_OPTIONS: '' });
    const lines = (): string[] => child.output().trimEnd().split('\n');
    const said = () => lines().find((line) => line.includes('without a public address'));
    // The code depends on whether this machine reaches ngrok.
    expect(await eventually('the warning', said)).to.match(/"code":"TUNNEL_(REFUSED|UNREACHABLE)"/);
    expect((await fetch(child.url)).status).to.equal(200);
    expect(await child.end('SIGTERM')).to.equal(0);
    expect(child.output()).not.to.contain(TOKEN);
    for (const line of lines()) expect(() => void JSON.parse(line), line).not.to.throw();
  });

  it('does not load its library without TUNNEL_AUTHTOKEN', async () => {
    await using service = await start({ TUNNEL_AUTHTOKEN: '' }, { load: never });
    await fetch(service.url);
    expect(logged(service, 'tunnel')).to.deep.equal([]);
  });
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
