import { expect } from 'chai';
import { createClient } from '../../client/create-client';
import { BILL_OF_LADING } from '../../devnet/bill-of-lading';
import { OPERATIONS } from '../../service/http/description/openapi';
import type { SignedCredential } from '../../service/issuance/sign';
import { DEPLOYER_KEY } from '../helpers/chain/local-setup';
import { create } from '../helpers/processes/create-call';
import {
  ADMIN_API_KEY,
  startSubscribedService,
  type SubscribedService,
} from '../helpers/processes/subscribed-service';
import { API_KEY } from '../helpers/processes/documents-call';

describe('the examples of the API description', () => {
  let api: SubscribedService;
  let credential: SignedCredential;

  before(async () => {
    api = await startSubscribedService('SQLite', { API_KEY, WALLET_PRIVATE_KEY: DEPLOYER_KEY });
    const [owner = ''] = api.local.accounts;
    const request = { credentialSubject: BILL_OF_LADING, owner, holder: owner };
    const created = await create(api.service.url, request, {
      headers: { Authorization: `Bearer ${API_KEY}` },
    });
    expect(created.status, created.text).to.equal(200);
    credential = created.body.signedW3CDocument;
  });
  after(() => api?.stop());

  /** The example with a sink, or a credential, that this test has: the proof of the example is cut short. */
  async function here(example: object): Promise<object> {
    if ('verifiableCredential' in example) return { ...example, verifiableCredential: credential };
    return 'sink' in example ? { ...example, sink: (await api.sink()).url } : example;
  }

  const bodies = OPERATIONS.flatMap(({ id, method, path, answers, access, body }) =>
    Object.entries(body?.examples ?? {}).map(([name, example]) => ({
      id,
      method,
      path,
      answers,
      access,
      name,
      example,
    })),
  );

  for (const { id, method, path, answers, access, name, example } of bodies)
    it(`get the described answer of ${id}: ${name}`, async () => {
      const { id: subscription } = await api.subscribe(await api.sink());
      const target = path.replace('{documentId}', 'BILL_OF_LADING').replace('{id}', subscription);
      const headers = { authorization: `Bearer ${access === 'admin' ? ADMIN_API_KEY : API_KEY}` };
      const answer = await api.call(method.toUpperCase(), target, await here(example), headers);
      expect(answer.message).to.equal('');
      expect(Object.keys(answers).map(Number)).to.include(answer.status);
    });

  it('work with the client that is made from it', async () => {
    const client = createClient({ url: api.service.url, apiKey: API_KEY, adminApiKey: ADMIN_API_KEY });
    const account = await api.local.account(1);
    const created = await client.POST('/create/{documentId}', {
      params: { path: { documentId: 'BILL_OF_LADING' }, header: { Prefer: 'respond-async' } },
      body: {
        owner: account,
        holder: account,
        credentialSubject: { type: ['BillOfLading'], scac: 'MAEU', blNumber: '1' },
      },
    });
    expect(created.response.status).to.equal(202);
    const tokenId = created.response.headers.get('Location')?.split('/').at(-1) ?? '';
    const listed = await client.GET('/documents', { params: { query: { limit: 10 } } });
    expect(listed.data?.map((one) => one.tokenId)).to.include(tokenId);
    const { data: subscriptions } = await client.GET('/subscriptions');
    expect(subscriptions?.[0]?.id).to.equal('default');
    const refused = await client.POST('/registries', { body: { network: 'none', address: '0x' } });
    expect(refused.response.status).to.equal(400);
    expect(refused.error?.error.message).to.match(/^\/network is not a known network/);
  });
});
