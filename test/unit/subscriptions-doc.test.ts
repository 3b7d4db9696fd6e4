import { expect } from 'chai';
import { LONGEST_HEADER_NAME, LONGEST_HEADER_VALUE, MOST_HEADERS } from '../../service/base/delivery-options';
import { SMALL_BYTES } from '../../service/http/read-body';
import * as ofFilter from '../../service/subscriptions/filter-schema';
import { LONGEST_SINK, MOST_TYPES } from '../../service/subscriptions/subscription';
import { compileSelection } from '../../service/events/select-events';
import { codeBlocks, quoted, readDocument, tables } from '../helpers/pages/markdown';
import { ID, refusalOf, subscriptionWith } from '../helpers/subscription-body';

describe('docs/subscriptions.md', () => {
  const { sections, section, code } = readDocument('docs/subscriptions.md');

  it('has examples that are accepted', () => {
    const ofSubscriptions = sections.filter(({ heading }) => heading !== 'Fetching events');
    const examples = ofSubscriptions.flatMap((part) => codeBlocks(part, 'json'));
    expect(examples).to.have.length.greaterThan(4);
    for (const example of examples) {
      const subscription = subscriptionWith(JSON.parse(example) as object);
      expect(compileSelection(subscription)).to.be.a('function');
    }
  });

  it('shows the answer to its first request', () => {
    const request = code('A subscription', 'http').split('\n\n')[1] ?? '';
    const answer: unknown = JSON.parse(code('A subscription', 'json'));
    expect({ ...subscriptionWith(JSON.parse(request) as object), id: ID }).to.deep.equal(answer);
  });

  it('has the defaults', () => {
    const { config } = subscriptionWith();
    const flat: Record<string, unknown> = { ...config };
    delete flat.retry;
    for (const [name, value] of Object.entries(config.retry)) flat[`retry/${name}`] = value;
    const [rows = []] = tables(section('Options of the delivery'));
    const told = rows.map(([name = '', , value = '']) => [quoted(name)[0], quoted(value)[0]]);
    expect(Object.fromEntries(told)).to.deep.equal(
      Object.fromEntries(Object.entries(flat).map(([name, value]) => [name, String(value)])),
    );
  });

  it('has every member, and every dialect', () => {
    const [members = []] = tables(section('Members'));
    const names = members.flatMap(([name = '']) => quoted(name));
    expect(names).to.have.members(/write one of (.*)\./.exec(refusalOf({ none: 1 }))?.[1]?.split(', ') ?? []);
    const [dialects = []] = tables(section('Filters'));
    const refusal = refusalOf({ filters: [{ sql: '' }] });
    expect(dialects.flatMap(([name = '']) => quoted(name))).to.have.members(
      /Use one of (.*)\./.exec(refusal)?.[1]?.split(', ') ?? [],
    );
  });

  it('has the bounds', () => {
    const [rows = []] = tables(section('Bounds'));
    const told = rows.map(([, most = '']) => Number(/[\d,]+/.exec(most)?.[0].replaceAll(',', '')));
    const ofHeaders = [MOST_HEADERS, LONGEST_HEADER_NAME, LONGEST_HEADER_VALUE];
    const { DEEPEST_FILTER, MOST_FILTERS, MOST_ENTRIES, LONGEST_STRING } = ofFilter;
    const ofFilters = [DEEPEST_FILTER, MOST_FILTERS, MOST_ENTRIES, LONGEST_STRING];
    const ofDelivery = [120_000, 1_000, 2 ** 31 - 1, Number.MAX_SAFE_INTEGER];
    const ofMembers = [SMALL_BYTES / 1024, LONGEST_SINK, MOST_TYPES];
    expect(told).to.deep.equal([...ofMembers, ...ofHeaders, ...ofFilters, ...ofDelivery]);
  });

  it('has the codes of errors with their statuses', () => {
    const all = readDocument('docs/error-codes.md').sections.flatMap((part) => tables(part).flat());
    const statuses = new Map(
      all.flatMap(([codes = '', status = '']) => codes.split(', ').map((code) => [code, status.split(', ')])),
    );
    const [rows = []] = tables(section('Errors'));
    expect(rows).to.have.length.greaterThan(10);
    for (const [status, codes = ''] of rows)
      for (const code of codes.split(', ')) expect(statuses.get(code) ?? [], code).to.include(status);
  });

  it('has the errors that are thrown', () => {
    const [, rows = []] = tables(section('Errors'));
    const refusals = [
      refusalOf({ config: { foo: 1 } }),
      refusalOf({ sinkcredential: {} }),
      refusalOf({ filters: [{ sql: 'TRUE' }] }),
      refusalOf({ filters: [{ tokens: ['1'], parties: [] }] }),
      refusalOf({ types: ['minted'] }),
      refusalOf({ source: 'urn:service:1:0x3c44CdDdB6a900fa2b585dd299e03d12FA4293BC' }),
      refusalOf({ protocolsettings: { headers: { 'x-key': '***' } } }),
      refusalOf({ config: { state: 'gone' } }).replaceAll('`', ''),
    ];
    const told = rows.map(([message = '']) => quoted(message)[0] ?? '');
    expect(refusals.map((refusal, index) => refusal.slice(0, told[index]?.length))).to.deep.equal(told);
    expect(section('Errors').text).to.have.string(JSON.stringify({ error: { message: refusals[2] } }));
  });
});
