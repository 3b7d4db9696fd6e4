import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadConfig, type Config } from '../../service/config/config';
import { subscriptionWith } from '../helpers/subscription-body';
import { temporaryFolder } from '../helpers/temporary-folder';

const ADDRESS = `0x${'5b'.repeat(20)}`;
const OTHER = `0x${'6c'.repeat(20)}`;

describe('followed registries', () => {
  const folder = temporaryFolder();
  const SERVICE_CONFIG = join(folder.path, 'service.config.json');
  const SIGNING_PRIVATE_KEY = Buffer.alloc(32, 7).toString('base64');

  const load = (file: object, settings: Record<string, string> = {}): Config => {
    writeFileSync(SERVICE_CONFIG, JSON.stringify(file));
    const ENV_FILE = join(folder.path, 'none.env');
    return loadConfig({ ENV_FILE, SERVICE_CONFIG, SIGNING_PRIVATE_KEY, NET: '31337', ...settings });
  };
  const problemOf = (file: object, settings?: Record<string, string>): string => {
    try {
      load(file, settings);
    } catch (error) {
      return (error as Error).message;
    }
    throw new Error('it was accepted');
  };

  const entry = { network: 'localhost', address: ADDRESS };

  it('are only that of TOKEN_REGISTRY_ADDRESS on NET when none are listed', () => {
    const settings = { TOKEN_REGISTRY_ADDRESS: ADDRESS, CONFIRMATIONS: '3', START_BLOCK: '9' };
    const [registry, ...others] = load({}, settings).registries;
    expect(others).to.deep.equal([]);
    expect(registry).to.include({ confirmations: 3, startBlock: 9 });
    expect(registry?.rpcUrls).to.deep.equal(['http://127.0.0.1:8545']);
    expect(registry?.address.toLowerCase()).to.equal(ADDRESS);
  });

  it('include that of TOKEN_REGISTRY_ADDRESS once, besides those listed', () => {
    const entry = { network: 'localhost', address: ADDRESS, startBlock: 4 };
    const TOKEN_REGISTRY_ADDRESS = ADDRESS;
    expect(load({ registries: [entry] }, { TOKEN_REGISTRY_ADDRESS }).registries).to.have.length(1);
    const both = load({ registries: [{ ...entry, address: OTHER }] }, { TOKEN_REGISTRY_ADDRESS }).registries;
    expect(both.map(({ startBlock }) => startBlock)).to.deep.equal([4, undefined]);
  });

  it('use RPC_URL and CONFIRMATIONS only on the network of NET', () => {
    const registries = [
      { network: 'localhost', address: ADDRESS },
      { network: 1337, address: ADDRESS },
      { network: 'local', address: OTHER, rpcUrl: 'ws://node.example/', confirmations: 'safe' },
    ];
    const settings = { RPC_URL: 'http://127.0.0.1:1/', CONFIRMATIONS: '2' };
    const followed = load({ registries }, settings).registries;
    expect(followed.map(({ rpcUrls, confirmations }) => [rpcUrls[0], confirmations])).to.deep.equal([
      ['http://127.0.0.1:1/', 2],
      ['http://127.0.0.1:8545', 0],
      ['ws://node.example/', 'safe'],
    ]);
  });

  it("have the common webhook's settings unless they set their own, or the defaults of subscriptions", () => {
    const url = 'https://a.example/';
    const webhook = { url, timeoutMs: 6, headers: { 'X-A': '1' }, retry: { maxDelayMs: 5 } };
    const own = { headers: { 'X-B': '2' }, maxConcurrentDeliveries: 3, retry: { initialDelayMs: 4 } };
    const [registry] = load({ webhook, registries: [{ ...entry, webhook: own }] }).registries;
    expect(registry?.webhook).to.deep.include({
      url,
      headers: { 'x-a': '1', 'x-b': '2' },
      timeoutMs: 6,
      maxConcurrentDeliveries: 3,
      retry: { initialDelayMs: 4, maxDelayMs: 5, giveUpAfterMs: 259_200_000 },
    });
    const { timeoutMs, maxConcurrentDeliveries, retry } = subscriptionWith().config;
    const [plain] = load({ webhook: { url }, registries: [entry] }).registries;
    expect(plain?.webhook).to.deep.include({ timeoutMs, maxConcurrentDeliveries, retry });
  });

  const listing = (changes: object): object => ({ registries: [{ ...entry, ...changes }] });
  for (const [problem, file, settings] of [
    [
      /registries\.1 is the same registry as registries\.0/,
      { registries: [entry, { ...entry, network: '31337' }] },
    ],
    [/registries\.0\.network: is not a known network: use one of .*amoy/, listing({ network: 'mars' })],
    [/registries\.0\.address: is not an address/, listing({ address: '0x12' })],
    [/registries\.0\.startBlock: /, listing({ startBlock: 2 ** 53 })],
    [/startblock/, listing({ startblock: 1 })],
    [/PROVIDER_API_KEY/, listing({ network: 'amoy' })],
    [
      /webhook\.headers\.Content-Type: .*set by the service/,
      { webhook: { headers: { 'Content-Type': 'x' } } },
    ],
    [/not a header value/, { webhook: { headers: { 'X-A': 'a\nb' } } }],
    [
      /service\.config\.json: webhook\.uri: is not a member of webhook\. Leave it out, or write one of url,/,
      { webhook: { uri: 'x' } },
    ],
    [/webhook\.timeoutMs: .*from 1 to 120000\./, { webhook: { timeoutMs: 120_001 } }],
    [/maxConcurrentDeliveries: .*from 1 to 1000\./, { webhook: { maxConcurrentDeliveries: 0 } }],
    [/retry\.initialDelayMs: .*from 1 to 2147483647\./, { webhook: { retry: { initialDelayMs: 0 } } }],
    [/retry\.maxDelayMs: .*from 1 to 2147483647\./, { webhook: { retry: { maxDelayMs: 2 ** 31 } } }],
    [/retry\.giveUpAfterMs: .*from 0 to \d{16}\./, { webhook: { retry: { giveUpAfterMs: -1 } } }],
    [/^DATABASE_URL is not a URL/, {}, { DATABASE_URL: 'mysql://x/y' }],
    [/^FINALITY_DEPTH "0" is not a whole number/, {}, { FINALITY_DEPTH: '0' }],
  ] as [RegExp, object, Record<string, string>?][])
    it(`are refused: ${String(problem)}`, () => {
      expect(problemOf(file, settings)).to.match(problem);
    });

  it('have the keys in their URLs and headers treated as secrets, like the database password', () => {
    const key = '0123456789abcdef0123';
    const webhook = { headers: { Authorization: 'Bearer of-good-news' } };
    const registries = [{ network: 'localhost', address: ADDRESS, rpcUrl: `https://n.example/v3/${key}` }];
    const DATABASE_URL = 'postgres://postgres:pass-of-the-database@db.example/state';
    const { secrets } = load({ webhook, registries }, { DATABASE_URL });
    expect(secrets).to.include.members([key, 'Bearer of-good-news', 'pass-of-the-database']);
    expect(secrets).not.to.include('postgres');
  });
});
