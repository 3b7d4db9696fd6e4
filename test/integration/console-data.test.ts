import { expect } from 'chai';
import type { Overview } from '../../service/console/views';
import type { FoundDelivery } from '../../console/requests/api';
import { tokenIdHexOf } from '../../service/registry/token-id-forms';
import { MINT_EVENTS } from '../../devnet/bill-of-lading';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { API, openConsolePage, type ConsolePage } from '../helpers/processes/console-page';
import {
  ADMIN_API_KEY,
  startSubscribedService,
  type SubscribedService,
} from '../helpers/processes/subscribed-service';
import { accept, type Answer } from '../helpers/receiver/recording-receiver';

const refuse: Answer = (_delivery, response) => void response.writeHead(500).end();
const GIVES_UP_SOON = { retry: { initialDelayMs: 50, maxDelayMs: 50, giveUpAfterMs: 300 } };

describe('the console', () => {
  let api: SubscribedService;
  let page: ConsolePage;
  let account: string;

  before(async () => {
    api = await startSubscribedService('SQLite');
    account = await api.local.account(1);
    page = openConsolePage(api.service.url);
    await page.logIn(ADMIN_API_KEY);
  });

  const get = async <Body>(path: string): Promise<Body> => {
    const { status, body } = await page.call<Body>('GET', path);
    expect(status, path).to.equal(200);
    return body;
  };
  const overview = (): Promise<Overview> => get(`${API}/overview`);
  const deliveries = (query: string): Promise<FoundDelivery[]> => get(`/deliveries?${query}`);

  it('shows how far each registry is read, and what is wrong', async () => {
    await api.caughtUp();
    const head = await api.local.client.getBlockNumber();
    await eventually('the overview is new', async () => (await overview()).registries[0]?.headBlock === head);
    const { registries, problems, issuing, subscriptions } = await overview();
    expect(registries).to.have.lengthOf(1);
    expect(registries[0]).to.include({
      network: 'localhost',
      chainId: 31337,
      registry: api.local.registryAddress.toLowerCase(),
      state: 'following',
      headBlock: head,
      nextBlock: head + 1,
      lagBlocks: 0,
      waiting: 0,
      deadLetters: 0,
    });
    expect(issuing).to.equal(null);
    expect(subscriptions).to.deep.equal({ active: 1, paused: 0, gone: 0 });
    expect(problems.map(({ message }) => message)).to.deep.equal([
      'Documents cannot be issued: WALLET_PRIVATE_KEY is not configured.',
    ]);
  });

  it('answers 304 to the ETag of an overview until something moved, and logs both at debug', async () => {
    const ask = (etag = '') =>
      page.call<Overview>('GET', `${API}/overview`, undefined, { 'If-None-Match': etag });
    const first = await ask();
    const etag = first.headers.get('ETag') ?? '';
    expect(etag).to.match(/^"[\w-]{43}"$/);
    await eventually('nothing moves', async () => {
      const [one, two] = [await ask(), await ask()];
      return (await ask(two.headers.get('ETag') ?? '')).status === 304 && one.status === 200;
    });
    await mintDirectly(api.local, account);
    await eventually('all is delivered', () => api.ofSettings.deliveries.length >= MINT_EVENTS.length);
    const moved = await eventually('another revision', async () => {
      const { status, body } = await ask(etag);
      return status === 200 && body.revision !== first.body.revision ? body : undefined;
    });
    expect(moved.at).to.be.greaterThan(first.body.at);
    const logged = api.service.log.filter(({ path }) => path === `${API}/overview`);
    expect(new Set(logged.map(({ level }) => level))).to.deep.equal(new Set(['debug']));
  });

  it('counts what a subscriber has not got, says so, and delivers it again', async () => {
    const sink = await api.sink();
    sink.answerWith(refuse);
    const { id } = await api.subscribe(sink, { config: GIVES_UP_SOON });
    const { tokenId } = await mintDirectly(api.local, account);
    await eventually('dead letters', async () => (await deliveries('state=dead')).length >= 5);
    for (const one of await deliveries('state=dead'))
      expect(one).to.include({ subscription: id, tokenIdHex: tokenIdHexOf(BigInt(tokenId)) });
    // Counting may take at most a twentieth of the time, so the figures may be old.
    const { problems } = await eventually('the overview counts them', async () => {
      const now = await overview();
      return now.registries[0]?.deadLetters === 5 ? now : undefined;
    });
    expect(problems[0]).to.include({ severity: 'error', href: '#/deliveries?state=dead' });
    sink.answerWith(accept);
    const again = await page.call('POST', `/subscriptions/${id}/redeliver`, { dead: true });
    expect(again.status).to.equal(202);
    await eventually('they are delivered', async () => (await deliveries('state=dead')).length === 0);
  });
});
