import { expect } from 'chai';
import { RequestError } from '../../service/base/errors';
import { parseCreateRequest } from '../../service/issuance/create-request';

const ACCOUNT = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const ZERO = `0x${'0'.repeat(40)}`;
const GIVE = 'Give the address of an account: 0x and 40 hexadecimal digits.';
const CONTENT = 'Give the content to sign.';
const KNOWN =
  'is not a member of the request. Leave it out, or write one of credentialSubject, owner, holder, remarks.';

describe('the body of POST /create', () => {
  const right = { credentialSubject: {}, owner: ACCOUNT, holder: ACCOUNT.toLowerCase() };

  const parsed = (body: object) => parseCreateRequest(Buffer.from(JSON.stringify(body)));

  it('has its addresses with checksums, and no remarks if they are null', () => {
    const { owner, holder, remarks } = parsed({ ...right, remarks: null });
    expect([owner, holder, remarks]).to.deep.equal([ACCOUNT, ACCOUNT, undefined]);
  });

  const refused: [changed: object, message: string][] = [
    [{ owner: undefined }, `/owner must be a string, but it is missing. ${GIVE}`],
    [{ owner: 7 }, `/owner must be a string, but it is a number. ${GIVE}`],
    [{ owner: null }, `/owner must be a string, but it is null. ${GIVE}`],
    [{ owner: 'Alice' }, `/owner is not an address. ${GIVE}`],
    [{ owner: ACCOUNT.slice(2) }, `/owner is not an address. ${GIVE}`],
    [
      { owner: ACCOUNT.replace('C51', 'c51') },
      '/owner has a wrong checksum. Check for a typing error, or write the address in lower case.',
    ],
    [{ owner: ZERO }, `/owner is the zero address, from which nobody could move the token. ${GIVE}`],
    [{ holder: undefined }, `/holder must be a string, but it is missing. ${GIVE}`],
    [{ holder: {} }, `/holder must be a string, but it is an object. ${GIVE}`],
    [{ holder: ZERO }, `/holder is the zero address, from which nobody could move the token. ${GIVE}`],
    [{ credentialSubject: undefined }, `/credentialSubject must be an object, but it is missing. ${CONTENT}`],
    [{ credentialSubject: 'x' }, `/credentialSubject must be an object, but it is a string. ${CONTENT}`],
    [{ credentialSubject: [{}] }, `/credentialSubject must be an object, but it is an array. ${CONTENT}`],
    [{ remarks: 12 }, '/remarks must be a string, but it is a number. Give a text, or leave it out.'],
    [{ remark: 'shipped' }, `/remark ${KNOWN}`],
    // The misspelt member, rather than the missing one.
    [{ owner: undefined, Owner: ACCOUNT }, `/Owner ${KNOWN}`],
    [{ 'a/b~c': 1 }, `/a~1b~0c ${KNOWN}`],
    [{ ['n'.repeat(20_000)]: 1 }, `/${'n'.repeat(128)}…${'n'.repeat(127)} ${KNOWN}`],
  ];
  for (const [changed, message] of refused)
    it(`is refused with a remedy: ${message.slice(0, 80)}`, () => {
      expect(() => parsed({ ...right, ...changed }))
        .to.throw(RequestError)
        .that.includes({ code: 'REQUEST_FIELD_INVALID', message });
    });
});
