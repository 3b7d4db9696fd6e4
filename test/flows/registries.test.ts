import { join } from 'node:path';
import { expect } from 'chai';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { startRpcProxy, THROUGH, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { ENGINES, newState, type State } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { startRecordingReceiver, type RecordingReceiver } from '../helpers/receiver/recording-receiver';

const KEY = 'the-key-of-the-admin';

/** Selector of `supportsInterface` (EIP-165). */
const SUPPORTS_INTERFACE = '0x01ffc9a7';

/** An answer of the API. */
interface Answer {
  status: number;
  code: string | null;
  headers: Headers;
  body: Record<string, unknown> & { error?: { message: string } };
}

/** An entry of GET /registries. */
interface Listed {
  address: string;
  origin: string;
  undelivered: number;
  feed: { state?: string; nextBlock?: number };
}

for (const engine of ENGINES) {
  describe(`registries that are added and removed while the service runs on ${engine}`, () => {
    let local: LocalSetup;
    let state: State | undefined;
    let proxy: RpcProxy;
    let receiver: RecordingReceiver;
    let settings: Record<string, string>;
    let service: RunningService;
    let added: string;
    let status = 204;

    before(async function () {
      state = await newState(engine);
      if (state === undefined) return this.skip();
      local = await createLocalSetup();
      proxy = await startRpcProxy(local.node.url);
      receiver = await startRecordingReceiver(
        local.publicKeyFile,
        (_delivery, response) => void response.writeHead(status).end(),
      );
      settings = {
        ...local.settings,
        ...state.settings,
        RPC_URL: proxy.url,
        WALLET_PRIVATE_KEY: '',
        WEBHOOK_URL: receiver.url,
        ADMIN_API_KEY: KEY,
      };
      added = (await local.makeRegistry()).toLowerCase();
      service = await startService(settings);
    });

    after(async () => {
      await service?.stop();
      await receiver?.close();
      await proxy?.close();
      await local?.stop();
      await state?.remove();
    });

    async function ask(method: string, path: string, body?: unknown, on = service): Promise<Answer> {
      const response = await fetch(`${on.url}${path}`, {
        method,
        headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const answer = (await response.json()) as Answer['body'];
      const { headers } = response;
      return { status: response.status, code: headers.get('X-Error-Code'), headers, body: answer };
    }

    const add = (body: object, on = service): Promise<Answer> => ask('POST', '/registries', body, on);
    const place = (): string => `/registries/31337/${added}`;
    const listed = async (on = service): Promise<Listed[]> =>
      (await ask('GET', '/registries', undefined, on)).body.registries as Listed[];
    const entry = async (on = service): Promise<Listed | undefined> =>
      (await listed(on)).find(({ address }) => address === added);
    const arrived = (): number =>
      new Set(
        receiver.deliveries
          .filter(({ event, verified }) => verified && event.data.registryAddress === added)
          .map(({ event }) => event.id),
      ).size;
    const mint = async (): Promise<unknown> =>
      mintDirectly(local, await local.account(1), { registryAddress: added });
    const delivered = (count: number): Promise<unknown> =>
      eventually(`${count} events of the added registry arrive`, () => arrived() === count);

    it('answers 401 to requests without the key', async () => {
      for (const [method, path] of [
        ['GET', '/registries'],
        ['POST', '/registries'],
        ['DELETE', place()],
      ] as const)
        expect((await fetch(`${service.url}${path}`, { method })).status).to.equal(401);
    });

    it('lists the registries of the settings', async () => {
      await eventually('it is read', async () => (await listed())[0]?.feed.state === 'following');
      const [one, ...others] = await listed();
      expect(others).to.deep.equal([]);
      expect(one).to.deep.include({
        network: 'localhost',
        chainId: 31337,
        address: local.registryAddress.toLowerCase(),
        origin: 'settings',
        confirmations: 0,
        undelivered: 0,
      });
    });

    it('refuses a body of the wrong shape with a JSON pointer and a remedy', async () => {
      const answer = await add({ network: 31337, address: added, rpcUrl: 'http://localhost' });
      expect([answer.status, answer.code]).to.deep.equal([400, 'REGISTRY_INVALID']);
      expect(answer.body.error?.message).to.match(
        /^\/rpcUrl is set in service.config.json only. Leave it out/,
      );
    });

    it('refuses bodies of more than 64 KB', async () => {
      const answer = await add({ network: 31337, address: 'x'.repeat(70_000) });
      expect([answer.status, answer.code]).to.deep.equal([413, 'BODY_TOO_LARGE']);
      expect(answer.body.error?.message).to.contain('64 KB');
    });

    it('refuses an account, a title escrow and a contract of another kind', async () => {
      const refusal = async (address: string) => {
        const { status: answered, code } = await add({ network: 'localhost', address });
        return [answered, code];
      };
      expect(await refusal(await local.account(1))).to.deep.equal([400, 'REGISTRY_MISSING']);
      const { escrow } = await mintDirectly(local, await local.account(1));
      expect(await refusal(escrow)).to.deep.equal([400, 'REGISTRY_INVALID']);
      expect(await listed()).to.have.length(1);
    });

    it("refuses a contract whose answers are no registry's, as each node reports it", async () => {
      const error = (message: string) => ({ error: { code: -32000, message } });
      for (const answer of [
        // A fallback function that returns nothing, and one that returns zero.
        { result: '0x' },
        { result: `0x${'0'.repeat(64)}` },
        error('execution reverted'),
        error('invalid opcode: opcode 0xfe not defined'),
        error('VM execution error.'),
        error('EVM error OpcodeNotFound'),
      ]) {
        proxy.answer((method) => (method === 'eth_call' ? answer : 'none'));
        const { status: answered, code } = await add({ network: 31337, address: added });
        proxy.answer(THROUGH);
        expect([answered, code], JSON.stringify(answer)).to.deep.equal([400, 'REGISTRY_INVALID']);
      }
    });

    it('refuses a registry of version 4', async () => {
      proxy.answer((method, [call]) =>
        method === 'eth_call' && (call as { data: string }).data.startsWith(SUPPORTS_INTERFACE)
          ? { result: `0x${'0'.repeat(64)}` }
          : 'none',
      );
      const answer = await add({ network: 31337, address: added });
      proxy.answer(THROUGH);
      expect([answer.status, answer.code]).to.deep.equal([400, 'REGISTRY_INVALID']);
    });

    it('refuses a start block that the chain does not have yet, and names the newest', async () => {
      const head = await local.client.getBlockNumber();
      const answer = await add({ network: 31337, address: added, startBlock: head + 1 });
      expect([answer.status, answer.code]).to.deep.equal([400, 'REGISTRY_INVALID']);
      expect(answer.body.error?.message).to.match(
        new RegExp(
          `^/startBlock is ${head + 1}, but the newest block of localhost is ${head}\\. Give a block`,
        ),
      );
    });

    it('refuses a network whose node needs a key that is not set', async () => {
      const answer = await add({ network: 'polygon', address: added });
      expect([answer.status, answer.code]).to.deep.equal([400, 'NETWORK_NOT_CONFIGURED']);
      expect(answer.body.error?.message).to.contain('PROVIDER_API_KEY');
    });

    it('refuses a node of another chain', async () => {
      proxy.answer((method) => (method === 'eth_chainId' ? { result: '0x1' } : 'none'));
      const answer = await add({ network: 31337, address: added });
      proxy.answer(THROUGH);
      expect([answer.status, answer.code]).to.deep.equal([400, 'CHAIN_ID_MISMATCH']);
    });

    it('answers 503 with Retry-After while the node is down or answers nonsense', async () => {
      await proxy.refuse();
      const down = await add({ network: 31337, address: added });
      await proxy.accept();
      proxy.answer((method) => (method === 'eth_call' ? { status: 502, body: 'bad gateway' } : 'none'));
      const broken = await add({ network: 31337, address: added });
      proxy.answer((method) =>
        method === 'eth_call' ? { error: { code: -32000, message: 'header not found' } } : 'none',
      );
      const behind = await add({ network: 31337, address: added });
      proxy.answer(THROUGH);
      for (const { status: answered, code, headers } of [down, broken, behind]) {
        expect([answered, code]).to.deep.equal([503, 'RPC_UNREACHABLE']);
        expect(headers.get('Retry-After')).to.equal('10');
      }
    });

    it('delivers the events of an added registry from its genesis on', async () => {
      await mint();
      const answer = await add({ network: 'localhost', address: added.toUpperCase().replace('0X', '0x') });
      expect(answer.status).to.equal(201);
      expect(answer.headers.get('Location')).to.equal(place());
      expect(answer.body).to.include({ address: added, origin: 'api', confirmations: 0 });
      await mint();
      await delivered(2 * EVENTS_OF_A_MINT);
      const { feeds } = await healthOf(service.url);
      expect(feeds.map(({ registry }) => registry)).to.include(added);
    });

    it('answers 200 to the same registry again, and 409 if it is to be followed otherwise', async () => {
      expect((await add({ network: 31337, address: added })).status).to.equal(200);
      expect((await add({ network: 31337, address: added, confirmations: 0 })).status).to.equal(200);
      const answer = await add({ network: 31337, address: added, confirmations: 3 });
      expect([answer.status, answer.code]).to.deep.equal([409, 'REGISTRY_FOLLOWED']);
      expect(answer.body.error?.message).to.contain('confirmations');
    });

    it('refuses to remove a registry of the settings, or one that is not followed', async () => {
      const own = await ask('DELETE', `/registries/31337/${local.registryAddress}`);
      expect([own.status, own.code]).to.deep.equal([409, 'REGISTRY_IN_SETTINGS']);
      for (const path of [`/registries/1/${added}`, '/registries/31337/0x12', '/registries/x/y']) {
        const answer = await ask('DELETE', path);
        expect([answer.status, answer.code]).to.deep.equal([404, 'REGISTRY_UNKNOWN']);
      }
    });

    it('follows an added registry after a restart', async () => {
      await service.stop();
      await mint();
      service = await startService(settings);
      await delivered(3 * EVENTS_OF_A_MINT);
    });

    it('removes a registry with waiting events only by force, and keeps its events', async () => {
      // The events that were delivered last may not be settled yet, and would count as those that wait.
      await eventually('all is settled', async () => (await entry())?.undelivered === 0);
      status = 503;
      await mint();
      const waits = async (): Promise<boolean> => (await entry())?.undelivered === EVENTS_OF_A_MINT;
      await eventually('its events wait', waits);
      const refused = await ask('DELETE', place());
      expect([refused.status, refused.code]).to.deep.equal([409, 'REGISTRY_HAS_UNDELIVERED']);
      expect(refused.body.error?.message).to.contain(`${EVENTS_OF_A_MINT} undelivered events`);
      const { status: answered, body } = await ask('DELETE', `${place()}?force=true`);
      expect([answered, body.undelivered]).to.deep.equal([200, EVENTS_OF_A_MINT]);
      expect(await entry()).to.equal(undefined);
      expect((await ask('DELETE', place())).code).to.equal('REGISTRY_UNKNOWN');
      status = 204;
      expect((await healthOf(service.url)).feeds).to.have.length(1);
      const metrics = await (await fetch(`${service.url}/metrics`)).text();
      expect(metrics).not.to.match(new RegExp(`^etr_(feed|deliveries|unfollowed).*${added}`, 'm'));
      expect(await (await fetch(`${service.url}/health`)).json()).not.to.have.property('unfollowed');
    });

    it('goes on where it stopped when a removed registry is added again', async () => {
      await mint();
      expect((await add({ network: 31337, address: added })).status).to.equal(201);
      await delivered(5 * EVENTS_OF_A_MINT);
      await eventually('nothing waits', async () => (await entry())?.undelivered === 0);
      const attempts = receiver.deliveries.filter(({ event }) => event.data.registryAddress === added);
      const accepted = new Map(attempts.map(({ event }) => [event.id, event]));
      expect(accepted.size).to.equal(5 * EVENTS_OF_A_MINT);
    });

    it('are listed, removed and added by commands, which the service follows within seconds', async () => {
      const tdoc = (...args: string[]) => askTdocInProcess(['registries', ...args], settings);
      const { stdout } = await tdoc('list');
      expect(stdout.trim().split('\n')).to.have.length(2);
      expect(stdout).to.match(
        new RegExp(`^localhost  ${added}  added, 0 confirmations, next block \\d+, 0 und`, 'm'),
      );
      const named = ['--registry', added, '--json'];
      const removed = await tdoc('remove', ...named);
      expect([removed.code, JSON.parse(removed.stdout)]).to.deep.equal([
        0,
        { outcome: 'removed', chainId: 31337, address: added, undelivered: 0 },
      ]);
      await eventually('it is gone', async () => (await healthOf(service.url)).feeds.length === 1);
      const again = await tdoc('remove', ...named);
      expect(again.code).to.equal(1);
      expect(JSON.parse(again.stdout)).to.include({ outcome: 'refused', code: 'REGISTRY_UNKNOWN' });
      const account = await tdoc('add', '--registry', await local.account(1));
      expect(account.code).to.equal(1);
      expect(account.stderr).to.contain('REGISTRY_MISSING');
      const back = await tdoc('add', ...named, '--confirmations', '0');
      expect(back.code).to.equal(0);
      expect(JSON.parse(back.stdout)).to.include({ outcome: 'added', address: added, origin: 'api' });
      await eventually('it is followed', async () => (await entry())?.feed.state === 'following');
      await mint();
      await delivered(6 * EVENTS_OF_A_MINT);
    });

    if (engine === 'SQLite')
      it('lets a service without ADMIN_API_KEY answer 404', async () => {
        const DATA_DIR = join(local.folder, 'no-admin');
        const closed = await startService({ ...settings, ADMIN_API_KEY: '', DATA_DIR });
        try {
          for (const path of ['/registries', place()])
            expect((await ask('GET', path, undefined, closed)).status).to.equal(404);
        } finally {
          await closed.stop();
        }
      });
    else
      it('are followed by all services on a database within seconds, whichever reads the chain', async () => {
        const other = await startService(settings);
        try {
          await eventually(
            'the other follows it too',
            async () => (await entry(other))?.feed.state === 'standby',
          );
          expect((await ask('DELETE', place(), undefined, other)).status).to.equal(200);
          await eventually('it is gone here', async () => (await entry()) === undefined);
          await eventually('nobody reads it', async () => (await healthOf(service.url)).feeds.length === 1);
          expect((await add({ network: 31337, address: added }, other)).status).to.equal(201);
          await eventually('it is followed here', async () => (await entry())?.feed.state !== undefined);
          const states = async () => [(await entry())?.feed.state, (await entry(other))?.feed.state];
          await eventually('one of them reads', async () => (await states()).includes('following'));
          const before = arrived();
          await mint();
          await delivered(before + EVENTS_OF_A_MINT);
        } finally {
          await other.stop();
        }
      });
  });
}
