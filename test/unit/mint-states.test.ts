import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import pino from 'pino';
import { keccak256, Wallet } from 'ethers';
import { ChainError } from '../../service/base/errors';
import { createLifecycle } from '../../service/base/lifecycle';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { systemTime } from '../../service/base/time';
import { findNetwork } from '../../service/chain/networks';
import {
  issuanceStateOf,
  newMint,
  step,
  type Mint,
  type MintQueueOptions,
  type MintState,
  type Observation,
  type SignedMint,
} from '../../service/minting/mint';
import { QueuedMints, type QueuedMint } from '../../service/minting/queued-mints';
import { createMintSending } from '../../service/minting/send-mints';
import { chainOf } from '../helpers/chain/fake-nodes';
import { DEPLOYER_KEY } from '../helpers/chain/local-setup';
import { createMemoryJournal } from '../helpers/database/memory-journal';
import { mintedBy } from '../helpers/database/prepared-documents';
import { newIssuance } from '../helpers/processes/running-mint-queue';
import { traced } from '../helpers/traced';

const WALLET = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const OTHER_WALLET = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const MINED = mintedBy('0x01');
const ERROR = new ChainError('MINT_REVERTED', 'It reverted.');

const signed = (nonce: number, members: Partial<SignedMint> = {}): SignedMint => ({
  tokenId: '',
  hash: `0x${nonce}`,
  nonce,
  raw: '0x',
  signedAt: 0,
  from: WALLET,
  gasLimit: 1n,
  fees: { type: 0, gasPrice: 1n },
  reach: 'none',
  ...members,
});

const sendable = { saw: 'sendable', from: WALLET, nonce: 5, at: 0 } as const;
const token = { saw: 'token', mined: MINED, isFinal: false } as const;
const failure = { saw: 'failure', error: ERROR } as const;
const obstacle = { saw: 'obstacle', until: 60_000 } as const;
const refused = {
  saw: 'refused',
  refusal: 'other',
  attempts: 1,
  reach: 'refused',
  pending: 5,
  floor: 5,
  isChainShorter: false,
  pendingHolder: 'being sent',
  error: ERROR,
  until: 60_000,
} as const;

/** A mint with one transaction, after these observations. */
function seen(...observations: Observation[]): Mint {
  let mint: Mint = { ...newMint(newIssuance()), transactions: [signed(5)] };
  for (const observation of observations) mint = step(mint, observation).mint;
  return mint;
}

/** The observations that bring a new mint to a state. */
const WAYS: Record<MintState['name'], Observation[]> = {
  waiting: [],
  ready: [sendable],
  sending: [sendable, { saw: 'sent', at: 0 }],
  pending: [sendable, { saw: 'sent', at: 0 }, { saw: 'taken', hash: '0x5' }],
  mined: [token],
  settled: [failure],
};

/** Every transition, with the observation that makes it. */
const MOVES: [MintState['name'], MintState['name'], Observation][] = [
  ['waiting', 'ready', sendable],
  ['waiting', 'waiting', obstacle],
  ['waiting', 'mined', token],
  ['waiting', 'settled', failure],
  ['ready', 'sending', { saw: 'sent', at: 1 }],
  ['ready', 'waiting', { saw: 'no nonce' }],
  ['ready', 'waiting', { saw: 'no way', error: ERROR, until: 60_000 }],
  ['ready', 'mined', token],
  ['sending', 'pending', { saw: 'open' }],
  ['sending', 'ready', { saw: 'unsent' }],
  ['sending', 'waiting', { saw: 'no nonce' }],
  ['sending', 'mined', token],
  ['pending', 'ready', { saw: 'unsent' }],
  ['pending', 'waiting', { saw: 'out of gas' }],
  ['pending', 'waiting', obstacle],
  ['pending', 'mined', token],
  ['pending', 'settled', failure],
  ['mined', 'settled', { saw: 'final block' }],
  ['mined', 'waiting', { saw: 'block gone' }],
];

