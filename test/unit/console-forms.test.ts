import { expect } from 'chai';
import {
  bytesOf,
  checkedPart,
  EMPTY_PACKAGE,
  fieldsOf,
  firstDraft,
  packagePointers,
  requestOf,
  type Draft,
} from '../../console/issuing/draft';
import { groupsOf, labelOf } from '../../console/issuing/term-groups';
import { EMPTY_SUBSCRIPTION, subscriptionRequestOf } from '../../console/subscriptions/subscription-draft';
import { BILL_OF_LADING } from '../../devnet/bill-of-lading';
import type { Facts } from '../../service/console/views';

const ACCOUNT = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';

const draftOn = (isLocal: boolean): Draft =>
  firstDraft({ network: { isLocal }, accounts: ['0x1', ACCOUNT] } as unknown as Facts);
const EMPTY = draftOn(false);

describe('form of a Bill of Lading in the console', () => {
  it('begins with the sample of the devnet on a local network, and empty elsewhere', () => {
    const { credentialSubject, owner, holder } = requestOf(draftOn(true));
    expect(credentialSubject).to.deep.equal(BILL_OF_LADING);
    expect([owner, holder]).to.deep.equal([ACCOUNT, ACCOUNT]);
    const nothing = { credentialSubject: { type: ['BillOfLading'] }, owner: '', holder: '', remarks: '' };
    expect(requestOf(EMPTY)).to.deep.equal(nothing);
  });

  it('leaves out what is empty, and points problems of a package to its row', () => {
    const full = { ...EMPTY_PACKAGE, packagesWeight: '1 kg' };
    const draft: Draft = {
      ...EMPTY,
      terms: { scac: 'SGPU', vessel: '' },
      packages: [EMPTY_PACKAGE, full],
      owner: ` ${ACCOUNT} `,
    };
    expect(requestOf(draft)).to.deep.equal({
      credentialSubject: { type: ['BillOfLading'], scac: 'SGPU', packages: [{ packagesWeight: '1 kg' }] },
      owner: ACCOUNT,
      holder: '',
      remarks: '',
    });
    expect(packagePointers(draft.packages)).to.deep.equal([undefined, '/credentialSubject/packages/0']);
    expect([...fieldsOf(['scac'], draft.packages)]).to.include.members([
      '/credentialSubject/scac',
      '/credentialSubject/packages/0/packagesWeight',
      '/owner',
    ]);
  });

  it('is checked without the data of its files, and files of the same data stay the same', () => {
    const file = (filename: string, data: string) => ({ filename, mimeType: 'text/plain', data });
    const attachments = [file('a', 'QQ=='), file('a', 'Qg=='), file('a', 'QQ==')];
    const { credentialSubject } = checkedPart({ ...EMPTY, attachments });
    const checked = (credentialSubject as { attachments: { data: string }[] }).attachments;
    expect(checked.map(({ data }) => data)).to.deep.equal(['MA==', 'MQ==', 'MA==']);
  });

  it('counts the bytes of the request', () => {
    const attachments = [{ filename: 'a', mimeType: 'text/plain', data: 'QUJD'.repeat(1000) }];
    const draft: Draft = { ...EMPTY, terms: { vessel: 'Ægir' }, attachments };
    expect(bytesOf(draft)).to.equal(Buffer.byteLength(JSON.stringify(requestOf(draft))));
  });

  it('groups the terms of the service, with new ones last', () => {
    const groups = groupsOf(['type', 'scac', 'vessel', 'newTerm', 'packages']);
    expect(groups.map(({ title, terms }) => [title, ...terms])).to.deep.equal([
      ['Document', 'scac'],
      ['Voyage', 'vessel'],
      ['Other terms', 'newTerm'],
    ]);
    expect(['newTerm', 'blNumber'].map(labelOf)).to.deep.equal(['New term', 'Bill of Lading number']);
  });
});

describe('form of a subscription in the console', () => {
  it('asks for all events if nothing is chosen', () => {
    const request = subscriptionRequestOf({ ...EMPTY_SUBSCRIPTION, sink: ' https://sink.example ' });
    const none = { standardWebhooks: false, retractions: false };
    expect(request).to.deep.equal({
      sink: 'https://sink.example',
      protocol: 'HTTP',
      config: { startFrom: 'now', contentType: 'application/json', ...none },
    });
  });

  it('has a filter for tokens, another for parties, and headers with a name', () => {
    const { filters, protocolsettings, config, types } = subscriptionRequestOf({
      ...EMPTY_SUBSCRIPTION,
      types: ['com.service.etr.minted'],
      tokens: '1\n 2,3\n\n',
      parties: ACCOUNT,
      startFrom: 'block',
      block: '12',
      headers: [
        { name: ' X-Key ', value: 'secret' },
        { name: '', value: 'nothing' },
      ],
    });
    expect(filters).to.deep.equal([{ tokens: ['1', '2', '3'] }, { parties: [ACCOUNT] }]);
    expect(protocolsettings).to.deep.equal({ headers: { 'X-Key': 'secret' } });
    expect(config?.startFrom).to.equal(12);
    expect(types).to.deep.equal(['com.service.etr.minted']);
  });
});
