import { systemTime } from '../../service/base/time';
import { expect } from 'chai';
import { EVENTS_OF_A_MINT, mintDirectly, transferHolder } from '../helpers/chain/direct-mint';
import { ENGINES } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { startService } from '../helpers/processes/running-service';
import type { ApiAnswer } from '../helpers/processes/create-call';
import {
  arrivedAt,
  callApi,
  startSubscribedService,
  type ShownSubscription,
  type SubscribedService,
} from '../helpers/processes/subscribed-service';
import { accept, type RecordingReceiver } from '../helpers/receiver/recording-receiver';

const QUICK = { retry: { initialDelayMs: 50, maxDelayMs: 200 } };

interface Undelivered {
  id: string;
  state: string;
  tokenId: string;
  attempts: number;
  status: number | null;
  nextAttemptAt: string;
}

const DAY_MS = 86_400_000;

for (const engine of ENGINES) {
  describe(`deliveries of subscriptions on ${engine}`, () => {
    let own: SubscribedService | undefined;
    let api: SubscribedService;
    let accounts: { from: string; to: string };

    before(async function () {
      own = await startSubscribedService(engine);
      if (own === undefined) return this.skip();
      api = own;
      accounts = { from: await api.local.account(1), to: await api.local.account(2) };
    });

    const mint = () => mintDirectly(api.local, accounts.from);
    const came = (sink: RecordingReceiver, count: number): Promise<unknown> =>
      eventually(`${count} deliveries`, () => sink.deliveries.length >= count);
    const putState = async (id: string, state: string): Promise<void> => {
      const path = `/subscriptions/${id}`;
      const { body } = await api.call<ShownSubscription>('GET', path);
      const put = { ...body, config: { ...body.config, state } };
      const { status, message } = await api.call('PUT', path, put);
      expect(status, message).to.equal(200);
    };
    const undelivered = async (id: string, query = ''): Promise<Undelivered[]> => {
      const path = `/subscriptions/${id}/deliveries${query}`;
      const { body, status, message } = await api.call<Undelivered[]>('GET', path);
      expect(status, message).to.equal(200);
      return body;
    };
    const remove = (id: string) => api.call('DELETE', `/subscriptions/${id}?force=true`);

    it('follows the new rules for each event that is recorded after the answer to a PUT', async () => {
      const sink = await api.sink();
      const { id, ...body } = await api.subscribe(sink, { types: ['com.service.etr.minted'] });
      const first = await mint();
      await api.caughtUp();
      const types = ['com.service.etr.holder_transfer'];
      const { status } = await api.call('PUT', `/subscriptions/${id}`, { ...body, types });
      expect(status).to.equal(200);
      const second = await mint();
      await transferHolder(api.local, second, accounts);
      await came(sink, 3);
      const transfer = `holder_transfer ${second.tokenId}`;
      expect(arrivedAt(sink)).to.deep.equal([`minted ${first.tokenId}`, transfer, transfer]);
      await remove(id);
    });

    it('keeps events while it is paused, also over a restart, and goes on in order', async () => {
      const sink = await api.sink();
      const { id } = await api.subscribe(sink, { types: ['com.service.etr.holder_transfer'] });
      const token = await mint();
      await came(sink, 1);
      await putState(id, 'paused');
      await transferHolder(api.local, token, accounts);
      await transferHolder(api.local, token, { from: accounts.to, to: accounts.from });
      await api.caughtUp();
      expect((await undelivered(id)).map(({ state }) => state)).to.deep.equal(['waiting', 'waiting']);
      const refused = await api.call('DELETE', `/subscriptions/${id}`);
      expect(refused).to.include({ status: 409, code: 'SUBSCRIPTION_UNDELIVERED' });
      expect(refused.message).to.match(/^2 events are not delivered yet/);
      await api.restart();
      await api.caughtUp();
      expect(sink.deliveries).to.have.length(1);
      const [condition] = await eventually('it is noticed', async () => {
        const { conditions = [] } = await healthOf(api.service.url);
        return conditions.length > 0 ? conditions : undefined;
      });
      expect(condition).to.include({ what: 'subscription_paused', subject: `subscription/${id}` });
      for (const [state, count] of Object.entries({ active: 1, paused: 1, gone: 0 }))
        expect(await metricOf(api.service.url, `etr_subscriptions{state="${state}"}`), state).to.equal(count);
      await putState(id, 'active');
      await came(sink, 3);
      const [, one, two] = sink.deliveries.map(({ event }) => event.data);
      expect(one?.blockNumber).to.be.lessThan(two?.blockNumber ?? 0);
      await eventually('nothing waits', async () => (await undelivered(id)).length === 0);
      expect((await api.call('DELETE', `/subscriptions/${id}`)).status).to.equal(200);
    });

    it('lists failed, dead and waiting events in pages, and sends them again', async () => {
      const sink = await api.sink();
      sink.answerWith((_, response) => void response.writeHead(500).end());
      const config = { retry: { ...QUICK.retry, giveUpAfterMs: 0 } };
      const types = ['com.service.etr.minted', 'com.service.etr.holder_transfer'];
      const fromBlock = (await api.local.client.getBlockNumber()) + 1;
      const { id, ...body } = await api.subscribe(sink, { types, config });
      const [one, two] = [await mint(), await mint()];
      await transferHolder(api.local, one, accounts);
      await eventually('five are dead', async () => (await undelivered(id, '?state=dead')).length === 5);
      const dead = await undelivered(id, '?state=dead');
      expect(dead[0]).to.include({ state: 'dead', attempts: 1, status: 500 });
      expect(await undelivered(id, `?token=${two.tokenId}`)).to.have.length(2);
      const longer = { ...body, config: { retry: { initialDelayMs: 60_000, maxDelayMs: 60_000 } } };
      expect((await api.call('PUT', `/subscriptions/${id}`, longer)).status).to.equal(200);
      const three = await mint();
      await transferHolder(api.local, three, accounts);
      const failed = await eventually('one failed', async () => (await undelivered(id, '?state=failed'))[0]);
      await api.caughtUp();
      expect(failed).to.include({ tokenId: String(three.tokenId), status: 500, attempts: 1 });
      expect(await undelivered(id, '?state=waiting')).to.have.length(2);
      const seen: string[] = [];
      let page: string | undefined = `/subscriptions/${id}/deliveries?limit=2`;
      while (page !== undefined) {
        const answer: ApiAnswer<Undelivered[]> = await api.call('GET', page);
        seen.push(...answer.body.map((event) => event.id));
        page = /^<(.*)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1];
      }
      expect(new Set(seen).size).to.equal(8);
      expect(seen).to.have.length(8);

      sink.answerWith(accept);
      sink.deliveries.length = 0;
      const redeliver = async (selection: object): Promise<number> => {
        const path = `/subscriptions/${id}/redeliver`;
        const answer = await api.call<{ registries: { queued: number }[] }>('POST', path, selection);
        expect(answer.status, answer.message).to.equal(202);
        return answer.body.registries.reduce((sum, { queued }) => sum + queued, 0);
      };
      expect(await redeliver({ event: dead[0]?.id })).to.equal(1);
      await came(sink, 1);
      expect(sink.deliveries[0]?.event.id).to.equal(dead[0]?.id);
      expect(await redeliver({ dead: true })).to.equal(4);
      await came(sink, 5);
      await eventually('only the last token waits', async () => (await undelivered(id)).length === 3);
      expect(await redeliver({ fromBlock })).to.equal(5);
      await came(sink, 10);
      await remove(id);
    });

    describe('after a sink asked for a pause of a day', () => {
      const type = 'com.service.etr.minted';

      /** Waits for the attempt that the sink refuses with Retry-After. */
      const refused = async (sink: RecordingReceiver, id: string): Promise<void> => {
        sink.answerWith((_, response) => void response.writeHead(503, { 'retry-after': '86400' }).end());
        await mint();
        const failed = async () => (await undelivered(id, '?state=failed'))[0];
        const { nextAttemptAt } = await eventually('it failed', failed);
        expect(Date.parse(nextAttemptAt) - systemTime.now()).to.be.within(DAY_MS / 2, DAY_MS);
        sink.answerWith(accept);
      };

      it('sends to another sink at once, and counts its attempts anew', async () => {
        const [sink, other] = [await api.sink(), await api.sink()];
        const config = { retry: { initialDelayMs: 60_000 } };
        const { id, ...body } = await api.subscribe(sink, { types: [type], config });
        await refused(sink, id);
        other.answerWith((_, response) => void response.writeHead(500).end());
        const moved = await api.call('PUT', `/subscriptions/${id}`, { ...body, sink: other.url });
        expect(moved.status, moved.message).to.equal(200);
        await came(other, 1);
        const failed = await eventually('it failed', async () =>
          (await undelivered(id)).find(({ status }) => status === 500),
        );
        expect(failed.attempts).to.equal(1);
        expect((await remove(id)).headers.get('x-undelivered')).to.equal('1');
      });

      it('sends at once when the subscription is resumed, and when its range is sent again', async () => {
        const sink = await api.sink();
        const { id } = await api.subscribe(sink, { types: [type] });
        await refused(sink, id);
        await putState(id, 'paused');
        await putState(id, 'active');
        await came(sink, 2);
        const fromBlock = (await api.local.client.getBlockNumber()) + 1;
        await refused(sink, id);
        const answer = await api.call('POST', `/subscriptions/${id}/redeliver`, { fromBlock });
        expect(answer.body).to.have.nested.include({
          'registries[0].queued': 0,
          'registries[0].alreadyWaiting': 1,
        });
        await came(sink, 4);
        await remove(id);
      });

      it('sends at once to another WEBHOOK_URL', async () => {
        await refused(api.ofSettings, 'default');
        const other = await api.sink();
        await api.restart({ WEBHOOK_URL: other.url });
        await came(other, EVENTS_OF_A_MINT);
        await api.restart();
      });
    });

    it('is failing SUBSCRIPTION_FAILING_AFTER_MINUTES after a failure, until a success', async () => {
      let ahead = 0;
      const time = { ...systemTime, now: () => systemTime.now() + ahead };
      const settings = { SUBSCRIPTION_FAILING_AFTER_MINUTES: '5' };
      await api.restart(settings, undefined, { time });
      const sink = await api.sink();
      sink.answerWith((_, response) => void response.writeHead(503).end());
      const { id } = await api.subscribe(sink, { types: ['com.service.etr.minted'], config: QUICK });
      const shown = async () => (await api.call<ShownSubscription>('GET', `/subscriptions/${id}`)).body;
      const failing = () => metricOf(api.service.url, 'etr_conditions{what="subscription_failing"}');
      const lines = (text: string) =>
        api.service.log.filter(
          ({ msg, what, subject }) =>
            what === 'subscription_failing' && subject === `subscription/${id}` && msg?.includes(text),
        );
      await mint();
      await came(sink, 1);
      for (const minutes of [0, 4]) {
        ahead = minutes * 60_000;
        expect(await shown()).not.to.have.property('failingSince');
        expect(await failing()).to.equal(0);
      }
      ahead = 5 * 60_000;
      const failingSince = await eventually('it is failing', async () => (await shown()).failingSince);
      expect(Date.parse(failingSince)).to.be.closeTo(systemTime.now(), 30_000);
      const { status, conditions = [] } = await healthOf(api.service.url);
      expect(status).to.equal('ok');
      expect(conditions.filter(({ severity }) => severity === 'error')).to.have.length(1);
      expect(conditions[0]).to.include({
        what: 'subscription_failing',
        subject: `subscription/${id}`,
        since: failingSince,
      });
      expect(await failing()).to.equal(1);
      await eventually('it is logged', () => lines('No delivery').length === 1);
      expect((await api.call('PUT', `/subscriptions/${id}`, await shown())).status).to.equal(200);
      sink.answerWith(accept);
      await eventually('it is well', async () => (await failing()) === 0);
      await eventually('it is logged', () => lines('ended').length === 1);
      expect(await shown()).not.to.have.property('failingSince');
      await remove(id);
      await api.restart();
    });

    it('waits with secrets that cannot be read, without hindering others', async () => {
      const [unreadable, other] = [await api.sink(), await api.sink()];
      const types = ['com.service.etr.minted'];
      const protocolsettings = { headers: { 'x-key': 'one' } };
      const { id, ...body } = await api.subscribe(unreadable, { types, protocolsettings });
      const well = await api.subscribe(other, { types });
      await api.restart({ SECRETS_KEY: Buffer.alloc(32, 1).toString('base64') });
      await mint();
      await came(other, 1);
      await eventually('it is logged', () =>
        api.service.log.some(
          ({ msg, subscription }) => subscription === id && msg?.includes('Set SECRETS_KEY to the key'),
        ),
      );
      const path = `/subscriptions/${id}`;
      expect(await undelivered(id)).to.have.length(1);
      expect(await api.call('POST', `${path}/test`)).to.include({ status: 409, code: 'SECRETS_KEY_WRONG' });
      const kept = await api.call('PUT', path, body);
      expect(kept).to.include({ status: 400, code: 'SUBSCRIPTION_INVALID' });
      expect(kept.message).to.match(/^\/protocolsettings\/headers\/x-key cannot be kept/);
      const put = await api.call('PUT', path, { ...body, protocolsettings: { headers: { 'x-key': 'two' } } });
      expect(put.status, put.message).to.equal(200);
      await came(unreadable, 1);
      expect(unreadable.deliveries[0]?.headers['x-key']).to.equal('two');
      for (const one of [id, well.id]) await remove(one);
      await api.restart();
    });

    it('follows changes that another process makes within seconds', async function () {
      if (engine === 'SQLite') return this.skip();
      await using second = await startService(api.settings);
      const sink = await api.sink();
      const request = { sink: sink.url, protocol: 'HTTP', types: ['com.service.etr.minted'] };
      const change = <T>(method: string, path: string, body?: unknown) =>
        callApi<T>(second.url, method, path, body);
      const { body } = await change<ShownSubscription>('POST', '/subscriptions', request);
      const token = await mint();
      await came(sink, 1);
      const path = `/subscriptions/${body.id}`;
      await change('PUT', path, { ...request, config: { state: 'paused' } });
      await mint();
      await api.caughtUp();
      expect(await undelivered(body.id)).to.have.length(1);
      await change('PUT', path, { ...request, sink: `${sink.url}other` });
      await came(sink, 2);
      expect(arrivedAt(sink)[0]).to.equal(`minted ${token.tokenId}`);
      expect((await change('DELETE', `${path}?force=true`)).status).to.equal(200);
      expect((await api.call('GET', path)).status).to.equal(404);
    });
  });
}