describe('the state of a mint', () => {
  it('has exactly the transitions of the table in mint.ts', () => {
    const source = readFileSync(join(PROJECT_ROOT, 'service/minting/mint.ts'), 'utf8');
    const rows = [...source.matchAll(/^ \* \| (\w+) +\|[^|]+\| (\w+) +\|$/gm)].slice(1);
    expect(rows.map(([, from, to]) => `${from} → ${to}`)).to.deep.equal(
      MOVES.map(([from, to]) => `${from} → ${to}`),
    );
  });

  for (const [from, to, observation] of MOVES)
    it(`changes from ${from} to ${to} by "${observation.saw}"`, () => {
      const before = seen(...WAYS[from]);
      expect(before.state.name).to.equal(from);
      expect(step(before, observation).mint.state.name).to.equal(to);
    });

  it('does not change once it is settled, and does only with its token and block once it is mined', () => {
    const late: Observation[] = [
      { saw: 'no nonce' },
      { saw: 'unsent' },
      { saw: 'open' },
      { saw: 'taken', hash: '0x5' },
      { saw: 'another chain' },
      obstacle,
      sendable,
      refused,
      failure,
    ];
    for (const observation of late) {
      const [settled, mined] = [seen(failure), seen(...WAYS.pending, token)];
      expect(step(settled, observation)).to.deep.equal({ mint: settled });
      expect(step(mined, observation)).to.deep.equal({ mint: mined });
    }
    for (const observation of [token, { saw: 'block gone' }, { saw: 'final block' }] as const) {
      const settled = seen(failure);
      expect(step(settled, observation)).to.deep.equal({ mint: settled });
    }
  });

  it('is written to the journal when it is mined, its block is gone or another, or it failed', () => {
    const another = { ...token, mined: { ...MINED, block: { number: 9, hash: '0x09' } } };
    for (const [way, observation, change] of [
      [WAYS.pending, token, 'mined'],
      [WAYS.pending, { ...token, isFinal: true }, 'final'],
      [WAYS.mined, another, 'mined'],
      [WAYS.mined, { saw: 'block gone' }, 'submitted'],
      [WAYS.pending, failure, 'failed'],
    ] as [Observation[], Observation, unknown][]) {
      const { mint, command } = step(seen(...way), observation);
      expect([command, issuanceStateOf(mint)]).to.deep.equal(['record', change]);
    }
    expect(step(seen(token), token)).to.not.have.property('command');
  });

  it('keeps the time when its block or its nonce was first missing, until its block is there', () => {
    const missing = seen(token, { saw: 'no block', at: 7 }, { saw: 'no block', at: 9 });
    expect(missing.state).to.have.property('goneSince', 7);
    expect(step(missing, { saw: 'block there' }).mint.state).not.to.have.property('goneSince');
    const used = seen(...WAYS.pending, { saw: 'no token', at: 7 }, { saw: 'no token', at: 9 });
    expect(used.state).to.have.property('missingSince', 7);
  });

  it('counts a transaction as possible from when it is sent, and its attempts until a node has it', () => {
    const [sent] = seen(...WAYS.sending).transactions;
    expect(sent?.reach).to.equal('possible');
    expect(seen(...WAYS.sending, { saw: 'denied', hash: '0x5' }).transactions[0]?.reach).to.equal('refused');
    const rejected = seen(...WAYS.sending, { saw: 'unsent' }, refused);
    expect([rejected.transactions[0]?.reach, rejected.state.name]).to.deep.equal(['refused', 'ready']);
    expect(rejected.state).to.have.property('attempts', 1);
    const mayHaveIt = seen(...WAYS.sending, { saw: 'unsent' }, { ...refused, reach: 'possible' });
    expect(mayHaveIt.state.name).to.equal('pending');
    const open = seen(...WAYS.sending, { saw: 'open' }, { saw: 'open' });
    expect(open.state).to.include({ name: 'pending', attempts: 2 });
    const taken = seen(...WAYS.sending, { saw: 'open' }, { saw: 'unsent' }, { saw: 'sent', at: 1 });
    expect(step(taken, { saw: 'taken', hash: '0x5' }).mint.state).to.include({
      name: 'pending',
      attempts: 0,
    });
    expect(seen(...WAYS.sending, { saw: 'taken', hash: '0x4' }).state.name).to.equal('sending');
  });

  it('stays as it is when it is replaced, and is pending once a node has any of its versions', () => {
    const replaced: Observation[] = [
      { saw: 'signed', transaction: { ...signed(5), hash: '0x55' } },
      { saw: 'replaced', at: 7 },
    ];
    for (const name of ['ready', 'sending', 'pending'] as const) {
      const { state, transactions } = seen(...WAYS[name], ...replaced);
      expect(state).to.include({ name, replacements: 1, sentAt: 7 });
      expect(transactions.at(-1)).to.include({ hash: '0x55', reach: 'possible' });
    }
    const former = seen(...WAYS.sending, ...replaced, { saw: 'taken', hash: '0x5' });
    expect(former.state.name).to.equal('pending');
  });

  it('counts the same refusals in a row, and fails with the one that is not believed to pass', () => {
    let mint = seen(...WAYS.ready);
    for (let times = 1; times < 5; times++) {
      const { mint: next, command } = step(mint, refused);
      expect([next.state.name, command]).to.deep.equal(['ready', 'send again later']);
      mint = next;
    }
    const busy = step(mint, { ...refused, refusal: 'busy' }).mint;
    expect(step(busy, refused).command).to.equal('send again later');
    const { mint: refusedLast, command } = step(mint, refused);
    expect([refusedLast.state, refusedLast.refusal, command]).to.deep.equal([
      { name: 'waiting', until: 60_000 },
      ERROR,
      'give up',
    ]);
  });

  it('is watched while a node may have any of its versions, and else signed anew', () => {
    const used = { ...refused, refusal: 'nonce too low', pending: 6, attempts: 2 } as const;
    const unsent: Observation[] = [...WAYS.pending, { saw: 'unsent' }];
    const newer: Observation = { saw: 'signed', transaction: { ...signed(5), hash: '0x55' } };
    const ofOther = signed(5, { from: OTHER_WALLET, reach: 'possible' });
    const others: Observation = { saw: 'signed', transaction: ofOther };
    for (const [way, reach, remedy, name] of [
      [unsent, 'possible', 'watch', 'pending'],
      [[...unsent, newer], 'refused', 'watch', 'pending'],
      [[sendable], 'refused', 'sign anew', 'waiting'],
      [[sendable, others, newer], 'refused', 'sign anew', 'waiting'],
    ] as [Observation[], SignedMint['reach'], string, string][]) {
      const { mint, command } = step(seen(...way), { ...used, reach });
      expect([command, mint.state.name]).to.deep.equal([remedy, name]);
    }
  });

  it('is estimated again twice', () => {
    const gas = { ...refused, refusal: 'gas' } as const;
    const commands = [[], [sendable, gas], [sendable, gas, sendable, gas]].map(
      (before) => step(seen(...before, sendable), gas).command,
    );
    expect(commands).to.deep.equal(['estimate again', 'estimate again', 'give up']);
  });

  it('has its hash once it was made, and no refusal once a node has a transaction of it', () => {
    for (const isFinal of [false, true])
      expect(seen({ ...token, isFinal }).issuance.txHash).to.equal(MINED.txHash);
    const given = seen(sendable, { saw: 'no way', error: ERROR, until: 1 }, { saw: 'no funds' }, sendable);
    const taken = step(given, { saw: 'taken', hash: '0x5' }).mint;
    expect(taken).to.include({ refusal: undefined, isUnfunded: false });
    expect(taken.state.name, 'it is not sent').to.equal('ready');
  });

  it('leaves no transaction that a node may have once the chain is another one', () => {
    const { state, transactions } = seen(...WAYS.pending, { saw: 'another chain' });
    expect([state.name, transactions.map(({ reach }) => reach)]).to.deep.equal(['waiting', ['none']]);
  });
});

