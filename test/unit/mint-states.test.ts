import { systemTime } from '../../service/base/time';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PendingTransaction, type Mint, type SignedMint } from '../../service/minting/mint';
import { MintStates, type MintState } from '../../service/minting/mint-states';
import { MintRecorder } from '../../service/minting/record-mints';
import { Nonces } from '../../service/minting/transaction-terms';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { createMemoryJournal } from '../helpers/database/memory-journal';
import { mintedBy } from '../helpers/database/prepared-documents';
import { newIssuance } from '../helpers/processes/running-mint-queue';

const WALLET = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';

const signed = (mint: Mint, nonce: number): SignedMint => {
  const { tokenId } = mint.issuance;
  const fees = { type: 0, gasPrice: 1n } as const;
  const one = { tokenId, hash: `0x${nonce}`, nonce, raw: '0x', from: WALLET, gasLimit: 1n, fees };
  const transaction = { ...one, mayBeTaken: false, wasSent: false };
  mint.transactions.push(transaction);
  return transaction;
};

/** The states of one mint, brought to the given state. */
class Scene {
  readonly states = new MintStates(new Nonces(systemTime), systemTime);
  readonly mint = this.states.add(newIssuance(), false);
  readonly pending = new PendingTransaction(this.mint, [signed(this.mint, 5)], 0);

  constructor(state: MintState) {
    const { states, mint, pending } = this;
    const ways: Record<MintState, () => void> = {
      preparing: () => undefined,
      waiting: () => states.wait(mint),
      deferred: () => states.defer(mint, 0),
      ready: () => states.ready(pending),
      sending: () => (states.ready(pending), states.takeReady()),
      pending: () => (states.ready(pending), states.takeReady(), states.pending(pending)),
      mined: () => states.mined(mint, mintedBy('0x01')),
      settled: () => states.settle(mint),
    };
    ways[state]();
    expect(states.stateOf(mint)).to.equal(state);
  }
}

/** Every transition, with the call that makes it. */
const MOVES: [MintState, MintState, (scene: Scene) => void][] = [
  ['preparing', 'waiting', ({ states, mint }) => states.wait(mint)],
  ['preparing', 'ready', ({ states, pending }) => states.ready(pending)],
  ['preparing', 'deferred', ({ states, mint }) => states.defer(mint, 60_000)],
  ['preparing', 'mined', ({ states, mint }) => states.mined(mint, mintedBy('0x01'))],
  ['preparing', 'settled', ({ states, mint }) => states.settle(mint)],
  ['waiting', 'preparing', ({ states, mint }) => expect(states.takeWaiting(1)).to.deep.equal([mint])],
  ['deferred', 'waiting', ({ states }) => states.resume()],
  ['deferred', 'settled', ({ states, mint }) => states.settle(mint)],
  ['deferred', 'ready', ({ states, pending }) => states.ready(pending)],
  ['deferred', 'mined', ({ states, mint }) => states.mined(mint, mintedBy('0x01'))],
  ['ready', 'sending', ({ states, pending }) => expect(states.takeReady()).to.equal(pending)],
  ['ready', 'waiting', ({ states, mint }) => states.wait(mint)],
  ['ready', 'deferred', ({ states, mint }) => states.defer(mint, 60_000)],
  ['ready', 'mined', ({ states, mint }) => states.mined(mint, mintedBy('0x01'))],
  ['sending', 'pending', ({ states, pending }) => states.pending(pending)],
  ['sending', 'ready', ({ states, pending }) => states.ready(pending)],
  ['sending', 'waiting', ({ states, mint }) => states.wait(mint)],
  ['sending', 'mined', ({ states, mint }) => states.mined(mint, mintedBy('0x01'))],
  ['pending', 'ready', ({ states, pending }) => states.ready(pending)],
  ['pending', 'waiting', ({ states, mint }) => states.wait(mint)],
  ['pending', 'mined', ({ states, mint }) => states.mined(mint, mintedBy('0x01'))],
  ['pending', 'settled', ({ states, mint }) => states.settle(mint)],
  ['pending', 'deferred', ({ states, mint }) => states.defer(mint, 60_000)],
  ['mined', 'settled', ({ states, mint }) => states.settle(mint)],
  ['mined', 'preparing', ({ states, mint }) => states.unmined(mint)],
];

