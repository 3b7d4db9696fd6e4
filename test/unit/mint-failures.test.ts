import { expect } from 'chai';
import { toQuantity } from 'ethers';
import { ChainError, messageOf } from '../../service/base/errors';
import { createLogger } from '../../service/base/logger';
import { findNetwork } from '../../service/chain/networks';
import { giveUp, handleRejections, shortOfFunds } from '../../service/minting/handle-rejections';
import { newMint, type MintQueueOptions, type SignedMint } from '../../service/minting/mint';
import { mintTopics } from '../../service/minting/node';
import { QueuedMints, type QueuedMint } from '../../service/minting/queued-mints';
import { chainOf } from '../helpers/chain/fake-nodes';
import { createMemoryJournal } from '../helpers/database/memory-journal';
import { newIssuance, queueOptions } from '../helpers/processes/running-mint-queue';
import { VirtualTime } from '../helpers/virtual-time';

const WALLET = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const OTHER_WALLET = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const REGISTRY = `0x${'aa'.repeat(20)}`;
const CONFIRMATIONS = 3;
const NONCE = 5;

const REFUSED = new ChainError('TRANSACTION_REJECTED', 'It was refused.');
const EXISTS = new ChainError('MINT_REVERTED', 'It exists.', {
  cause: Object.assign(new Error('reverted'), {
    code: 'CALL_EXCEPTION',
    revert: { name: 'TokenExists' },
  }),
});

/** A chain as one node has it. */
interface State {
  head: number;
  /** The wallet's used nonces in the newest block, and in the final one. */
  used: [latest: number, final: number];
  /** Whether the node has a receipt of the mint. */
  hasReceipt: boolean;
  /** Whether the token exists in the final block. */
  existsAtDepth: boolean;
  /** The answer to whether it exists in the newest. */
  existsNow: boolean | Error;
}
const STATE: State = { head: 10, used: [6, 6], hasReceipt: false, existsAtDepth: false, existsNow: false };

function mintsOn({ head, used: [latest, final], hasReceipt, existsAtDepth, existsNow }: State): QueuedMints {
  const client = chainOf(async (method, [, block]) => {
    if (method === 'eth_blockNumber') return toQuantity(head);
    if (method === 'eth_getTransactionCount') return toQuantity(Number(block) > 0 ? final : latest);
    if (method === 'eth_getLogs') return [];
    if (method === 'eth_call') {
      const exists = Number(block) > 0 ? existsAtDepth : existsNow;
      if (exists instanceof Error) throw exists;
      return exists ? '0x01' : '0x';
    }
    if (method !== 'eth_getTransactionReceipt' || !hasReceipt) return null;
    const [{ tokenId = '' } = {}] = mints.all();
    const logs = [{ address: REGISTRY, topics: mintTopics(tokenId).toSpliced(2, 0, '0x') }];
    const block5 = { blockNumber: '0x5', blockHash: '0x05' };
    return { ...block5, transactionHash: '0x01', status: '0x1', gasUsed: '0x1', logs };
  });
  const network = { ...findNetwork('31337'), local: false, confirmations: CONFIRMATIONS };
  const mints: QueuedMints = new QueuedMints(
    {
      ...queueOptions(client, '', network as MintQueueOptions['network']),
      wallet: { address: WALLET } as MintQueueOptions['wallet'],
      registryAddress: REGISTRY,
      journal: createMemoryJournal(),
      logger: createLogger({ level: 'silent', mask: (text) => text }),
      time: new VirtualTime(),
    },
    new AbortController().signal,
  );
  return mints;
}

function added(mints: QueuedMints, members: Partial<SignedMint>, txHash?: string): QueuedMint {
  const queued = mints.add(newMint({ ...newIssuance(), txHash }));
  const terms = { from: WALLET, gasLimit: 1n, fees: { type: 0, gasPrice: 1n } } as const;
  const { tokenId } = queued;
  const signed = { tokenId, hash: '0x01', nonce: NONCE, raw: '0x', signedAt: 0 };
  const transaction = { ...signed, ...terms, reach: 'none' } as const;
  mints.observe(queued, { saw: 'signed', transaction: { ...transaction, ...members } });
  return queued;
}