describe('the mints of a queue', () => {
  const options = (): MintQueueOptions =>
    ({
      time: systemTime,
      network: findNetwork('31337'),
      confirmations: 1,
      wallet: { address: WALLET },
      logger: pino({ level: 'silent' }),
      journal: createMemoryJournal(),
    }) as unknown as MintQueueOptions;
  let mints: QueuedMints;
  /** Adds a mint whose transaction has this nonce. */
  const added = (nonce: number, from = WALLET): QueuedMint => {
    const queued = mints.add(newMint(newIssuance()));
    mints.observe(queued, { saw: 'signed', transaction: signed(nonce, { from }) });
    return queued;
  };

  const waiting = (): QueuedMint[] => mints.waiting().map(({ queued }) => queued);

  beforeEach(() => {
    mints = new QueuedMints(options(), new AbortController().signal);
  });

  it('share no nonce: one is waiting again when another takes its nonce', () => {
    const [mint, other] = [added(5), added(5)];
    mints.observe(mint, sendable);
    mints.observe(other, sendable);
    expect(mints.held()).to.deep.equal([other]);
    expect(waiting()).to.deep.equal([mint]);
  });

  it('give back the nonces of those that are set aside or ran out of gas, and no others', () => {
    const [other, low, short, late] = [added(4), added(5), added(6), added(7)];
    for (const [index, queued] of [other, low, short, late].entries())
      mints.observe(queued, { ...sendable, nonce: 4 + index });
    mints.observe(other, { saw: 'no nonce' });
    expect(mints.nonces.lowestFreed()).to.equal(undefined);
    mints.defer(late, 60_000);
    expect(mints.nonces.lowestFreed()).to.equal(7);
    mints.observe(short, { saw: 'out of gas' });
    expect(mints.nonces.lowestFreed()).to.equal(6);
    expect(mints.observe(low, { ...refused, refusal: 'gas' })).to.equal('estimate again');
    expect(mints.nonces.lowestFreed()).to.equal(5);
  });

  it('are ready again if this wallet signed them and no other mint has the nonce, else waiting', () => {
    const [mint, other, third] = [added(5), added(5), added(6, OTHER_WALLET)];
    for (const queued of [mint, other, third]) mints.placeAnew(queued);
    expect(mints.held('ready')).to.deep.equal([mint]);
    expect(waiting()).to.deep.equal([other, third]);
  });

  it('of an earlier run are sent again as they are, and a node may have them', async () => {
    const fields = { to: WALLET, nonce: 5, gasLimit: 21_000, gasPrice: 1, chainId: 1, type: 0 };
    const raw = await new Wallet(DEPLOYER_KEY).signTransaction(fields);
    const issuance = newIssuance();
    const { tokenId } = issuance;
    const transactions = [{ tokenId, hash: keccak256(raw), nonce: 5, raw, signedAt: 0 }];
    mints.takeUp({ issuance, transactions, mined: undefined });
    const [ready] = mints.held('ready');
    expect(ready?.mint).to.deep.include({ isRecovered: true });
    expect(ready?.mint.transactions.map((one) => [one.raw, one.reach])).to.deep.equal([[raw, 'possible']]);
  });

  it('of an earlier run wait for their block since they were signed', async () => {
    const journal = createMemoryJournal();
    mints = new QueuedMints(
      { ...options(), journal, lifecycle: createLifecycle() },
      new AbortController().signal,
    );
    const trace = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const issuance = journal.add(newIssuance({ trace }));
    const spans: string[] = [];
    await traced({ onEnd: ({ name, startTime }) => void spans.push(`${name} ${startTime[0]}`) }, async () => {
      const queued = mints.add({ ...newMint(issuance), isRecovered: true });
      const mined = signed(5, { hash: MINED.txHash, signedAt: 1_700_000_008_000 });
      for (const transaction of [signed(4, { signedAt: 1_700_000_007_000 }), mined])
        mints.observe(queued, { saw: 'signed', transaction });
      mints.found(queued, MINED);
      await queued.outcome.promise;
      await mints.finish();
    });
    expect(spans).to.include('block 1700000008');
  });

  it('follow the order of adding while waiting, and the order of nonces when they are sent', () => {
    const three = [added(9), added(8), added(7)];
    for (const queued of [...three].reverse()) mints.defer(queued, 0);
    expect(waiting()).to.deep.equal(three);
    for (const [index, queued] of three.entries()) mints.observe(queued, { ...sendable, nonce: 9 - index });
    expect(mints.held('ready')).to.deep.equal([...three].reverse());
  });

  for (const [what, atOnce, change] of [
    ['one after the other if the node mines at once', 1, {}],
    ['16 together elsewhere', 16, { minesAtOnce: false }],
    ['one after the other after a refusal for the order', 1, { minesAtOnce: false, narrowUntil: Infinity }],
  ] as const)
    it(`are sent ${what}`, async () => {
      let sent = 0;
      const client = chainOf(() => new Promise(() => void sent++));
      mints = Object.assign(new QueuedMints({ ...options(), client }, new AbortController().signal), change);
      for (let nonce = 0; nonce < 20; nonce++) mints.observe(added(nonce), { ...sendable, nonce });
      const sending = createMintSending(mints);
      while ((await sending.turn()) === 0);
      expect([sent, mints.in('sending').length]).to.deep.equal([atOnce, atOnce]);
    });

  it('lead to an outcome, also once they are forgotten, and a new one if their block is gone', async () => {
    const unfinished = { issuance: newIssuance(), transactions: [], mined: MINED };
    mints.takeUp(unfinished);
    const { tokenId } = unfinished.issuance;
    expect(await mints.outcomeOf(tokenId)).to.equal('0x01');
    const [queued] = mints.in('mined');
    if (queued === undefined) expect.fail('it is not mined');
    mints.options.journal.unmined = async () => undefined;
    mints.options.journal.mined = async () => undefined;
    Object.assign(mints.options, { lifecycle: { emit: () => undefined } });
    mints.observe(queued, { saw: 'block gone' });
    mints.observe(queued, { saw: 'token', mined: mintedBy('0x02'), isFinal: true });
    expect(await mints.outcomeOf(tokenId)).to.equal('0x02');
    await mints.finish();
    expect(mints.find(tokenId)).to.equal(undefined);
    expect(await mints.outcomeOf(tokenId)).to.equal('0x02');
  });

  it('are submitted once they are pending, and fail with a message for readers without secrets', async () => {
    const told: unknown[] = [];
    mints = new QueuedMints(
      { ...options(), mask: (text) => text.replace('key', '***') },
      new AbortController().signal,
    );
    Object.assign(mints.options, { lifecycle: { emit: () => undefined } });
    mints.options.journal.submitted = (tokenIds) => setImmediate().then(() => void told.push(tokenIds));
    mints.options.journal.failed = async (_, { message }) => void told.push(message);
    const queued = added(5);
    for (const observation of WAYS.pending) mints.observe(queued, observation);
    mints.recordSubmitted();
    mints.recordSubmitted();
    const error = new ChainError('MINT_REVERTED', 'Not with key.', { remedy: 'Send it again.' });
    mints.observe(queued, { saw: 'failure', error });
    await mints.finish();
    expect(told).to.deep.equal([[queued.tokenId], 'Not with ***. Send it again.']);
  });

  it('are told once that their nonces are of another chain, whichever part noticed it first', async () => {
    expect(await mints.enterChain('0xa')).to.equal(true);
    expect(await mints.leavesOldNonces('0xa')).to.equal(false);
    // The part that follows mints asks, then the part that handles rejections.
    expect(await mints.enterChain('0xb')).to.equal(false);
    expect(await mints.enterChain('0xb')).to.equal(true);
    expect(await mints.leavesOldNonces('0xb')).to.equal(true);
    expect(await mints.leavesOldNonces('0xb')).to.equal(false);
  });
});
