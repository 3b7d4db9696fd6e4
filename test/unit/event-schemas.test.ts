import { expect } from 'chai';
import {
  EVENT_SCHEMAS,
  OPERATIONAL_TYPES,
  operationalMembersOf,
  type ChainEvent,
  type OperationSuffix,
} from '../../client/event-schemas';
import * as ofPackage from '../../client/events';
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

describe('the package', () => {
  it('has the events for a subscriber, and none of the parts that the service shares', () => {
    const schemas = ['CHAIN_EVENT_TYPES', 'EVENT_SCHEMAS', 'OPERATIONAL_TYPES', 'isKnown', 'isOfChain'];
    const fold = ['historyOf', 'isPausedAfter', 'standing', 'tokenStateOf'];
    expect(Object.keys(ofPackage)).to.have.members([...schemas, ...fold]);
  });
});

describe('event schemas', () => {
  it('exist for each event type of docs/webhook-reference.md, for retractions and for test events', () => {
    const types = readDocument('docs/webhook-reference.md')
      .sections.filter(({ text }) => text.includes('\n| payload '))
      .map(({ heading }) => PREFIX + heading);
    expect(Object.keys(EVENT_SCHEMAS)).to.have.members([
      ...types,
      ...OPERATIONAL_TYPES,
      `${PREFIX}retracted`,
      `${PREFIX}test`,
    ]);
  });

  it('of operational events are those that docs/webhook-reference.md lists, with the members of data', () => {
    const section = readDocument('docs/webhook-reference.md').section('Operational events');
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

  const sample = sampleEvent(1);
  const { subject, ...withoutSubject } = sample;
  const { payload, tokenId } = sample.data;
  const paired = { transactionHash: retraction.data.retracted.transactionHash, logIndex: 0 };
  const halfByte = { payload: { account: ADDRESS, remark: '0x1' } };
  const refused: [event: unknown, problem: RegExp][] = [
    [{ ...sample, type: `${PREFIX}split` }, /no event type/],
    [withoutSubject, /required property 'subject'/],
    [{ ...sample, dataschema: 'x' }, /^(?!.*\/data).* additional properties/],
    [withData(sample, { extra: 1 }), /\/data must NOT have additional/],
    [withData(sample, { payload: { ...payload, extra: '0x' } }), /\/data\/payload must NOT have additional/],
    // A payload of another type.
    [{ ...sample, type: `${PREFIX}shred` }, /\/data\/payload must NOT/],
    [{ ...sample, id: 'x' }, /\/id must match/],
    [{ ...sample, time: '2026-11-21T08:15:53Z' }, /\/time must match/],
    [{ ...sample, time: '2026-13-21T08:15:53.000Z' }, /\/time must/],
    [withData(sample, { payload: { ...payload, toHolder: ADDRESS.toUpperCase() } }), /\/toHolder must match/],
    [withData(sample, { tokenId: `0${tokenId}` }), /tokenId must/],
    [withData(sample, { tokenIdHex: undefined }), /tokenIdHex/],
    [withData(registryEvent, { tokenIdHex: '0'.repeat(64) }), /additional/],
    [{ ...registryEvent, subject }, /\/subject must be equal/],
    [withData(sample, { logIndex: -1 }), /\/data\/logIndex must be >= 0/],
    [withData(registryEvent, halfByte), /remark/],
    // A retraction has no pair of its own.
    [withData(retraction, paired), /\/data must NOT have additional/],
    [withData(retraction, { retracts: undefined }), /'retracts'/],
    [{ ...testEvent, subject: '0' }, /additional properties/],
    [withData(testEvent, { subscription: 'default' }), /\/data\/subscr/],
    [withData(testEvent, { test: false }), /\/data\/test must be equal/],
  ];
  for (const [index, [event, problem]] of refused.entries())
    it(`refuse an event (${index}): ${String(problem)}`, () => {
      expect(schemaProblem(event)).to.match(problem);
    });

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
