import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import {
  startSubscribedService,
  type ShownSubscription,
  type SubscribedService,
} from '../helpers/processes/subscribed-service';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';

describe('tdoc subscriptions', () => {
  let api: SubscribedService;
  before(async () => {
    api = await startSubscribedService('SQLite');
  });

  const run = (...args: string[]) => askTdocInProcess(['subscriptions', ...args], api.settings);
  const json = async <T>(...args: string[]): Promise<T> => {
    const { code, stdout, stderr } = await run(...args, '--json');
    expect(code, `${args.join(' ')}: ${stdout}${stderr}`).to.equal(0);
    return JSON.parse(stdout) as T;
  };
  const fileOf = (body: object): string => {
    const path = join(api.local.folder, 'subscription.json');
    writeFileSync(path, JSON.stringify(body));
    return path;
  };

  it('does what the API does, while the service runs', async () => {
    const sink = await api.sink();
    const body = {
      sink: sink.url,
      protocol: 'HTTP',
      protocolsettings: { headers: { 'x-key': 'secret-value' } },
    };
    const { id } = await json<ShownSubscription>('create', fileOf(body));
    const owner = await api.local.account(1);
    expect(await json('test', id)).to.include({ isDelivered: true, status: 204 });
    const token = await mintDirectly(api.local, owner);
    await eventually('the service follows', () => sink.deliveries.length === EVENTS_OF_A_MINT + 1);
    expect(sink.deliveries[0]?.headers['x-key']).to.equal('secret-value');

    const all = await json<ShownSubscription[]>('list');
    expect(all.map((one) => one.id)).to.deep.equal(['default', id]);
    expect((await run('list')).stdout)
      .to.contain(`${id}  active  ${sink.url}`)
      .and.not.to.contain('secret-value');
    const shown = await json<ShownSubscription>('show', id);
    expect(shown.protocolsettings.headers).to.deep.equal({ 'x-key': '***' });

    const paused = { ...shown, config: { ...shown.config, state: 'paused' } };
    await json('update', id, fileOf(paused));
    await mintDirectly(api.local, owner);
    await eventually('events wait', async () => {
      const waiting = await json<unknown[]>('deliveries', id);
      return waiting.length === EVENTS_OF_A_MINT;
    });
    expect(await json('deliveries', id, '--token', String(token.tokenId))).to.deep.equal([]);
    expect(await json('deliveries', id, '--state', 'failed')).to.deep.equal([]);
    expect(await json('deliveries', id, '--limit', '2')).to.have.length(2);
    const refused = await run('delete', id, '--json');
    expect(refused.code).to.equal(1);
    expect(JSON.parse(refused.stdout)).to.include({ outcome: 'refused', code: 'SUBSCRIPTION_UNDELIVERED' });

    await json('update', id, fileOf(shown));
    await eventually('all came', () => sink.deliveries.length === 2 * EVENTS_OF_A_MINT + 1);
    await eventually('all is noted', async () => (await json<unknown[]>('deliveries', id)).length === 0);
    const event = String(sink.deliveries[1]?.event.id);
    const { registries } = await json<{ registries: { queued: number }[] }>(
      'redeliver',
      id,
      '--event',
      event,
    );
    expect(registries[0]?.queued).to.equal(1);
    await eventually('it came again', () => sink.deliveries.length === 2 * EVENTS_OF_A_MINT + 2);
    expect(await json('delete', id, '--force')).to.have.property('deleted', id);
    for (const args of [['show'], ['delete'], ['test'], ['deliveries'], ['redeliver', '--dead']]) {
      const unknown = await run(...args, id);
      expect(`${unknown.code} ${unknown.stderr}`, args[0]).to.match(/^2 .*SUBSCRIPTION_UNKNOWN/s);
    }
    const wrong = await run('create', fileOf({ ...body, protocol: 'MQTT' }));
    expect(`${wrong.code} ${wrong.stderr}`).to.match(/^2 .*\/protocol must be `HTTP`.*SUBSCRIPTION_INVALID/s);
    expect((await run('deliveries', 'default', '--state', 'sent')).stderr).to.contain('ARGUMENT_INVALID');
  });
});
