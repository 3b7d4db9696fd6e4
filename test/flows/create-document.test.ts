import { expect } from 'chai';
import { tokenIdOf, validUntilOf } from '../../service/issuance/credential';
import { tokenIdAsUint256 } from '../helpers/token-id';
import { validateBillOfLading } from '../../service/validation/validate-bill-of-lading';
import { TitleEscrow__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { derive, verify } from '../helpers/credentials/derive-and-verify';
import { attachmentOf } from '../helpers/credentials/preparations';
import { readDocument } from '../helpers/pages/markdown';
import { type RunningService, startService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

describe('POST /create/{documentId}', () => {
  let local: LocalSetup;
  let service: RunningService;
  let owner: string;
  let holder: string;

  before(async () => {
    local = await createLocalSetup();
    service = await startService(local.settings);
    [owner, holder] = [await local.account(1), await local.account(2)];
  });

  const didDocument = async () =>
    (await (await fetch(`${service.url}/.well-known/did.json`)).json()) as Parameters<typeof verify>[1];

  it('answers with the fields of docs/specification.md in the same order', async () => {
    const { status, body } = await create(service.url, { ...minimal, owner, holder });
    expect(status).to.equal(200);
    const credential = body.signedW3CDocument;
    expect(Object.keys(body)).to.deep.equal(['signedW3CDocument', 'txHash']);
    expect(Object.keys(credential)).to.deep.equal([
      '@context',
      'type',
      'credentialStatus',
      'renderMethod',
      'credentialSubject',
      'validFrom',
      'validUntil',
      'issuer',
      'id',
      'proof',
    ]);
    expect(credential['@context']).to.deep.equal([
      'https://www.w3.org/ns/credentials/v2',
      'https://w3id.org/security/data-integrity/v2',
      'https://trustvc.io/context/transferable-records-context.json',
      'https://trustvc.io/context/render-method-context-v2.json',
      'https://trustvc.io/context/attachments-context.json',
      'https://localhost:3000/contexts/bill-of-lading-v1.json',
    ]);
    expect(credential.type).to.deep.equal(['VerifiableCredential']);
    expect(credential.id).to.match(
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(credential.credentialStatus).to.deep.equal({
      type: 'TransferableRecords',
      tokenNetwork: { chain: 'ETH', chainId: '31337' },
      tokenRegistry: local.registryAddress,
      tokenId: tokenIdOf(credential.id),
    });
    expect(credential.renderMethod).to.deep.equal([
      {
        id: 'https://generic-templates.tradetrust.io',
        type: 'EMBEDDED_RENDERER',
        templateName: 'BILL_OF_LADING',
      },
    ]);
    expect(credential.credentialSubject).to.deep.equal(minimal.credentialSubject);
    expect(credential.issuer).to.equal('did:web:localhost%3A3000');
    expect(credential.validFrom).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(credential.validUntil).to.equal(validUntilOf(new Date(credential.validFrom)).toISOString());
    const { created, proofValue, ...proof } = credential.proof;
    expect(created).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(proofValue).to.match(/^u/);
    expect(proof).to.deep.equal({
      type: 'DataIntegrityProof',
      cryptosuite: 'ecdsa-sd-2023',
      proofPurpose: 'assertionMethod',
      verificationMethod: 'did:web:localhost%3A3000#keys-1',
    });
  });

  it('answers with the members that docs/http-api.md shows', async () => {
    const shown = JSON.parse(
      readDocument('docs/http-api.md').code('A request and its answer', 'json'),
    ) as object;
    const { text } = await create(service.url, { ...minimal, owner, holder, remarks: 'shipped on board' });
    const membersOf = (json: string): string[] =>
      [...json.matchAll(/"([^"]+)":/g)].map(([, name = '']) => name);
    expect(membersOf(text)).to.deep.equal(membersOf(JSON.stringify(shown)));
  });

  it('mints the token to the named owner and holder before it answers', async () => {
    const { body } = await create(service.url, { ...minimal, owner, holder });
    const tokenId = tokenIdAsUint256(body.signedW3CDocument.credentialStatus.tokenId);
    const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, local.client);
    const escrow = TitleEscrow__factory.connect(await registry.ownerOf(tokenId), local.client);
    expect(await escrow.beneficiary()).to.equal(owner);
    expect(await escrow.holder()).to.equal(holder);
    expect(await escrow.remark()).to.equal('0x');
    expect((await local.client.getTransactionReceipt(body.txHash))?.status).to.equal(1);
  });

  it('accepts the document id in any case and addresses in lower case', async () => {
    const request = { ...minimal, owner: owner.toLowerCase(), holder: holder.toLowerCase() };
    const { status, body } = await create(service.url, request, { documentId: 'Bill_of_Lading' });
    expect(status).to.equal(200);
    expect(body.signedW3CDocument.renderMethod[0].templateName).to.equal('BILL_OF_LADING');
  });

  it('signs a Bill of Lading with a file of 5 MB attached, and a derived credential verifies', async () => {
    const credentialSubject = { ...minimal.credentialSubject, attachments: [attachmentOf(7)] };
    const { status, body } = await create(service.url, { credentialSubject, owner, holder });
    expect(status).to.equal(200);
    expect(body.signedW3CDocument.credentialSubject).to.deep.equal(credentialSubject);

    const derived = await derive(body.signedW3CDocument, ['/credentialSubject']);
    expect(derived.credentialSubject).to.deep.equal(credentialSubject);
    const result = await verify(derived, await didDocument());
    expect(result.error?.errors ?? []).to.deep.equal([]);
    expect(result.verified).to.equal(true);
  });

  it('signs subjects that break the strict rules for a Bill of Lading', async () => {
    for (const credentialSubject of [
      { type: ['BillOfLading'], vessel: 'x' },
      { id: 'urn:x:1', name: 'no type' },
    ]) {
      expect(await validateBillOfLading(credentialSubject)).not.to.deep.equal([]);
      const { status, body } = await create(service.url, { credentialSubject, owner, holder });
      expect(status).to.equal(200);
      expect(body.signedW3CDocument.credentialSubject).to.deep.equal(credentialSubject);
      expect(body.txHash).to.match(/^0x[0-9a-f]{64}$/);
    }
  });
});