describe('the state of a mint', () => {
  it('has exactly the transitions of the table in mint-states.ts', () => {
    const source = readFileSync(join(PROJECT_ROOT, 'service/minting/mint-states.ts'), 'utf8');
    const rows = [...source.matchAll(/^ \* \| (\w+) +\|[^|]+\| (\w+) +\|$/gm)].slice(1);
    expect(rows.map(([, from, to]) => `${from} → ${to}`)).to.deep.equal(
      MOVES.map(([from, to]) => `${from} → ${to}`),
    );
  });

  for (const [from, to, move] of MOVES)
    it(`changes from ${from} to ${to}`, () => {
      const scene = new Scene(from);
      move(scene);
      const { states, mint } = scene;
      expect(states.stateOf(mint)).to.equal(to);
      const holds = to === 'ready' || to === 'sending' || to === 'pending';
      expect(states.held()).to.have.length(holds ? 1 : 0);
      expect(states.allMined()).to.have.length(to === 'mined' ? 1 : 0);
      expect(states.takeWaiting(9)).to.deep.equal(to === 'waiting' ? [mint] : []);
    });

  it('does not change once it is settled', () => {
    const { states, mint, pending } = new Scene('settled');
    states.wait(mint);
    states.defer(mint, 0);
    states.ready(pending);
    states.pending(pending);
    states.mined(mint, mintedBy('0x01'));
    expect(states.stateOf(mint)).to.equal('settled');
    expect(states.held()).to.deep.equal([]);
    expect(states.allMined()).to.deep.equal([]);
  });

  it('stays mined when a node acknowledges or refuses one of its transactions late', () => {
    const { states, mint, pending } = new Scene('mined');
    states.pending(pending);
    states.ready(pending);
    states.wait(mint);
    states.defer(mint, 0);
    expect(states.stateOf(mint)).to.equal('mined');
    expect(states.allMined()).to.deep.equal([mint]);
    expect(states.held()).to.deep.equal([]);
    expect(states.takeWaiting(9)).to.deep.equal([]);
  });

  it('is waiting again when another mint takes its nonce', () => {
    const { states, mint } = new Scene('pending');
    const other = states.add(newIssuance(), false);
    states.ready(new PendingTransaction(other, [signed(other, 5)], 0));
    expect(states.held().map((held) => held.mint)).to.deep.equal([other]);
    expect(states.stateOf(mint)).to.equal('waiting');
  });

  it('is ready again if this wallet signed it and no other mint has its nonce, else waiting', () => {
    const { states, mint } = new Scene('preparing');
    states.sendAgain(mint, WALLET);
    expect(states.held().map(({ nonce }) => nonce)).to.deep.equal([5]);
    const other = states.add(newIssuance(), false);
    signed(other, 5);
    states.sendAgain(other, WALLET);
    expect(states.stateOf(other)).to.equal('waiting');
    const third = states.add(newIssuance(), false);
    signed(third, 6);
    states.sendAgain(third, '0x70997970C51812dc3A010C7d01b50e0d17dc79C8');
    expect(states.stateOf(third)).to.equal('waiting');
  });

  it('follows the order of adding while waiting, and the order of nonces when sending', () => {
    const states = new MintStates(new Nonces(systemTime), systemTime);
    const mints = Array.from({ length: 3 }, () => states.add(newIssuance(), false));
    for (const mint of [...mints].reverse()) states.wait(mint);
    expect(states.takeWaiting(9)).to.deep.equal(mints);
    for (const [index, mint] of mints.entries())
      states.ready(new PendingTransaction(mint, [signed(mint, 9 - index)], 0));
    expect([1, 2, 3].map(() => states.takeReady()?.nonce)).to.deep.equal([7, 8, 9]);
  });

  it('leads to an outcome, also once the mint is forgotten, and a new one if its block is gone', async () => {
    const { states, mint } = new Scene('mined');
    const { tokenId } = mint.issuance;
    mint.outcome.resolve('0x01');
    expect(await states.outcomeOf(tokenId)).to.equal('0x01');
    states.unmined(mint);
    expect(mint.mined).to.equal(undefined);
    mint.outcome.resolve('0x02');
    states.settle(mint);
    states.forget(mint);
    expect(states.find(tokenId)).to.equal(undefined);
    expect(await states.outcomeOf(tokenId)).to.equal('0x02');
  });

  it('leads to its transaction at once if an earlier run saw it mined', async () => {
    const states = new MintStates(new Nonces(systemTime), systemTime);
    const issuance = newIssuance();
    states.takeUp({ issuance, transactions: [], mined: mintedBy('0x01') }, WALLET);
    const outcome = Promise.race([states.outcomeOf(issuance.tokenId), Promise.resolve('pending')]);
    expect(await outcome).to.equal('0x01');
  });
});

describe('nonces that were assigned on another chain', () => {
  it('are told once to who assigns them anew, also after other parts noticed the chain first', async () => {
    const options = {
      time: systemTime,
      journal: createMemoryJournal(),
      stopping: new AbortController().signal,
    };
    const recorder = new MintRecorder(options as unknown as ConstructorParameters<typeof MintRecorder>[0]);
    expect(await recorder.enterChain('0xa')).to.equal(true);
    expect(await recorder.leavesOldNonces('0xa')).to.equal(false);
    // The part that follows mints asks, then the part that handles rejections.
    expect(await recorder.enterChain('0xb')).to.equal(false);
    expect(await recorder.enterChain('0xb')).to.equal(true);
    expect(await recorder.leavesOldNonces('0xb')).to.equal(true);
    expect(await recorder.leavesOldNonces('0xb')).to.equal(false);
  });
});
