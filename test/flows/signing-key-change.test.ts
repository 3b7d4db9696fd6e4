import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { publishedKeys } from '../../receiver/verify';
import { systemTime } from '../../service/base/time';
import type { Jwks } from '../../service/base/signing-keys';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { eventually } from '../helpers/eventually';
import { serve, type TestServer } from '../helpers/http-server';
import { create } from '../helpers/processes/create-call';
import { forwardTo } from '../helpers/processes/https-front';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { startReceiver, type RunningReceiver } from '../helpers/receiver/running-receiver';

const HOUR_MS = 3_600_000;
const EVENTS_OF_A_MINT = 5;

describe('a change of the key that signs webhooks', () => {
  /** The key ids of the deliveries that reached the receiver, and of those refused on the way. */
  const passed: unknown[] = [];
  const refused: unknown[] = [];
  let isPassing = true;
  let aheadMs = 0;
  let local: LocalSetup;
  let service: RunningService;
  let receiver: RunningReceiver;
  let front: TestServer;

  before(async () => {
    local = await createLocalSetup();
    const forward = forwardTo(() => receiver.url);
    front = await serve((request, response) => {
      (isPassing ? passed : refused).push(request.headers['x-service-key-id']);
      if (isPassing) forward(request, response);
      else response.writeHead(503).end();
    });
    service = await startService(
      {
        ...local.settings,
        SIGNING_PRIVATE_KEY_NEXT: randomBytes(32).toString('base64'),
        SIGNING_KEY_SWITCH_AT: new Date(systemTime.now() + HOUR_MS).toISOString().replace(/\.\d+/, ''),
        WEBHOOK_URL: `${front.url}/`,
      },
      { time: { ...systemTime, now: () => systemTime.now() + aheadMs } },
    );
    receiver = await startReceiver(local.folder, publishedKeys(`${service.url}/.well-known/jwks.json`));
  });

  it('is followed by a receiver of the published keys without restarting it or the service', async () => {
    const published = async (): Promise<Jwks> =>
      (await fetch(`${service.url}/.well-known/jwks.json`)).json() as Promise<Jwks>;
    const before = await published();
    const [current, next] = before.keys.map(({ kid }) => kid);
    const [owner, holder] = [await local.account(1), await local.account(2)];

    await create(service.url, { ...minimal, owner, holder });
    await eventually('the first document', () => receiver.events.length === EVENTS_OF_A_MINT);
    isPassing = false;
    await create(service.url, { ...minimal, owner, holder });
    await eventually('a delivery that waits', () => refused.includes(current));
    expect(refused).not.to.include(next);

    aheadMs = HOUR_MS;
    await eventually('the next key', () => refused.includes(next));
    isPassing = true;
    await eventually('the second document', () => receiver.events.length === 2 * EVENTS_OF_A_MINT);

    const ofEach = (kid: string | undefined): unknown[] =>
      Array.from({ length: EVENTS_OF_A_MINT }, () => kid);
    expect(passed).to.deep.equal([...ofEach(current), ...ofEach(next)]);
    expect(receiver.problems).to.deep.equal([]);
    expect(await published()).to.deep.equal(before);
  });
});
