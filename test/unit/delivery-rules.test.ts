import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../service/config/config';
import { subscriptionWith } from '../helpers/subscription-body';
import { temporaryFolder } from '../helpers/temporary-folder';

describe('the rules for deliveries', () => {
  const folder = temporaryFolder();

  const webhookOf = (options: object) => {
    const SERVICE_CONFIG = join(folder.path, 'service.config.json');
    const webhook = { url: 'https://subscriber.example/', ...options };
    const registries = [{ network: 'localhost', address: `0x${'5b'.repeat(20)}` }];
    writeFileSync(SERVICE_CONFIG, JSON.stringify({ webhook, registries }));
    const SIGNING_PRIVATE_KEY = Buffer.alloc(32, 7).toString('base64');
    const ENV_FILE = join(folder.path, 'none.env');
    return loadConfig({ ENV_FILE, SERVICE_CONFIG, SIGNING_PRIVATE_KEY, NET: '31337' }).registries[0]?.webhook;
  };
  const accepts = (act: () => unknown): boolean => {
    try {
      act();
      return true;
    } catch {
      return false;
    }
  };
  const inFile = (options: object): boolean => accepts(() => webhookOf(options));

  it('give subscriptions and service.config.json the same defaults', () => {
    const { timeoutMs, maxConcurrentDeliveries, retry } = subscriptionWith().config;
    expect(webhookOf({})).to.deep.include({ timeoutMs, maxConcurrentDeliveries, retry });
  });

  const SET_BY_SERVICE =
    'connection content-length content-type expect host keep-alive transfer-encoding upgrade user-agent ' +
    'webhook-id webhook-signature webhook-timestamp';
  const characters = Array.from({ length: 130 }, (_, code) => String.fromCharCode(code)).concat('\xff');
  const names = ['Authorization', 'x-tenant', '', ...characters.map((character) => `x${character}y`)];
  const own = [...SET_BY_SERVICE.split(' '), 'x-service-key-id', 'X-Service-Signature'];
  const headers = [
    ...[...own, ...names].map((name) => ({ [name]: 'a' })),
    ...['', 'a b', ...characters].map((value) => ({ 'x-key': value })),
  ];

  it('refuse the same headers in subscriptions and in service.config.json', () => {
    for (const given of headers) {
      const bySubscription = accepts(() => subscriptionWith({ protocolsettings: { headers: given } }));
      expect(bySubscription, JSON.stringify(given)).to.equal(inFile({ headers: given }));
    }
  });

  for (const options of [
    { timeoutMs: 0 },
    { timeoutMs: 120_000 },
    { timeoutMs: 120_001 },
    { maxConcurrentDeliveries: 0 },
    { maxConcurrentDeliveries: 1_000 },
    { maxConcurrentDeliveries: 1_001 },
    ...['initialDelayMs', 'maxDelayMs', 'giveUpAfterMs'].flatMap((name) =>
      [-1, 0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 53].map((value) => ({ retry: { [name]: value } })),
    ),
  ])
    it(`are the same for ${JSON.stringify(options)} in subscriptions and in service.config.json`, () => {
      expect(accepts(() => subscriptionWith({ config: options }))).to.equal(inFile(options));
    });
});