describe('a mint that is given up', () => {
  const OPEN = { reach: 'possible' } as const;
  const failed = { name: 'settled', error: REFUSED };
  const deferred = { name: 'waiting' };
  const mined = { name: 'mined' };
  for (const [outcome, members, state, expected, error = REFUSED, txHash] of [
    ['fails once its nonce is used in a final block', OPEN, {}, failed],
    ['fails if it was never sent', {}, { used: [5, 5] }, failed],
    ['waits while its nonce is not used', OPEN, { used: [5, 5] }, deferred],
    ['waits while its nonce is used only in a block that is not final', OPEN, { used: [6, 5] }, deferred],
    ['waits although every node refused it', { reach: 'refused' }, { used: [6, 5] }, deferred],
    ['waits while no block is final', OPEN, { head: 2 }, deferred],
    ['waits if its token exists and its transaction is not found', OPEN, { existsAtDepth: true }, deferred],
    ['is mined if its transaction is found', OPEN, { hasReceipt: true }, mined],
    ['is mined if its transaction is found although it was refused', {}, { hasReceipt: true }, mined],
    ['waits if the registry has its token', OPEN, {}, deferred, EXISTS],
    ['waits if its document was handed out', OPEN, {}, deferred, REFUSED, '0x01'],
  ] as [string, Partial<SignedMint>, Partial<State>, object, ChainError?, string?][])
    it(outcome, async () => {
      const mints = mintsOn({ ...STATE, ...state });
      const queued = added(mints, members, txHash);
      await giveUp(mints, queued, error);
      expect(queued.mint.state).to.include(expected);
    });

  for (const [existsNow, message] of [
    [true, /exists, but the node does not return/],
    [new Error('header not found'), /header not found/],
  ] as const)
    it(`does not fail if the node's answer is ${String(existsNow)}, and it has no receipt`, async () => {
      const mints = mintsOn({ ...STATE, existsNow });
      const queued = added(mints, OPEN);
      const told = await giveUp(mints, queued, REFUSED).then(() => '', messageOf);
      expect(told).to.match(message);
      expect(queued.mint.state).to.include(deferred);
    });

  it('waits while one of the nodes counts less', async () => {
    const mints = mintsOn(STATE);
    const queued = added(mints, OPEN);
    const value = chainOf(async () => toQuantity(NONCE));
    Object.defineProperty(mints.options.client, 'unanimous', { value });
    await giveUp(mints, queued, REFUSED);
    expect(queued.mint.state).to.include(deferred);
  });

  it('waits for each wallet that signed for it', async () => {
    const mints = mintsOn(STATE);
    const queued = added(mints, OPEN);
    const [transaction] = queued.mint.transactions;
    if (transaction === undefined) expect.fail('it has no transaction');
    const former = { ...transaction, hash: '0x02', from: OTHER_WALLET, nonce: 9 };
    mints.observe(queued, { saw: 'signed', transaction: former });
    await giveUp(mints, queued, REFUSED);
    expect(queued.mint.state).to.include(deferred);
  });
});

describe('a mint that the wallet cannot pay for', () => {
  for (const [outcome, isInFlight, state] of [
    ['waits while another is in flight', true, 'waiting'],
    ['fails if none is', false, 'settled'],
  ] as const)
    it(outcome, async () => {
      const mints = mintsOn(STATE);
      const [other, short] = [added(mints, {}), added(mints, { hash: '0x02' })];
      mints.observe(other, { saw: 'sendable', from: WALLET, nonce: NONCE, at: 0 });
      if (isInFlight) mints.observe(other, { saw: 'sent', at: 0 });
      await shortOfFunds(mints, short, new Error('insufficient funds'));
      expect(short.mint.state).to.have.property('name', state);
    });
});

describe('a transaction that a node refuses', () => {
  for (const [message, before, after] of [
    ['nonce too low', 'none', 'refused'],
    ['nonce too low', 'refused', 'refused'],
    ['nonce too low', 'possible', 'possible'],
    ['the node has a headache', 'none', 'possible'],
    ['txpool is full', 'refused', 'possible'],
  ] as const)
    it(`is ${after} after "${message}" if it was ${before} before`, async () => {
      const mints = mintsOn({ ...STATE, used: [5, 5] });
      const queued = added(mints, { reach: before });
      mints.observe(queued, { saw: 'sendable', from: WALLET, nonce: NONCE, at: 0 });
      const [sent] = queued.mint.transactions;
      if (sent === undefined) expect.fail('it has no transaction');
      mints.observe(queued, { saw: 'sent', at: 0 });
      const cause = Object.assign(new Error(message), { error: { code: -32_000, message } });
      await handleRejections(mints, [{ queued, sent, outcome: { state: 'refused', cause } }]);
      expect(queued.mint.transactions[0]?.reach).to.equal(after);
    });
});

describe('a transaction that a node takes', () => {
  it('is refused no longer: an earlier refusal counts neither as attempts nor as alike', () => {
    const mints = mintsOn(STATE);
    const queued = added(mints, {});
    mints.observe(queued, { saw: 'sendable', from: WALLET, nonce: NONCE, at: 0 });
    const told = { refusal: 'other', attempts: 4, reach: 'refused', pending: 5, floor: 5 } as const;
    const hopeless = { error: REFUSED, until: 1, isChainShorter: false, pendingHolder: 'nobody' } as const;
    for (let times = 0; times < 4; times++) mints.observe(queued, { saw: 'refused', ...told, ...hopeless });
    mints.observe(queued, { saw: 'sent', at: 0 });
    mints.observe(queued, { saw: 'taken', hash: '0x01' });
    mints.observe(queued, { saw: 'unsent' });
    expect(mints.observe(queued, { saw: 'refused', ...told, ...hopeless })).to.equal('send again later');
  });
});
