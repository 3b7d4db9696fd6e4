import { expect } from 'chai';
import { Wallet } from 'ethers';
import { ChainError } from '../../service/base/errors';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { DEPLOYER, DEPLOYER_KEY, localSetupOfSuite } from '../helpers/chain/local-setup';
import { createMemoryJournal, type MemoryJournal } from '../helpers/database/memory-journal';
import type { Answerer } from '../helpers/chain/rpc-proxy';
import { VirtualTime } from '../helpers/virtual-time';
import {
  failureOf,
  mineAtOnce,
  newIssuance,
  startQueue,
  withQueue,
} from '../helpers/processes/running-mint-queue';

const COUNT = 6;
const SEND = 'eth_sendRawTransaction';

describe('the mint queue after a crash', () => {
  const local = localSetupOfSuite();
  let time: VirtualTime;

  beforeEach(() => (time = new VirtualTime()));

  afterEach(() => mineAtOnce(local));

  /**
   * The last step of a process: a change of the journal, or the moment before or after a transaction reaches
   * the node. `step` tells which occurrence of it.
   */
  interface LastStep {
    change?: string;
    sent?: 'before' | 'after';
    step?: number;
    automine?: boolean;
  }

  /** Mints several tokens in a queue that ends as a killed process does; returns its journal. */
  async function crash({ step = 1, automine = true, change, sent }: LastStep): Promise<MemoryJournal> {
    const journal = createMemoryJournal(time);
    let isDead = false;
    let steps = 0;
    journal.onChange = (name) => {
      if (!isDead && name === change && ++steps === step) isDead = true;
      // A killed process never finishes a change. This one fails, so that the queue can be stopped.
      if (isDead) throw new Error('the process is dead');
    };
    await local.client.send('evm_setAutomine', [automine]);
    const queue = await startQueue(local, {
      journal,
      time,
      answerer: async (method, _, forward) => {
        if (isDead) return 'drop request';
        if (method !== SEND || sent === undefined || ++steps < step) return 'none';
        isDead = true;
        if (sent === 'after') await forward();
        return 'drop request';
      },
    });
    const outcomes = Array.from({ length: COUNT }, () => failureOf(queue.mint()));
    await time.until('it crashed', () => isDead);
    await queue.stop();
    for (const outcome of await time.settled(Promise.all(outcomes)))
      if (typeof outcome !== 'string')
        expect(outcome)
          .to.be.instanceOf(ChainError)
          .and.include({ code: 'MINT_NOT_CONFIRMED', retryable: true });
    journal.onChange = () => undefined;
    return journal;
  }

  const isFinished = ({ issuances }: MemoryJournal): boolean =>
    [...issuances.values()].every(({ state }) => state === 'final');

  /** The next start must mint every token, once. Returns how many transactions it signed for this. */
  async function finish(journal: MemoryJournal): Promise<number> {
    const kept = journal.transactions.length;
    await withQueue(local, { journal, time }, async (queue) => {
      await time.until('everything is mined', async () => {
        await mineAtOnce(local);
        return isFinished(journal);
      });
      // A gap in the nonces would block this mint.
      await time.settled(queue.mint());
    });
    expect(await local.client.send('eth_pendingTransactions', [])).to.deep.equal([]);
    // Without the mint that was added here.
    return journal.transactions.length - 1 - kept;
  }

  const PENDING: LastStep = { change: 'submitted', automine: false };
  const UNSENT: LastStep = { sent: 'before' };
  const crashes: [what: string, last: LastStep, signs: number, meanwhile?: typeof forgetAll][] = [
    ['nothing was signed', { change: 'keepTransactions' }, COUNT],
    ['a transaction was stored but not sent', { sent: 'before' }, 0],
    ['the third transaction was stored but not sent', { sent: 'before', step: 3 }, 0],
    ['the node took a transaction but had not said so', { sent: 'after' }, 0],
    ['the submission was not recorded', PENDING, 0],
    ['a mint was mined but not recorded', { change: 'mined' }, 0],
    ['the node has forgotten pending transactions', PENDING, 0, forgetAll],
    ['three nonces were used elsewhere meanwhile', UNSENT, 3, useThreeNonces],
    ['a token was minted elsewhere meanwhile', UNSENT, 0, mintElsewhere],
  ];
  for (const [what, last, signs, meanwhile] of crashes)
    it(`mints every token once, and signs ${signs} transactions for it, when ${what}`, async () => {
      const journal = await crash(last);
      await meanwhile?.(journal);
      expect(await finish(journal)).to.equal(signs);
    });

  async function forgetAll({ transactions }: MemoryJournal): Promise<void> {
    for (const { hash } of transactions) await local.client.send('hardhat_dropTransaction', [hash]);
  }

  async function useThreeNonces(): Promise<void> {
    const other = new Wallet(DEPLOYER_KEY, local.client);
    for (let sent = 0; sent < 3; sent++) await (await other.sendTransaction({ to: DEPLOYER })).wait();
  }

  async function mintElsewhere({ issuances }: MemoryJournal): Promise<void> {
    const [{ tokenId, holder } = newIssuance()] = issuances.values();
    await mintDirectly(local, holder, { tokenId: BigInt(`0x${tokenId}`) });
  }

  it('asks a node of another chain for its chain id only, and fails no mint', async () => {
    const journal = await crash(UNSENT);
    const answerer: Answerer = (method) => (method === 'eth_chainId' ? { result: '0x1' } : 'none');
    await withQueue(local, { journal, time, answerer }, async (queue) => {
      await time.until('it is told', () => JSON.stringify(queue.log).includes('CHAIN_ID_MISMATCH'));
      await time.until('it is asked again', () => (queue.proxy.counts().eth_chainId ?? 0) > 1);
      expect(Object.keys(queue.proxy.counts())).to.deep.equal(['eth_chainId']);
      queue.answer(() => 'none');
      await time.until('everything is mined', () => isFinished(journal));
    });
  });

  it('gives every caller of a mint the same outcome', async () => {
    const journal = await crash(UNSENT);
    await withQueue(local, { journal, time }, async (queue) => {
      const issuances = [...journal.issuances.values()].map((issuance) => ({ ...issuance }));
      const hashes = await time.settled(Promise.all(issuances.map((issuance) => queue.mintAgain(issuance))));
      expect(new Set(hashes).size).to.equal(COUNT);
      // A caller that read the row before the mint was mined gets the same outcome.
      const again = await time.settled(Promise.all(issuances.map((issuance) => queue.mintAgain(issuance))));
      expect(again).to.deep.equal(hashes);
      expect(journal.transactions).to.have.length(COUNT);
    });
  });

  it('continues when the journal could not be written for a while', async () => {
    const journal = createMemoryJournal(time);
    let failures = 3;
    journal.onChange = () => {
      if (failures-- > 0) throw new Error('the database is away');
    };
    await withQueue(local, { journal, time }, async (queue) => {
      await time.settled(queue.mintMany(3, 3));
    });
  });

  it('stops while the node hangs, and sends nothing more', async () => {
    const queue = await startQueue(local, {
      time,
      answerer: (method) => {
        if (method !== SEND) return 'none';
        return time.aside(new Promise(() => undefined));
      },
    });
    const outcome = failureOf(queue.mint());
    await time.until('it is being sent', () => queue.proxy.counts()[SEND] === 1);
    await queue.stop();
    for (const stopped of [outcome, failureOf(queue.mint())])
      expect(await stopped).to.include({ code: 'MINT_NOT_CONFIRMED', retryable: true });
    expect(queue.proxy.counts()[SEND]).to.equal(1);
  });
});
