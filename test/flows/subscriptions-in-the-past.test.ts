import { expect } from 'chai';
import { EVENTS_OF_A_MINT, mintDirectly, transferHolder } from '../helpers/chain/direct-mint';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { expectedEvents } from '../helpers/chain/expected-events';
import { eventually } from '../helpers/eventually';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startSubscribedService, type SubscribedService } from '../helpers/processes/subscribed-service';
import type { RecordingReceiver } from '../helpers/receiver/recording-receiver';

const DEPTH = 2;

describe('subscriptions that start in the past', () => {
  let api: SubscribedService;
  let accounts: { from: string; to: string };

  before(async () => {
    api = await startSubscribedService('SQLite', { FINALITY_DEPTH: String(DEPTH) });
    accounts = { from: await api.local.account(1), to: await api.local.account(2) };
  });

  const mint = () => mintDirectly(api.local, accounts.from);
  const came = (sink: RecordingReceiver, count: number): Promise<unknown> =>
    eventually(`${count} deliveries`, () => sink.deliveries.length >= count);
  /** Fails unless all events of the chain since this block came, once, in the order of their token. */
  async function expectAllSince(sink: RecordingReceiver, fromBlock: number): Promise<void> {
    const expected = await expectedEvents(api.local.client, api.local.registryAddress, fromBlock);
    await came(sink, expected.length);
    const bySubject = (events: readonly { subject: string; data: object }[]) => {
      const subjects: Record<string, unknown[]> = {};
      for (const { subject, data } of events) (subjects[subject] ??= []).push(data);
      return subjects;
    };
    const arrived = sink.deliveries.map(({ event }) => event);
    expect(bySubject(arrived)).to.deep.equal(bySubject(expected));
  }

  it('get the events since a block, also since one that is not mined yet', async () => {
    const fromBlock = (await api.local.client.getBlockNumber()) + 1;
    await mint();
    await mint();
    await api.caughtUp();
    const [since, later] = [await api.sink(), await api.sink()];
    await api.subscribe(since, { config: { startFrom: fromBlock } });
    const afterNext = (await api.local.client.getBlockNumber()) + 2;
    await api.subscribe(later, { config: { startFrom: afterNext } });
    await mint();
    await mint();
    await api.caughtUp();
    await expectAllSince(since, fromBlock);
    await came(later, EVENTS_OF_A_MINT);
    await expectAllSince(later, afterNext);
  });

  it('get events from the chain that were purged', async () => {
    const token = await mint();
    await transferHolder(api.local, token, accounts);
    await mineBlocks(api.local, DEPTH + 1);
    await api.caughtUp();
    await eventually('old events are purged', async () => {
      const purge = ['purge-events', '--older-than', '0', '--yes'];
      const { stdout } = await askTdocInProcess(purge, api.settings);
      return /[1-9]\d* removed/.test(stdout);
    });
    const sink = await api.sink();
    await api.subscribe(sink, { config: { startFrom: 'beginning' } });
    await transferHolder(api.local, token, { from: accounts.to, to: accounts.from });
    await api.caughtUp();
    await expectAllSince(sink, 0);
    const ids = sink.deliveries.map(({ event }) => event.id);
    const before = new Set(api.ofSettings.deliveries.map(({ event }) => event.id));
    await eventually('`default` has the last event', () => {
      for (const { event } of api.ofSettings.deliveries) before.add(event.id);
      return ids.every((id) => before.has(id));
    });
  });
});
