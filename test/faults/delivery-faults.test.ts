import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'chai';
import Sqlite from 'libsql';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/chain/direct-mint';
import { openState } from '../helpers/database/engines';
import { whileFollowing } from '../helpers/processes/followed-registry';
import { accept, startRecordingReceiver } from '../helpers/receiver/recording-receiver';
import { neverAnswer } from '../helpers/virtual-time';
import { createLocalSetup, DEPLOYER_KEY, localSetupOfSuite } from '../helpers/chain/local-setup';

/** Shorter than the service waits at a stop for deliveries under way. */
const SLOW_MS = 5_000;
const A_MINUTE_MS = 60_000;

describe('event delivery', () => {
  const local = localSetupOfSuite();
  let owner: string;

  before(async () => {
    owner = await local.account(1);
  });

  it('sends the same bytes and signature on every attempt until the answer is 2xx', async () => {
    const answers = [500, 302, 404, 429, 0, 204];
    const receiver = await startRecordingReceiver(local.publicKeyFile, (_delivery, response) => {
      const status = answers[receiver.deliveries.length - 1] ?? 200;
      if (status === 0) response.destroy();
      else response.writeHead(status, status === 302 ? { Location: '/elsewhere' } : {}).end();
    });
    const following = { name: 'same-bytes', settings: { WEBHOOK_URL: receiver.url } };
    await whileFollowing(local, following, async ({ until }) => {
      await mintDirectly(local, owner);
      await until('five events answered', () => receiver.deliveries.length >= answers.length + 4);
    }).finally(() => receiver.close());

    const attempts = receiver.deliveries.map(({ body, headers }) => ({
      body: body.toString(),
      signature: headers['x-service-signature'],
    }));
    const first = attempts.slice(0, answers.length);
    expect(new Set(first.map(({ body }) => body)).size).to.equal(1);
    expect(new Set(first.map(({ signature }) => signature)).size).to.equal(1);
    expect(new Set(attempts.map(({ body }) => body)).size).to.equal(5);

    const state = new Sqlite(join(local.folder, 'same-bytes/state.sqlite'), { readonly: true });
    const rows = state
      .prepare(
        'select status, error from attempts where event = ' +
          '(select event from attempts where attempt = 2) order by attempt',
      )
      .raw()
      .all() as unknown[][];
    state.close();
    expect(rows.map(([status]) => status)).to.deep.equal([500, 302, 404, 429, null, 204]);
    expect(rows[4]?.[1]).to.be.a('string').and.not.equal('');
  });

  it('continues when a local chain is restarted and the registry deployed again', async () => {
    await using restarted = await createLocalSetup({ program: 'anvil' });
    const settings = { WALLET_PRIVATE_KEY: DEPLOYER_KEY };
    await whileFollowing(restarted, { settings }, async ({ service, accepted, until }) => {
      const delivered = (count: number): Promise<unknown> =>
        until(`${count} events`, () => accepted.length === count);
      await create(service.url, { ...minimal, owner, holder: owner });
      await delivered(EVENTS_OF_A_MINT);
      await restarted.restartNode();
      const { body } = await create(service.url, { ...minimal, owner, holder: owner });
      await delivered(2 * EVENTS_OF_A_MINT);
      for (const { data } of accepted.slice(EVENTS_OF_A_MINT))
        expect(data.transactionHash).to.equal(body.txHash);
    });
  });

  it('finishes deliveries under way at a stop, and repeats hanging ones after the next start', async () => {
    await using receiver = await startRecordingReceiver(local.publicKeyFile);
    const settings = { WEBHOOK_URL: receiver.url };
    await whileFollowing(local, { settings }, async ({ time, until, restart }) => {
      // A sink gets several deliveries at a time when it has answered one.
      await mintDirectly(local, owner);
      await until('the first', () => receiver.deliveries.length === EVENTS_OF_A_MINT);
      let finish: (() => void) | undefined;
      let hangs = false;
      receiver.answerWith(async (delivery, response) => {
        if (finish !== undefined) {
          neverAnswer(delivery.headers);
          hangs = true;
          return;
        }
        const mayFinish = new Promise<void>((resolve) => (finish = resolve));
        await time!.aside(Promise.race([mayFinish, once(response, 'close')]));
        await accept(delivery, response);
      });
      for (let token = 0; token < 2; token++) await mintDirectly(local, owner);
      await until('one delivery of each token is under way', () => hangs);
      time!.later(SLOW_MS, () => finish?.());
      await restart(async () => receiver.answerWith(accept));
      await until('the rest', () => receiver.deliveries.length >= 3 * EVENTS_OF_A_MINT + 1);
      await time!.pass(A_MINUTE_MS);
    });
    const attempts = new Map<string, number>();
    for (const { event } of receiver.deliveries) attempts.set(event.id, (attempts.get(event.id) ?? 0) + 1);
    // The delivery that hung was sent twice, every other one once.
    expect([...attempts.values()].sort()).to.deep.equal([...Array<number>(14).fill(1), 2]);
  });

  it('delivers events that a fast clock postponed once the clock is right again', () =>
    whileFollowing(local, { name: 'ran-ahead' }, async (followed) => {
      followed.answer(500);
      await mintDirectly(local, owner);
      await followed.until('an attempt', () => followed.attempted.length > 0);
      await followed.restart(() => putOffByAYear(join(local.folder, 'ran-ahead')));
      followed.answer(200);
      await followed.allDeliveredOnce();
    }));

  it('stores events while no webhook is configured, and sends them once there is one', async () => {
    const name = 'stored';
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    await whileFollowing(local, { name, fromBlock, settings: { WEBHOOK_URL: '' } }, async (without) => {
      await mintDirectly(local, owner);
      await without.until('events recorded', () => without.logged('events recorded')[0]);
    });
    await whileFollowing(local, { name, fromBlock }, (having) => having.allDeliveredOnce());
  });
});

/** Postpones waiting deliveries as a service does whose clock is a year ahead. */
async function putOffByAYear(DATA_DIR: string): Promise<void> {
  await using database = await openState({ settings: { DATA_DIR } });
  const waiting = await database.db
    .updateTable('queues')
    .set((eb) => ({ next_attempt_at: eb('next_attempt_at', '+', 365 * 86_400_000) }))
    .where('next_attempt_at', 'is not', null)
    .returning('token')
    .execute();
  expect(waiting).to.have.length(1);
}
