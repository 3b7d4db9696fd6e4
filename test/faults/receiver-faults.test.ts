import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { expectedEvents } from '../helpers/chain/expected-events';
import { expectPromisesKept } from '../helpers/receiver/delivery-promises';
import { EVENTS_OF_A_MINT, mintTogether } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import {
  accept,
  startRecordingReceiver,
  type Delivery,
  type RecordingReceiver,
} from '../helpers/receiver/recording-receiver';
import { startService, type LogLine, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const TIMEOUT_MS = 3_000;
/** The longest time from the start of a request to its arrival, on a busy machine. */
const ON_THE_WAY_MS = 200;
const INITIAL_DELAY_MS = 40;
const MAX_DELAY_MS = 1_200;

describe('event delivery to a faulty receiver', () => {
  let local: LocalSetup;
  let fromBlock: number;
  let receiver: RecordingReceiver;
  let service: RunningService | undefined;
  let log: LogLine[];

  before(async () => {
    local = await createLocalSetup();
    const retry = { initialDelayMs: INITIAL_DELAY_MS, maxDelayMs: MAX_DELAY_MS };
    const webhook = { timeoutMs: TIMEOUT_MS, retry };
    writeFileSync(local.settings.SERVICE_CONFIG ?? '', JSON.stringify({ webhook }));
  });

  after(() => local?.stop());

  beforeEach(async () => {
    fromBlock = (await local.client.getBlockNumber()) + 1;
    receiver = await startRecordingReceiver(local.publicKeyFile);
    service = await startService({
      ...local.settings,
      DATA_DIR: join(local.folder, `from-${fromBlock}`),
      WEBHOOK_URL: receiver.url,
      START_BLOCK: String(fromBlock),
    });
    log = service.log;
  });

  afterEach(async () => {
    await service?.stop();
    await receiver?.close();
  });

  it('backs off while the receiver is down, and delivers everything once it is up', async () => {
    await receiver.close();
    await mint(12);
    await eventually('some attempts', () => failures().length >= 60);
    await mint(3);
    await eventually('an attempt for each token', () => new Set(failures().map(eventIdOf)).size >= 15);
    const port = Number(new URL(receiver.url).port);
    receiver = await startRecordingReceiver(local.publicKeyFile, accept, port);
    const lines = failures();
    expect(await everything()).to.have.length(15 * EVENTS_OF_A_MINT);
    // One event of each token was tried; the others waited behind it.
    expect(new Set(lines.map(eventIdOf)).size).to.equal(15);
    for (const { attempt, retryInMs } of lines) {
      const longest = Math.min(INITIAL_DELAY_MS * 2 ** (Number(attempt) - 1), MAX_DELAY_MS);
      expect(retryInMs).to.be.within(longest / 2, longest);
    }
  });

  it('repeats an event after the timeout when the receiver hangs; other tokens do not wait', async () => {
    // A sink gets several deliveries at a time when it has answered one.
    await mint(1);
    await eventually('the first', () => receiver.deliveries.length === EVENTS_OF_A_MINT);
    receiver.answerWith((delivery, response) =>
      delivery === receiver.deliveries[EVENTS_OF_A_MINT] ? undefined : accept(delivery, response),
    );
    await mint(3);
    const deliveries = await everything();
    const [first, second] = attemptsOf(deliveries[EVENTS_OF_A_MINT]);
    // The first request arrived some time after the service's clock for it had started.
    expect(pause(first, second)).to.be.at.least(TIMEOUT_MS - ON_THE_WAY_MS);
    expect(failures().map(({ reason }) => reason)).to.deep.equal([`no answer within ${TIMEOUT_MS} ms`]);
    const others = deliveries.filter(({ event }) => event.subject !== first?.event.subject);
    expect(others).to.have.length(3 * EVENTS_OF_A_MINT);
    for (const { arrivedAt } of others) expect(arrivedAt).to.be.below(second?.arrivedAt ?? 0);
  });

  it('repeats an event when the receiver breaks off within the head of its answer', async () => {
    const heads = ['', 'HTTP/1.1 20', 'HTTP/1.1 204 No Content\r\nContent-Le', 'not HTTP at all\r\n\r\n'];
    receiver.answerWith((delivery, response) => {
      const head = isOfFirstEvent(delivery) ? heads[delivery.attempt - 1] : undefined;
      if (head === undefined) return accept(delivery, response);
      response.socket?.end(head);
    });
    await mint(1);
    expect(await everything()).to.have.length(heads.length + EVENTS_OF_A_MINT);
    expect(failures()).to.have.length(heads.length);
    for (const { status, reason } of failures()) {
      expect(status).to.equal(undefined);
      expect(reason).to.be.a('string').and.not.equal('');
    }
  });

  it('waits for the answer that follows informational ones', async () => {
    receiver.answerWith((delivery, response) => {
      response.writeContinue();
      response.writeProcessing();
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      setTimeout(() =>
        response.writeHead(isOfFirstEvent(delivery) && delivery.attempt === 1 ? 503 : 204).end(),
      );
    });
    await mint(1);
    expect(await everything()).to.have.length(1 + EVENTS_OF_A_MINT);
    expect(failures().map(({ status }) => status)).to.deep.equal([503]);
  });

  it('takes a 2xx as delivered, whether the rest of the answer breaks off or never ends', async () => {
    const open = new Set<Delivery>();
    receiver.answerWith((delivery, response) => {
      const drip = setInterval(() => response.write('.'), 20);
      open.add(delivery);
      response.on('close', () => {
        clearInterval(drip);
        open.delete(delivery);
      });
      response.writeHead(200, { 'Content-Length': 1_000_000 }).write('so far');
      if (delivery.event.type.endsWith('.minted')) setTimeout(() => response.destroy(), 30);
    });
    // More tokens than concurrent deliveries.
    await mint(20);
    await eventually('all', () => receiver.deliveries.length >= 20 * EVENTS_OF_A_MINT);
    await eventually('no connection is kept', () => open.size === 0);
    expect(await everything()).to.have.length(20 * EVENTS_OF_A_MINT);
    expect(failures()).to.deep.equal([]);
  });

  it('repeats an event when the receiver redirects, and does not follow the redirect', async () => {
    const statuses = [301, 302, 303, 307, 308];
    let connections = 0;
    const elsewhere = createServer((socket) => {
      connections++;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(elsewhere, 'listening');
    const Location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`;
    receiver.answerWith((delivery, response) => {
      const status = isOfFirstEvent(delivery) ? statuses[delivery.attempt - 1] : undefined;
      if (status === undefined) return accept(delivery, response);
      response.writeHead(status, { Location }).end();
    });
    await mint(1);
    const deliveries = await everything();
    await new Promise((resolve) => elsewhere.close(resolve));
    expect(connections).to.equal(0);
    expect(deliveries).to.have.length(statuses.length + EVENTS_OF_A_MINT);
    expect(failures().map(({ status }) => status)).to.deep.equal(statuses);
  });

  it('pauses as Retry-After asks, also beyond the longest delay; other tokens do not wait', async () => {
    const inThreeSeconds = () => new Date(Date.now() + 3_000).toUTCString();
    const asked = [() => '1', () => '2', inThreeSeconds, () => '0', () => '-7', () => 'soon'];
    const firsts: Delivery[] = [];
    receiver.answerWith((delivery, response) => {
      const isFirst = firsts.every(({ event }) => event.subject !== delivery.event.subject);
      if (isFirst) firsts.push(delivery);
      const pauseAsked = isFirst ? asked[firsts.length - 1]?.() : undefined;
      if (pauseAsked === undefined) return accept(delivery, response);
      response.writeHead(firsts.length % 2 ? 429 : 503, { 'Retry-After': pauseAsked }).end();
    });
    await mint(asked.length + 1);
    const deliveries = await everything();
    const pauses = firsts.map((first) => pause(first, attemptsOf(first)[1]));
    expect(pauses[0]).to.be.within(1_000, 3_000);
    // An HTTP date has no milliseconds, so up to one second is lost.
    for (const longer of pauses.slice(1, 3)) expect(longer).to.be.within(MAX_DELAY_MS + 500, 4_500);
    for (const ordinary of pauses.slice(3, 6)) expect(ordinary).to.be.within(INITIAL_DELAY_MS / 2, 900);
    const untroubled = deliveries.filter(({ event }) => event.subject === firsts[6]?.event.subject);
    expect(untroubled).to.have.length(EVENTS_OF_A_MINT);
    for (const { arrivedAt } of untroubled) expect(pause(firsts[0], { arrivedAt })).to.be.below(1_000);
  });

  it('holds back later events of a token while one is refused, and delivers all other tokens', async () => {
    const poisoned = (): string | undefined => receiver.deliveries[0]?.event.subject;
    receiver.answerWith((delivery, response) => {
      const { subject, type } = delivery.event;
      if (subject !== poisoned() || !type.endsWith('.minted')) return accept(delivery, response);
      response.writeHead(500).end();
    });
    await mint(1);
    await eventually('a second attempt', () => failures().length >= 2);
    await mint(10);
    const others = () => receiver.deliveries.filter(({ event }) => event.subject !== poisoned());
    await eventually('all others', () => others().length >= 10 * EVENTS_OF_A_MINT);
    await eventually('a sixth attempt', () => failures().length >= 6);
    const ofPoisoned = receiver.deliveries.filter(({ event }) => event.subject === poisoned());
    const types = new Set(ofPoisoned.map(({ event }) => event.type.replace('com.service.etr.', '')));
    expect([...types]).to.deep.equal(['escrow_created', 'minted']);
    expect(new Set(failures().map(eventIdOf)).size).to.equal(1);

    receiver.answerWith(accept);
    await everything();
  });

  /** Mints all in one block, so that their deliveries begin together. */
  async function mint(count: number): Promise<void> {
    await mintTogether(local, await local.account(1), count);
  }

  /**
   * Waits until every event is delivered, stops the service, checks the promises to subscribers, and returns
   * all deliveries.
   */
  async function everything(): Promise<Delivery[]> {
    const expected = await expectedEvents(local.client, local.registryAddress, fromBlock);
    const delivered = (): unknown[] => log.flatMap(({ eventIds }) => eventIds ?? []);
    await eventually('all events', () => delivered().length >= expected.length);
    await service?.stop();
    service = undefined;
    expectPromisesKept(receiver.deliveries, expected);
    return receiver.deliveries;
  }

  function isOfFirstEvent({ event }: Delivery): boolean {
    return event.id === receiver.deliveries[0]?.event.id;
  }

  function attemptsOf(delivery: Delivery | undefined): Delivery[] {
    return receiver.deliveries.filter(({ event }) => event.id === delivery?.event.id);
  }

  function failures(): LogLine[] {
    return log.filter(({ msg }) => msg === 'delivery failed');
  }
});

function pause(earlier: Delivery | undefined, later: Pick<Delivery, 'arrivedAt'> | undefined): number {
  return (later?.arrivedAt ?? NaN) - (earlier?.arrivedAt ?? NaN);
}

function eventIdOf({ eventId }: LogLine): unknown {
  return eventId;
}
