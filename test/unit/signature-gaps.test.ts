import { expect } from 'chai';
import { credentialIdOf } from '../../service/issuance/credential';
import { derive } from '../helpers/credentials/derive-and-verify';
import { forgeProof } from '../helpers/credentials/forged-proof';
import type { Members } from '../helpers/credentials/random-subjects';
import {
  createUncheckedIssuer,
  credentialWith,
  ISSUER,
  unprotectedPointer,
  type UncheckedIssuer,
} from '../helpers/credentials/unchecked-issuer';

/** A failure means that a library was fixed: content that is refused because of it may be allowed again. */
describe('the unmodified cryptosuite', () => {
  let issuer: UncheckedIssuer;

  before(async () => {
    issuer = await createUncheckedIssuer();
  });

  /** Whether a changed derived credential verifies, with its own proof or with one rewritten to match. */
  async function isDeceived(subject: Members, change: (derived: Members) => void): Promise<boolean> {
    const derived = await derive(await issuer.sign(credentialWith(subject), new Date()), [
      '/credentialSubject',
      '/renderMethod',
    ]);
    const changed = structuredClone(derived) as unknown as Members;
    change(changed);
    const forged = await forgeProof(derived, changed, false);
    return (await issuer.verifies(changed)) || (forged !== undefined && (await issuer.verifies(forged)));
  }

  const bill = (members: Members): Members => ({ type: ['BillOfLading'], ...members });
  const unprotected: [what: string, before: Members, after: Members][] = [
    ['text after "_:"', { vessel: 'PO_:123' }, { vessel: 'PO_:999' }],
    ['an IRI after "_:"', { id: 'urn:x:_:1' }, { id: 'urn:x:_:2' }],
    ['the name of a blank node', { vessel: 'a <urn:bnid:1> b' }, { vessel: 'a _:1 b' }],
    ['a lone surrogate', { vessel: '\ud800' }, { vessel: '\udfff' }],
    [
      'an annotation',
      { vessel: { '@value': 'x', '@index': '1' } },
      { vessel: { '@value': 'x', '@index': '2' } },
    ],
    ['a value for no language', { vessel: { '@none': '1' } }, { vessel: { '@none': '2' } }],
    ['a JSON-LD keyword', { '@vocab': '1' }, { '@vocab': '2' }],
    [
      'a member that a context hides',
      { '@context': { i: '@index' }, vessel: { '@value': 'x', i: '1' } },
      { vessel: 'x' },
    ],
    ['an undefined IRI that is null', { vessel: 'x', 'paid:in-full': null }, { vessel: 'x' }],
    ['a number beyond 16 digits', { vessel: 0.30000000000000004 }, { vessel: 0.3 }],
    ['a small number', { vessel: 1e-7 }, { vessel: 0 }],
    ['the number of equal values', { links: ['x', 'x'] }, { links: 'x' }],
    ['the grouping of lists', { links: [['a', 'b'], ['c']] }, { links: [['a'], ['b', 'c']] }],
    [
      'the assignment of members to objects with the same id',
      {
        packages: [
          { id: 'urn:a', packagesWeight: '1' },
          { id: 'urn:a', packagesMeasurement: '2' },
        ],
      },
      { packages: [{ id: 'urn:a' }, { id: 'urn:a', packagesWeight: '1', packagesMeasurement: '2' }] },
    ],
    ['a __proto__ member', JSON.parse('{"__proto__":{"a":"1"}}') as Members, {}],
  ];
  for (const [what, before, after] of unprotected) {
    it(`does not protect ${what}, which issuing refuses`, async () => {
      const changed = bill(after);
      expect(await isDeceived(bill(before), (derived) => (derived.credentialSubject = changed))).to.equal(
        true,
      );
      expect(await unprotectedPointer(credentialWith(bill(before)))).to.match(/^\/credentialSubject\//);
    });
  }

  it("lets a subject's members move to an issuer with the same id, which issuing refuses", async () => {
    const subject = { id: ISSUER, description: 'in good standing' };
    const move = (derived: Members): void => {
      derived.issuer = { ...subject };
      derived.credentialSubject = { id: ISSUER };
    };
    expect(await isDeceived(subject, move)).to.equal(true);
    expect(await unprotectedPointer(credentialWith(subject))).to.equal('/credentialSubject/id');
  });

  it('does not protect the number of objects without an id; strict verification does', async () => {
    const subject = bill({ packages: [{ packagesWeight: '1' }] });
    const derived = await derive(await issuer.sign(credentialWith(subject), new Date()), [
      '/credentialSubject',
      '/renderMethod',
    ]);
    const changed = structuredClone(derived) as unknown as Members;
    (changed.credentialSubject as { packages: object[] }).packages.push({ packagesWeight: '1' });
    const forged = await forgeProof(derived, changed, true);
    expect(forged).to.have.nested.property('credentialSubject.packages.length', 2);
    expect(await issuer.verifies(forged!)).to.equal(true);
    expect(await issuer.verifies(forged!, true)).to.equal(false);
    expect(await issuer.verifies(derived, true)).to.equal(true);
  });

  it('signs no id that begins with `urn:bnid:_:`, a blank node to it (docs/decisions/0002)', async () => {
    const sign = (id: string) => issuer.sign({ ...credentialWith({ name: 'x' }), id }, new Date());
    expect(await sign(credentialIdOf('0192f3c8-5a00-7000-8000-000000000001'))).to.have.property('proof');
    const failure = await sign('urn:bnid:_:0192f3c8').then(String, (error: Error) => error.message);
    expect(failure).to.match(/N-Quads parse error/);
  });
});
