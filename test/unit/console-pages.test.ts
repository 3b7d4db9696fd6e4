import { expect } from 'chai';
import { hrefOf, linkOf, PAGES, pagesOf, routeOf } from '../../console/frame/route';
import { problemOfRefusal, problemsByField, WHOLE_FORM, withRequired } from '../../console/issuing/draft';
import { plotOf, roundedUp } from '../../console/overview/plot-scale';
import type { RequestProblem } from '../../service/validation/problems';

describe("pages of the console's page", () => {
  it('reads a page, its event and its query from the hash', () => {
    for (const [hash, page, id, query] of [
      ['', 'overview', '', {}],
      ['#/nowhere', 'overview', '', {}],
      [
        '#/deliveries?state=dead&subscription=a%26b',
        'deliveries',
        '',
        { state: 'dead', subscription: 'a&b' },
      ],
      ['#/events/a%2Fb', 'events', 'a/b', {}],
      ['#/events/%', 'events', '%', {}],
      ['#/events', 'overview', '', {}],
    ] as const)
      expect(routeOf(hash), hash).to.deep.equal({ page, id, query });
  });

  it('shows a holder the pages of what the key may do, and others all', () => {
    const of = (may: ('read' | 'subscribe')[]) =>
      pagesOf({ role: 'holder', owner: 'name:1', expiresAt: 1, holder: { name: 'Bank', may } }).map(
        ({ name }) => name,
      );
    expect(of(['read'])).to.deep.equal(['token', 'deliveries']);
    expect(of(['read', 'subscribe'])).to.deep.equal(['token', 'deliveries', 'subscriptions']);
    expect(pagesOf({ role: 'reader', owner: 'reader', expiresAt: 1 })).to.deep.equal(PAGES);
  });

  it('writes a hash that it reads again', () => {
    const query = { id: '0x1', registry: '1:0xä&=?' };
    expect(routeOf(hrefOf('token', query)).query).to.deep.equal(query);
    expect(hrefOf('deliveries', { state: '', subscription: undefined })).to.equal('#/deliveries');
  });

  it('finds the token of a link that logs in once', () => {
    expect(linkOf('#link=abc_-1')).to.deep.equal({ token: 'abc_-1', href: '#/overview' });
    const token = { token: 'a.b', href: '#/token?id=1' };
    expect(linkOf('#link=a.b&to=token?id=1')).to.deep.equal(token);
    expect(linkOf('#/overview')).to.equal(undefined);
    expect(linkOf('#link=')).to.equal(undefined);
  });
});

describe("plots of the console's page", () => {
  it('scale samples to their size, and leave out those of another time', () => {
    const [before, ...shown] = [99, 0, 10, 20].map((value, at) => [50 + at * 50, value] as [number, number]);
    expect(plotOf([before ?? [0, 0], ...shown], 100, 200)).to.deep.equal({
      line: 'M0.0 100.0L150.0 50.0L300.0 0.0',
      area: 'M0.0 100.0L150.0 50.0L300.0 0.0L300.0 100L0.0 100Z',
      top: 20,
      latest: 20,
      greatest: 20,
    });
  });

  it('have nothing without samples, on the same axis', () => {
    expect(plotOf([], 0, 1)).to.deep.equal({ line: '', area: '', top: 4, latest: null, greatest: null });
    expect(plotOf([[1, Number.NaN]], 0, 1).line).to.equal('');
  });

  it('end their axis at a number that has a whole half', () => {
    expect([0, 4, 5, 11, 21, 41, 1001].map(roundedUp)).to.deep.equal([4, 4, 10, 20, 40, 100, 2000]);
  });
});

describe('problems of a document in the form', () => {
  const problem = (pointer: string): RequestProblem => ({
    pointer,
    code: 'X',
    message: pointer,
    isRefused: true,
  });

  it('stand beside the field of their pointer, or the nearest one around it', () => {
    const fields = new Set([
      '/owner',
      '/credentialSubject/scac',
      '/credentialSubject/packages',
      '/credentialSubject/packages/1/packagesWeight',
    ]);
    for (const [pointer, field] of Object.entries({
      '/owner': '/owner',
      '/credentialSubject/scac/0/x': '/credentialSubject/scac',
      '/credentialSubject/packages/1/packagesWeight': '/credentialSubject/packages/1/packagesWeight',
      '/credentialSubject/packages/10': '/credentialSubject/packages',
      '/credentialSubject/scacs': WHOLE_FORM,
      '': WHOLE_FORM,
    })) {
      const found = problemsByField([problem(pointer)], fields);
      expect(Object.fromEntries(found)).to.deep.equal({ [field]: [problem(pointer)] });
    }
    const several = ['/nowhere', '/owner', ''].map(problem);
    expect(problemsByField(several, fields).get(WHOLE_FORM)).to.deep.equal([several[0], several[2]]);
  });

  it('stop the form where a required term is missing, although the service would not', () => {
    const missing = {
      ...problem('/credentialSubject/scac'),
      code: 'REQUIRED_FIELD_MISSING',
      isRefused: false,
    };
    const other = { ...problem('/credentialSubject/vessel'), isRefused: false };
    expect(withRequired([missing, other]).map(({ isRefused }) => isRefused)).to.deep.equal([true, false]);
  });

  it('has the pointer with which the message of a refusal begins', () => {
    expect(problemOfRefusal('X', '/owner is missing.').pointer).to.equal('/owner');
    expect(problemOfRefusal('X', 'The service is busy.').pointer).to.equal(WHOLE_FORM);
  });
});
