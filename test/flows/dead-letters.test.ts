import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { tdoc } from '../helpers/processes/command-output';
import { tdocInProcess } from '../helpers/processes/tdoc-in-process';
import {
  accept,
  startRecordingReceiver,
  type RecordingReceiver,
} from '../helpers/receiver/recording-receiver';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const POISON = 'com.service.etr.beneficiary_transfer';

describe('dead letters', () => {
  let local: LocalSetup;
  let receiver: RecordingReceiver;
  let service: RunningService;
  let settings: Record<string, string>;

  before(async () => {
    local = await createLocalSetup();
    receiver = await startRecordingReceiver(local.publicKeyFile, (delivery, response) => {
      response.writeHead(delivery.event.type === POISON ? 500 : 200).end();
    });
    settings = { ...local.settings, WEBHOOK_URL: receiver.url };
    const retry = { initialDelayMs: 50, maxDelayMs: 100, giveUpAfterMs: 300 };
    const headers = { 'X-Tenant': 'acme', Authorization: 'Bearer token-of-the-subscriber' };
    writeFileSync(settings.SERVICE_CONFIG ?? '', JSON.stringify({ webhook: { headers, retry } }));
    service = await startService(settings);
    const owner = await local.account(1);
    await create(service.url, { ...minimal, owner, holder: owner });
  });

  const command = async (...args: string[]): Promise<Record<string, unknown>[]> => {
    const output = await tdocInProcess(args, settings);
    const lines = output.trim().split('\n');
    return args.includes('--json') ? lines.map((line) => JSON.parse(line) as Record<string, unknown>) : [];
  };
  /** Waits until nothing waits: the service notes a delivery shortly after the receiver has it. */
  const settled = (): Promise<unknown> =>
    eventually('no deliveries are waiting', async () =>
      (await tdocInProcess(['deliveries'], settings)).includes('no deliveries are waiting'),
    );
  const deliveriesOf = (id: unknown): string[] =>
    receiver.deliveries.filter(({ event }) => event.id === id).map(({ body }) => body.toString());

  it('are listed with their last attempt, and do not hold up later events of their token', async () => {
    await eventually('the last event of the mint', () =>
      receiver.deliveries.some(({ event }) => event.type.endsWith('token_received')),
    );
    expect(service.log.find(({ msg }) => msg === 'dead letter')).to.include({
      level: 'error',
      status: 500,
    });
    const [letter, ...others] = await command('deliveries', '--dead', '--json');
    expect(others).to.deep.equal([]);
    expect(letter).to.include({ type: POISON, status: 500, error: 'answered 500' });
    expect(letter?.body).to.deep.include({ type: POISON, id: letter?.id });
    expect(letter?.attempts).to.equal(deliveriesOf(letter?.id).length).and.be.greaterThan(2);
    expect(await (await fetch(`${service.url}/metrics`)).text()).to.match(/^etr_dead_letters\{.*\} 1$/m);
  });

  it('are sent again on request, with the same bytes and the configured headers', async () => {
    receiver.answerWith(accept);
    const [letter] = await command('deliveries', '--dead', '--json');
    const before = deliveriesOf(letter?.id);
    // In a process of its own: the service runs in this one.
    expect(await tdoc(['redeliver', '--dead'], settings)).to.match(/: 1 queued/);
    await eventually('it is sent again', () => deliveriesOf(letter?.id).length > before.length);
    await settled();
    expect(new Set(deliveriesOf(letter?.id)).size).to.equal(1);
    expect(receiver.deliveries.at(-1)?.headers).to.include({
      'x-tenant': 'acme',
      authorization: 'Bearer token-of-the-subscriber',
    });
    expect(JSON.stringify(service.log)).not.to.contain('token-of-the-subscriber');
    expect(await tdocInProcess(['deliveries', '--dead'], settings)).to.match(/no dead letters/);
    const [history] = await command('deliveries', '--event', String(letter?.id), '--json');
    expect(history).to.include({ state: 'delivered' });
    expect(history?.attempts).to.have.length(before.length + 1);
  });

  it('redeliver also sends delivered events again: one, or all from a block on', async () => {
    const [first] = receiver.deliveries;
    const id = first?.event.id ?? '';
    const before = receiver.deliveries.length;
    const answer = JSON.parse(
      await tdocInProcess(['redeliver', '--event', id, '--json'], settings),
    ) as unknown;
    const registry = `31337:${local.registryAddress.toLowerCase()}`;
    const queued = { registry, queued: 1, alreadyWaiting: 0, purgedUpTo: null };
    expect(answer).to.deep.equal({ registries: [queued] });
    await eventually('it came again', () => receiver.deliveries.length === before + 1);
    await settled();
    expect(receiver.deliveries.at(-1)?.body.equals(first?.body ?? Buffer.alloc(0))).to.equal(true);
    await tdocInProcess(['redeliver', '--from-block', String(first?.event.data.blockNumber)], settings);
    await eventually('all five came again', () => receiver.deliveries.length === before + 6);
    const types = receiver.deliveries.slice(-5).map(({ event }) => event.data.logIndex);
    expect(types).to.deep.equal([...types].sort((left, right) => left - right));
  });

  it('redeliver names the problem with missing or wrong arguments', async () => {
    const problemOf = async (...args: string[]): Promise<string> =>
      tdocInProcess(['redeliver', ...args], settings).then(
        () => 'it was accepted',
        (error: { stderr: string }) => error.stderr,
      );
    expect(await problemOf()).to.match(/Give one of --event ID, --dead and --from-block N/);
    expect(await problemOf('--event', 'nonsense')).to.match(/There is no event nonsense.*EVENT_UNKNOWN/);
    expect(await problemOf('--dead', '--registry', '0x12')).to.match(/--registry 0x12 is not an address/);
  });
});
