import { expect } from 'chai';
import {
  EVENT_SCHEMAS,
  OPERATIONAL_TYPES,
  operationalMembersOf,
  type ChainEvent,
  type OperationSuffix,
} from '../../client/events';
import { toCloudEvent } from '../../service/events/cloud-event';
import { schemaProblem } from '../helpers/receiver/schema-problems';
import { sampleEvent, sampleRetraction, sampleTest } from '../helpers/receiver/signed-delivery';
import { codeBlocks, quoted, readDocument, tables } from '../helpers/pages/markdown';
import { eventIn, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';

const PREFIX = 'com.service.etr.';
const ADDRESS = `0x${'0a'.repeat(20)}`;

const registryEvent = toCloudEvent(
  eventIn(1, 0n, {
    type: 'registry_paused',
    tokenId: undefined,
    payload: { account: ADDRESS, remark: '0x' },
  }),
  SAMPLE_REGISTRY,
);

const [retraction, testEvent] = [sampleRetraction(1), sampleTest(1)];

/** The event with other members in its data; undefined removes one. */
const withData = (event: { data: object }, data: object): unknown =>
  JSON.parse(JSON.stringify({ ...event, data: { ...event.data, ...data } }));

describe('event schemas', () => {
  it('exist for each event type of docs/webhooks.md, for retractions and for test events', () => {
    const types = readDocument('docs/webhooks.md').sections.flatMap((section) =>
      codeBlocks(section, 'json').flatMap((text) => (JSON.parse(text) as { type?: string }).type ?? []),
    );
    expect(Object.keys(EVENT_SCHEMAS)).to.have.members([
      ...new Set([...types, ...OPERATIONAL_TYPES, `${PREFIX}retracted`, `${PREFIX}test`]),
    ]);
  });

  it('of operational events are those that docs/webhooks.md lists, with the members of data', () => {
    const section = readDocument('docs/webhooks.md').section('Operational events');
    const [rows = []] = tables(section);
    const listed = rows.map(([type = '', , members = '']) => [...quoted(type), ...quoted(members)]);
    const described = OPERATIONAL_TYPES.map((type) => type.slice(PREFIX.length)).map((type) => [
      type,
      ...operationalMembersOf(type.split('.')[1] as OperationSuffix).filter((name) => name !== 'since'),
    ]);
    const sorted = (all: string[][]) => all.map(([type, ...members]) => [type, ...members.sort()]).sort();
    expect(sorted(listed)).to.deep.equal(sorted(described));
    const [example = ''] = codeBlocks(section, 'json');
    expect(schemaProblem(JSON.parse(example))).to.equal(undefined);
  });

  it('accept events of tokens and of the registry, retractions and test events', () => {
    const { tokenIdHex, ...ofRegistry } = retraction.data;
    expect(tokenIdHex).to.have.length(64);
    const accepted = [
      sampleEvent(1),
      registryEvent,
      retraction,
      { ...retraction, subject: '0', data: { ...ofRegistry, tokenId: '0' } },
      testEvent,
    ];
    for (const event of accepted) expect(schemaProblem(event), JSON.stringify(event)).to.equal(undefined);
  });

  const { subject, ...withoutSubject } = sampleEvent(1);
  const { payload, tokenId } = sampleEvent(1).data;
  const refused: [what: string, event: unknown, problem: RegExp][] = [
    ['a type that does not exist', { ...sampleEvent(1), type: `${PREFIX}split` }, /no event type/],
    ['a token event without its subject', withoutSubject, /required property 'subject'/],
    ['another member of the envelope', { ...sampleEvent(1), dataschema: 'x' }, /additional properties/],
    ['another member of data', withData(sampleEvent(1), { extra: 1 }), /\/data must NOT have additional/],
    [
      'another member of the payload',
      withData(sampleEvent(1), { payload: { ...payload, extra: '0x' } }),
      /\/data\/payload must NOT have additional/,
    ],
    ['a payload of another type', { ...sampleEvent(1), type: `${PREFIX}shred` }, /\/data\/payload must NOT/],
    ['an id that is not a UUID', { ...sampleEvent(1), id: 'x' }, /\/id must match/],
    ['a time without milliseconds', { ...sampleEvent(1), time: '2026-11-21T08:15:53Z' }, /\/time must match/],
    ['a time that does not exist', { ...sampleEvent(1), time: '2026-13-21T08:15:53.000Z' }, /\/time must/],
    [
      'an address in mixed case',
      withData(sampleEvent(1), { payload: { ...payload, toHolder: ADDRESS.toUpperCase() } }),
      /\/data\/payload\/toHolder must match/,
    ],
    ['a token id with a leading zero', withData(sampleEvent(1), { tokenId: `0${tokenId}` }), /tokenId must/],
    ['a token event without tokenIdHex', withData(sampleEvent(1), { tokenIdHex: undefined }), /tokenIdHex/],
    [
      'a registry event with tokenIdHex',
      withData(registryEvent, { tokenIdHex: '0'.repeat(64) }),
      /additional/,
    ],
    ['a registry event with a subject of its own', { ...registryEvent, subject }, /\/subject must be equal/],
    ['a negative logIndex', withData(sampleEvent(1), { logIndex: -1 }), /\/data\/logIndex must be >= 0/],
    [
      'a remark of half a byte',
      withData(registryEvent, { payload: { account: ADDRESS, remark: '0x1' } }),
      /remark/,
    ],
    [
      'a retraction that has the pair of an event',
      withData(retraction, { transactionHash: retraction.data.retracted.transactionHash, logIndex: 0 }),
      /\/data must NOT have additional/,
    ],
    ['a retraction of nothing', withData(retraction, { retracts: undefined }), /'retracts'/],
    ['a test event that has a subject', { ...testEvent, subject: '0' }, /additional properties/],
    ['a test event of no subscription', withData(testEvent, { subscription: 'default' }), /\/data\/subscr/],
    ['a test event that is not marked', withData(testEvent, { test: false }), /\/data\/test must be equal/],
  ];
  for (const [what, event, problem] of refused)
    it(`refuse ${what}`, () => expect(schemaProblem(event)).to.match(problem));

  it('give the TypeScript types of the events', () => {
    const paused = registryEvent as ChainEvent;
    if (paused.type !== 'com.service.etr.registry_paused') throw new Error(paused.type);
    // Each line is an error if the type of its member is not this.
    const account: string = paused.data.payload.account;
    const zero: '0' = paused.data.tokenId;
    const subscription: string = testEvent.data.subscription;
    // @ts-expect-error: an event of the registry has no token.
    const none: unknown = paused.data.tokenIdHex;
    // @ts-expect-error: a retraction has no pair.
    const noPair: unknown = retraction.data.transactionHash;
    expect([account, zero, subscription, none, noPair]).to.deep.equal([
      ADDRESS,
      '0',
      testEvent.data.subscription,
      undefined,
      undefined,
    ]);
  });
});
