import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { showStates } from '../../cli/token/show-states';
import type { ChainEvent, ChainEventSuffix, Retraction } from '../../client/events';
import { historyOf, isPausedAfter, tokenStateOf, type TokenState } from '../../client/events';
import { sampleEvent, sampleRetraction, sampleTest } from '../helpers/receiver/signed-delivery';
import { temporaryFolder } from '../helpers/temporary-folder';

const account = (byte: string): string => `0x${byte.repeat(20)}`;
const [ALICE, BOB, CAROL, ESCROW] = [account('a1'), account('b0'), account('ca'), account('e5')];
const NOBODY = `0x${'00'.repeat(20)}`;

let number = 0;

/** An event of the sample token, with an id of its own. */
function event(suffix: ChainEventSuffix, payload: object): ChainEvent {
  const sample = sampleEvent(++number);
  const type = `com.service.etr.${suffix}`;
  const id = `event ${number}`;
  return { ...sample, type, id, data: { ...sample.data, payload } } as unknown as ChainEvent;
}

function retractionOf({ id }: ChainEvent): Retraction {
  const sample = sampleRetraction(++number);
  return { ...sample, data: { ...sample.data, retracts: id } };
}

const mint = (): ChainEvent[] => [
  event('escrow_created', { escrowAddress: ESCROW }),
  event('minted', { owner: ALICE, holder: BOB, escrowAddress: ESCROW }),
  event('beneficiary_transfer', { fromBeneficiary: NOBODY, toBeneficiary: ALICE }),
  event('holder_transfer', { fromHolder: NOBODY, toHolder: BOB }),
  event('token_received', { escrowAddress: ESCROW, beneficiary: ALICE, holder: BOB, isMinting: true }),
];
const MINTED: TokenState = {
  state: 'in escrow',
  escrow: ESCROW,
  beneficiary: ALICE,
  holder: BOB,
  nominee: null,
};

describe('the state that follows from the events of a token', () => {
  it('has the beneficiary, holder and nominee', () => {
    const nomination = event('nomination', { prevNominee: NOBODY, nominee: CAROL });
    const transfer = event('holder_transfer', { fromHolder: BOB, toHolder: CAROL });
    expect(tokenStateOf(mint())).to.deep.equal(MINTED);
    expect(tokenStateOf([...mint(), nomination, transfer])).to.deep.equal({
      ...MINTED,
      nominee: CAROL,
      holder: CAROL,
    });
  });

  it('has no nominee after a nomination of the zero address, also if there was none before', () => {
    const nominated = event('nomination', { prevNominee: NOBODY, nominee: CAROL });
    const cleared = event('nomination', { prevNominee: CAROL, nominee: NOBODY });
    const returned = event('nomination', { prevNominee: NOBODY, nominee: NOBODY });
    for (const history of [[nominated, cleared], [returned], [nominated, cleared, returned]])
      expect(tokenStateOf([...mint(), ...history])).to.deep.equal(MINTED);
  });

  it('says where the token is', () => {
    const history = [...mint(), event('surrendered', { tokenId: '1', escrowAddress: ESCROW })];
    expect(tokenStateOf(history).state).to.equal('returned to issuer');
    const restored = [...history, event('restored', { tokenId: '1', escrowAddress: ESCROW })];
    expect(tokenStateOf(restored).state).to.equal('in escrow');
    const burned = [
      ...history,
      event('beneficiary_transfer', { fromBeneficiary: ALICE, toBeneficiary: NOBODY }),
      event('holder_transfer', { fromHolder: BOB, toHolder: NOBODY }),
      event('shred', { remark: '0x' }),
      event('burned', { tokenId: '1' }),
    ];
    expect(tokenStateOf(burned)).to.include({ state: 'shredded', beneficiary: null, holder: null });
  });

  it('is that before the events that were retracted, in any order', () => {
    const minted = mint();
    const toHolder = (holder: string): ChainEvent => event('holder_transfer', { toHolder: holder });
    const [first, second] = [toHolder(CAROL), toHolder(ALICE)];
    const history = [...minted, first, second];
    // A repeated event counts where it came first.
    expect(tokenStateOf([...history, first]).holder).to.equal(ALICE);
    expect(tokenStateOf([...history, retractionOf(second)]).holder).to.equal(CAROL);
    expect(tokenStateOf([...history, retractionOf(second), retractionOf(first)])).to.deep.equal(MINTED);
    expect(tokenStateOf([...history, retractionOf(first)]).holder).to.equal(ALICE);
    expect(tokenStateOf([...minted, retractionOf(first), first])).to.deep.equal(MINTED);
    const unminted = [...minted, ...minted.map(retractionOf).reverse()];
    expect(tokenStateOf(unminted).state).to.equal('not minted');
  });

  it('counts an event again that comes under another id after its retraction', () => {
    const transfer = event('holder_transfer', { toHolder: CAROL });
    const again = { ...transfer, id: 'another' };
    const history = [...mint(), transfer, retractionOf(transfer), again];
    expect(tokenStateOf(history).holder).to.equal(CAROL);
    expect(tokenStateOf([...history, transfer]).holder).to.equal(CAROL);
    expect(tokenStateOf([...history, retractionOf(again)]).holder).to.equal(BOB);
  });
});

describe('the states that a file of events leads to', () => {
  const ofRegistry = (suffix: 'registry_paused' | 'registry_unpaused'): ChainEvent => {
    const { data, ...envelope } = event(suffix, { account: ALICE, remark: '0x' });
    const ofNoToken: Record<string, unknown> = { ...data, tokenId: '0' };
    delete ofNoToken.tokenIdHex;
    const id = sampleEvent(++number).id;
    return { ...envelope, id, data: ofNoToken, subject: '0' } as unknown as ChainEvent;
  };

  it('are one for each token, and one for a registry that was paused', async () => {
    const [transfer, paused] = [sampleEvent(++number), ofRegistry('registry_paused')];
    const file = join(temporaryFolder().path, 'events.jsonl');
    writeFileSync(file, [transfer, paused, sampleTest(1)].map((one) => JSON.stringify(one)).join('\n'));
    const { json, remarks } = await showStates(file);
    const { source, data } = transfer;
    const empty = { state: 'not minted', escrow: null, beneficiary: null, nominee: null };
    expect([json, remarks]).to.deep.equal([
      [
        { source, tokenId: data.tokenId, ...empty, holder: data.payload.toHolder },
        { source, isPaused: true },
      ],
      [],
    ]);
    expect(isPausedAfter([paused, retractionOf(paused)])).to.equal(false);
    expect(isPausedAfter([paused, ofRegistry('registry_unpaused')])).to.equal(false);
    expect(historyOf(sampleTest(1))).to.equal(undefined);
  });
});
