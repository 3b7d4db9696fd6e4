import { expect } from 'chai';
import type { CloudEvent } from '../../service/events/cloud-event';
import { compileRules } from '../../service/events/select-events';

const REGISTRY = '0xd8058efe0198ae9dd7d563e1b4938dcbc86a1f81';
const HOLDER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
const HEX = '00000000000000000000000000000000000000000000000000000000000000ff';

const EVENT: CloudEvent = {
  specversion: '1.0',
  id: 'd945789d-9919-55b6-9321-59112e4e33b4',
  source: `urn:service:31337:${REGISTRY}`,
  type: 'com.service.etr.holder_transfer',
  datacontenttype: 'application/json',
  time: '2026-11-21T08:15:37.000Z',
  subject: '255',
  data: {
    chainKey: 'hardhat',
    chainId: 31337,
    registryAddress: REGISTRY,
    tokenId: '255',
    tokenIdHex: HEX,
    blockNumber: 8,
    transactionHash: `0x${'2a'.repeat(32)}`,
    logIndex: 0,
    payload: {
      fromHolder: HOLDER.toLowerCase(),
      toHolder: `0x${'ab'.repeat(20)}`,
      remark: `0x${'cd'.repeat(20)}`,
    },
  },
};

const REGISTRY_EVENT: CloudEvent = {
  ...EVENT,
  type: 'com.service.etr.registry_paused',
  subject: '0',
  data: { ...EVENT.data, tokenId: '0', payload: {} },
};
delete REGISTRY_EVENT.data.tokenIdHex;

/** A filter of any dialect, also on attributes that no event has. */
type Filters = readonly object[];

/** With the definition of a stored subscription. */
const selects = (selection: object, event = EVENT): boolean =>
  compileRules(
    JSON.stringify({ ...selection, config: { startFrom: 'beginning', retractions: false } }),
  ).wants(event);
const withPayload = (payload: object): CloudEvent =>
  ({ ...EVENT, data: { ...EVENT.data, payload } }) as unknown as CloudEvent;

const ofToken = (id: bigint): CloudEvent => ({
  ...EVENT,
  data: { ...EVENT.data, tokenId: String(id), tokenIdHex: id.toString(16).padStart(64, '0') },
});

const TYPE = 'com.service.etr.holder_transfer';
const [TRUE, FALSE] = [{ exact: { type: TYPE } }, { exact: { type: 'com.service.etr.minted' } }];
const OTHER = `0x${'11'.repeat(20)}`;
/** No event has these as attributes. */
const ABSENT = ['extension', 'data', 'toString', '__proto__'].map(
  (name) => JSON.parse(`{"${name}": "x"}`) as Record<string, string>,
);

const SELECTED: Filters = [
  {},
  { source: EVENT.source, types: ['com.service.etr.minted', TYPE] },
  { filters: [TRUE, { not: FALSE }] },
  ...[
    { exact: { type: TYPE, subject: '255', datacontenttype: 'application/json', specversion: '1.0' } },
    { prefix: { type: 'com.service.etr.', id: 'd945', time: EVENT.time } },
    { suffix: { type: '_transfer', source: REGISTRY } },
    { all: [TRUE, TRUE] },
    { any: [FALSE, FALSE, TRUE] },
    { not: { any: [FALSE, { all: [TRUE, FALSE] }] } },
    ...ABSENT.map((values) => ({ not: { exact: values } })),
    ...['255', '0255', '0xff', '0xFF', HEX, HEX.toUpperCase(), `0x${HEX}`].map((id) => ({
      tokens: ['7', id],
    })),
    { parties: [OTHER, HOLDER] },
    { parties: [HOLDER.toLowerCase()] },
  ].map((filter) => ({ filters: [filter] })),
];
const LEFT_OUT: Filters = [
  { source: EVENT.source.toUpperCase() },
  { types: ['com.service.etr.minted'] },
  { types: [] },
  { source: EVENT.source, types: [TYPE], filters: [TRUE, FALSE] },
  ...[
    { exact: { type: TYPE, subject: '25' } },
    { exact: { type: TYPE.toUpperCase() } },
    { exact: { Type: TYPE } },
    { prefix: { type: 'Com.service' } },
    { prefix: { type: 'service' } },
    { prefix: { type: TYPE, subject: '5' } },
    { suffix: { type: '_Transfer' } },
    { suffix: { type: 'holder' } },
    { all: [TRUE, TRUE, FALSE] },
    { any: [FALSE, FALSE] },
    { not: { any: [FALSE, TRUE] } },
    ...ABSENT.flatMap((values) => [{ exact: values }, { prefix: values }, { suffix: values }]),
    { tokens: ['25', '2550', '0'] },
    { parties: [OTHER] },
    { parties: [REGISTRY] },
    { parties: [EVENT.data.payload.remark] },
  ].map((filter) => ({ filters: [filter] })),
];

describe('selection of a subscription', () => {
  for (const [selections, isSelected] of [
    [SELECTED, true],
    [LEFT_OUT, false],
  ] as const)
    for (const selection of selections)
      it(`${isSelected ? 'has' : 'lacks'} the event: ${JSON.stringify(selection)}`, () => {
        expect(selects(selection)).to.equal(isSelected);
      });

  it('never has an event of the registry by its token id 0, which stands for none, or by a party', () => {
    expect(selects({ filters: [{ tokens: ['0'] }] }, REGISTRY_EVENT)).to.equal(false);
    expect(selects({ filters: [{ parties: [HOLDER] }] }, REGISTRY_EVENT)).to.equal(false);
    expect(selects({ filters: [{ tokens: ['0'] }] }, ofToken(0n))).to.equal(true);
  });

  it('has a token by all digits of its id', () => {
    const [id, next] = [2n ** 255n, 2n ** 255n + 1n];
    for (const written of [String(id), id.toString(16)]) {
      expect(selects({ filters: [{ tokens: [written] }] }, ofToken(id))).to.equal(true);
      expect(selects({ filters: [{ tokens: [written] }] }, ofToken(next))).to.equal(false);
    }
  });

  it('has an event whose payload has a party in any case, and nested in it', () => {
    for (const payload of [{ holder: HOLDER }, { owners: [{ account: HOLDER.toLowerCase() }], none: null }])
      expect(selects({ filters: [{ parties: [HOLDER] }] }, withPayload(payload))).to.equal(true);
  });
});
