import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { signingKeyOf } from '../../service/base/signing-keys';
import { loadConfig } from '../../service/config/config';
import { createWebhookClient } from '../../service/delivery/attempt-delivery';
import { targetOf } from '../../service/subscriptions/manage-subscriptions';
import { definedBySettings } from '../../service/subscriptions/subscription';
import { secretMasker } from '../../service/base/mask-secrets';
import { serve } from '../helpers/http-server';
import { owned } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';

const signingKeys = { key: signingKeyOf(generateKeyPairSync('ed25519').privateKey), next: undefined };
const basic = (credentials: string): string => `Basic ${Buffer.from(credentials).toString('base64')}`;

describe('user and password in the URL of a webhook', () => {
  const folder = temporaryFolder();
  const SERVICE_CONFIG = join(folder.path, 'service.config.json');
  const SIGNING_PRIVATE_KEY = Buffer.alloc(32, 7).toString('base64');
  const load = (file: object, settings: Record<string, string> = {}): ReturnType<typeof loadConfig> => {
    writeFileSync(SERVICE_CONFIG, JSON.stringify(file));
    const ENV_FILE = join(folder.path, 'none.env');
    return loadConfig({ ENV_FILE, SERVICE_CONFIG, SIGNING_PRIVATE_KEY, NET: '31337', ...settings });
  };

  /** The requests of two deliveries to a server whose URL has these credentials. */
  async function postedWith(
    credentials: string,
    headers: Record<string, string> = {},
  ): Promise<Pick<IncomingMessage, 'url' | 'headers'>[]> {
    const requests: Pick<IncomingMessage, 'url' | 'headers'>[] = [];
    await using server = await serve((request, response) => {
      requests.push(request);
      response.writeHead(204).end();
    });
    const url = `${server.url.replace('//', `//${credentials}`)}/in?a=1`;
    const TOKEN_REGISTRY_ADDRESS = `0x${'5b'.repeat(20)}`;
    const { registries } = load({ webhook: { url, headers } }, { TOKEN_REGISTRY_ADDRESS });
    const webhook = registries[0]?.webhook;
    if (webhook === undefined) throw new Error('the settings have no webhook');
    const target = targetOf(definedBySettings(webhook, 'active'), signingKeys);
    await using client = owned('client', createWebhookClient(target, systemTime), 'close');
    for (const body of ['{}', '{"second": true}'])
      expect(await client.post(body, randomUUID())).to.deep.equal({ status: 204, retryAfter: undefined });
    return requests;
  }

  it('are decoded and sent as Basic authorization with every delivery', async () => {
    const requests = await postedWith('acme:p%40ss%20w%C3%B6rd@', { 'x-tenant': 'acme' });
    for (const { url, headers } of requests) {
      expect(url).to.equal('/in?a=1');
      expect(headers).to.include({ authorization: basic('acme:p@ss wörd'), 'x-tenant': 'acme' });
    }
    expect(requests).to.have.length(2);
  });

  it('are sent even if there is only a user; without either, no authorization is sent', async () => {
    expect((await postedWith('token-of-acme@'))[0]?.headers.authorization).to.equal(basic('token-of-acme:'));
    expect((await postedWith(''))[0]?.headers).not.to.have.property('authorization');
  });

  describe('in the settings', () => {
    it('are masked in every spelling, from every setting that has the URL', () => {
      const url = (name: string): string => `https://${name}-user:${name}%40pass@subscriber.example/in`;
      const address = `0x${'5b'.repeat(20)}`;
      const registries = [{ network: 'localhost', address, webhook: { url: url('registry') } }];
      const { secrets } = load(
        { webhook: { url: url('common') }, registries },
        { WEBHOOK_URL: url('environment') },
      );
      const mask = secretMasker(secrets);
      for (const name of ['registry', 'common', 'environment']) {
        const spellings = [url(name), `${name}-user`, `${name}@pass`, basic(`${name}-user:${name}@pass`)];
        expect(mask(spellings.join(' '))).to.equal('[secret] [secret] [secret] Basic [secret]');
      }
    });

    it('are refused together with an Authorization header', () => {
      const headers = { Authorization: 'Bearer of-good-news' };
      expect(() => load({ webhook: { headers } }, { WEBHOOK_URL: 'https://acme:pass@a.example/' })).to.throw(
        /^webhook\.headers\.authorization is set, and so are a user or a password in the webhook's URL.*leave one/,
      );
      expect(() => load({ webhook: { headers } }, { WEBHOOK_URL: 'https://a.example/' })).not.to.throw();
    });
  });
});
