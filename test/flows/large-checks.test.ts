import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { bodyWith } from '../helpers/credentials/preparations';
import { callService, type ApiAnswer } from '../helpers/processes/create-call';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import { createLocalSetup } from '../helpers/chain/local-setup';

const API_KEY = 'the-key-of-the-carrier-0123456789';
const LIMIT_BYTES = 50 * 1024 * 1024;
const DISCLOSE_ALL = ',"options":{"selectivePointers":[""]}}';

interface Credential {
  credentialSubject: { vessel: string; attachments: [{ data: string }] };
}

describe('checks of the largest documents', () => {
  let service: ServiceProcess;

  before(async () => {
    // The check of a credential finds the issuer at the port of the service.
    const port = String(await freePort(0));
    const local = await createLocalSetup({ domain: `localhost:${port}` });
    service = await startServiceProcess({ ...local.settings, PORT: port, API_KEY });
  });

  const post = <Body>(path: string, body: string): Promise<ApiAnswer<Body>> =>
    callService('POST', service.url + path, body, { authorization: `Bearer ${API_KEY}` });

  it('verify and derive a document of 50 MB with a character beyond Latin 1, as it was issued', async () => {
    // A line end is two characters in JSON.
    const line = 'freight prepaid, shipped on board\n';
    const lines = `中${line.repeat((LIMIT_BYTES - 1_000) / (line.length + 1))}`;
    const attachments = [{ data: lines, filename: 'a.txt', mimeType: 'text/plain' }];
    const body = bodyWith({ vessel: '长荣', attachments });
    expect(Buffer.byteLength(body)).to.be.within(LIMIT_BYTES - 1_000, LIMIT_BYTES);
    const issued = await post<{ signedW3CDocument: Credential }>('/create/BILL_OF_LADING', body);
    expect([issued.status, issued.code]).to.deep.equal([200, null]);
    const isWhole = ({ credentialSubject: { vessel, attachments } }: Credential): boolean =>
      vessel === '长荣' && attachments[0].data === lines;
    const asked = `{"verifiableCredential":${JSON.stringify(issued.body)}`;
    const verified = await post<{ verified: boolean; shown: Credential }>('/credentials/verify', `${asked}}`);
    expect([verified.status, verified.body.verified]).to.deep.equal([200, true]);
    expect(isWhole(verified.body.shown)).to.equal(true);
    const derived = await post<{ verifiableCredential: Credential }>(
      '/credentials/derive',
      asked + DISCLOSE_ALL,
    );
    expect(derived.status).to.equal(201);
    expect(isWhole(derived.body.verifiableCredential)).to.equal(true);
  });

  it('give no verdict on what no library can read, and go on', async () => {
    const small = await post<object>('/create/BILL_OF_LADING', bodyWith({ vessel: 'x' }));
    const { signedW3CDocument } = small.body as { signedW3CDocument: Credential };
    // One byte of JSON, and six characters of the statement that would be signed.
    const hostile = { ...signedW3CDocument.credentialSubject, vessel: `中${'\u007f'.repeat(45_000_000)}` };
    const asked = (credentialSubject: object): string =>
      `{"verifiableCredential":${JSON.stringify({ ...signedW3CDocument, credentialSubject })}`;
    const { body } = await post<{ outcome: string }>('/credentials/verify', `${asked(hostile)}}`);
    expect(body.outcome).to.equal('could not tell');
    const issuer = `did:web:${'a:'.repeat(10_000_000)}`;
    const named = JSON.stringify({ verifiableCredential: { ...signedW3CDocument, issuer } });
    const refused = await post('/credentials/verify', named);
    expect([refused.status, refused.code]).to.deep.equal([400, 'CREDENTIAL_INVALID']);
    expect(refused.message).to.match(/^\/issuer is a name of more than 2048 characters/);
    const next = await post('/credentials/derive', asked(signedW3CDocument.credentialSubject) + DISCLOSE_ALL);
    expect(next.status).to.equal(201);
  });
});
