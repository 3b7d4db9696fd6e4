import { expect } from 'chai';
import { Wallet } from 'ethers';
import { ChainError } from '../../service/base/errors';
import type { Issuance } from '../../service/journal/issuance';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { createMemoryJournal, type MemoryJournal } from '../helpers/database/memory-journal';
import { newIssuance, startQueue, untruths, type QueuePlace } from '../helpers/processes/running-mint-queue';
import { createLocalSetup, DEPLOYER, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';

const COUNT = 6;

describe('the mint queue after a crash', () => {
  let local: LocalSetup;
  let place: QueuePlace;

  before(async () => {
    local = await createLocalSetup();
    place = { nodeUrl: local.node.url, registryAddress: local.registryAddress };
  });

  after(() => local?.stop());

  afterEach(async () => {
    await local.client.send('evm_setAutomine', [true]);
    await local.client.send('evm_mine', []);
  });

  /** From `now()` on the process records nothing and sends nothing. */
  interface Crash {
    now: () => void;
    isOver: () => boolean;
  }

  /**
   * Mints several tokens in a queue that ends as a killed process does.
   *
   * @param at the last step: a change of the journal, or the moment before or after a transaction reaches the
   *   node; `step` tells which occurrence of it.
   */
  async function crash(
    at: { change?: string; sent?: 'before' | 'after' },
    { step = 1, automine = true } = {},
  ): Promise<MemoryJournal> {
    const journal = createMemoryJournal();
    const state: { isOver: boolean } = { isOver: false };
    const dead: Crash = { now: () => void (state.isOver = true), isOver: () => state.isOver };
    let steps = 0;
    journal.onChange = async (change) => {
      if (!dead.isOver() && at.change === change && ++steps === step) dead.now();
      // A killed process never finishes a change. This one fails, so that the queue can be stopped.
      if (dead.isOver()) throw new Error('the process is dead');
    };
    if (!automine) await local.client.send('evm_setAutomine', [false]);
    const queue = await startQueue(place, {
      journal,
      answerer: async (method, _, forward) => {
        if (dead.isOver()) return 'drop request';
        if (method !== 'eth_sendRawTransaction' || at.sent === undefined || ++steps < step) return 'none';
        dead.now();
        if (at.sent === 'after') await forward();
        return 'drop request';
      },
    });
    const outcomes = Array.from({ length: COUNT }, async () => queue.mint().catch((error: unknown) => error));
    await eventually('it crashed', () => dead.isOver());
    await queue.stop();
    for (const outcome of await Promise.all(outcomes)) {
      if (typeof outcome === 'string') continue;
      expect(outcome)
        .to.be.instanceOf(ChainError)
        .and.include({ code: 'MINT_NOT_CONFIRMED', retryable: true });
    }
    journal.onChange = () => undefined;
    return journal;
  }

  const isFinished = ({ issuances }: MemoryJournal): boolean =>
    [...issuances.values()].every(({ state }) => state === 'final');

  /** The next start must mint every token, once. Returns how many transactions it signed for this. */
  async function finish(journal: MemoryJournal): Promise<number> {
    const kept = journal.transactions.length;
    const queue = await startQueue(place, { journal });
    try {
      await local.client.send('evm_setAutomine', [true]);
      await eventually('everything is mined', async () => {
        await local.client.send('evm_mine', []);
        return isFinished(journal);
      });
      expect(await untruths(local.client, local.registryAddress, journal)).to.deep.equal([]);
      // A gap in the nonces would block this mint.
      await queue.mint();
    } finally {
      await queue.stop();
    }
    expect(await local.client.send('eth_pendingTransactions', [])).to.deep.equal([]);
    // Without the mint that was added here.
    return journal.transactions.length - 1 - kept;
  }

  it('mints every token once when nothing was signed', async () => {
    expect(await finish(await crash({ change: 'keepTransactions' }))).to.equal(COUNT);
  });

  for (const step of [1, 3])
    it(`sends the same bytes when transaction ${step} was stored but not sent`, async () => {
      expect(await finish(await crash({ sent: 'before' }, { step }))).to.equal(0);
    });

  for (const step of [1, 3])
    it(`signs nothing again when the node took transaction ${step} but had not said so`, async () => {
      expect(await finish(await crash({ sent: 'after' }, { step }))).to.equal(0);
    });

  it('signs nothing again when the submission was not recorded', async () => {
    expect(await finish(await crash({ change: 'submitted' }, { automine: false }))).to.equal(0);
  });

  for (const step of [1, 4])
    it(`signs nothing again when mint ${step} was mined but not recorded`, async () => {
      expect(await finish(await crash({ change: 'mined' }, { step }))).to.equal(0);
    });

  it('sends the same bytes when the node has forgotten pending transactions', async () => {
    const journal = await crash({ change: 'submitted' }, { automine: false });
    for (const { hash } of journal.transactions) await local.client.send('hardhat_dropTransaction', [hash]);
    expect(await finish(journal)).to.equal(0);
  });

  it('signs again only the mints whose nonces were used elsewhere meanwhile', async () => {
    const journal = await crash({ sent: 'before' });
    const other = new Wallet(DEPLOYER_KEY, local.client);
    for (let sent = 0; sent < 3; sent++) await (await other.sendTransaction({ to: DEPLOYER })).wait();
    expect(await finish(journal)).to.equal(3);
  });

  it('signs nothing again when a token was minted elsewhere meanwhile', async () => {
    const journal = await crash({ sent: 'before' });
    const [{ tokenId, holder } = newIssuance()] = journal.issuances.values();
    await mintDirectly(local, holder, { tokenId: BigInt(`0x${tokenId}`) });
    expect(await finish(journal)).to.equal(0);
  });

  it('asks a node of another chain for its chain id only, and fails no mint', async () => {
    const journal = await crash({ sent: 'before' });
    const queue = await startQueue(place, {
      journal,
      answerer: (method) => (method === 'eth_chainId' ? { result: '0x1' } : 'none'),
    });
    try {
      const isTold = (): boolean => JSON.stringify(queue.log).includes('CHAIN_ID_MISMATCH');
      await eventually('it is told', isTold);
      await eventually('it is asked again', () => (queue.proxy.counts().eth_chainId ?? 0) > 1);
      expect(Object.keys(queue.proxy.counts())).to.deep.equal(['eth_chainId']);
      queue.answer(() => 'none');
      await eventually('everything is mined', () => isFinished(journal));
      expect(await untruths(local.client, local.registryAddress, journal)).to.deep.equal([]);
    } finally {
      await queue.stop();
    }
  });

  it('gives every caller of a mint the same outcome', async () => {
    const journal = await crash({ sent: 'before' });
    const queue = await startQueue(place, { journal });
    try {
      const issuances: Issuance[] = [...journal.issuances.values()].map((issuance) => ({ ...issuance }));
      const hashes = await Promise.all(issuances.map(async (issuance) => queue.mintAgain(issuance)));
      expect(new Set(hashes).size).to.equal(COUNT);
      // A caller that read the row before the mint was mined gets the same outcome.
      expect(await Promise.all(issuances.map(async (issuance) => queue.mintAgain(issuance)))).to.deep.equal(
        hashes,
      );
      expect(journal.transactions).to.have.length(COUNT);
      expect(await untruths(local.client, local.registryAddress, journal)).to.deep.equal([]);
    } finally {
      await queue.stop();
    }
  });

  it('continues when the journal could not be written for a while', async () => {
    const journal = createMemoryJournal();
    let failures = 3;
    journal.onChange = () => {
      if (failures-- > 0) throw new Error('the database is away');
    };
    const queue = await startQueue(place, { journal });
    try {
      await queue.mintMany(3, 3);
      expect(await untruths(local.client, local.registryAddress, journal)).to.deep.equal([]);
    } finally {
      await queue.stop();
    }
  });

  it('stops while the node hangs, and sends nothing more', async () => {
    const queue = await startQueue(place, {
      answerer: (method) => (method === 'eth_sendRawTransaction' ? new Promise(() => undefined) : 'none'),
    });
    const outcome = queue.mint().catch((error: unknown) => error);
    await eventually('it is being sent', () => queue.proxy.counts().eth_sendRawTransaction === 1);
    await queue.stop();
    expect(await outcome).to.include({ code: 'MINT_NOT_CONFIRMED', retryable: true });
    const again = await queue.mint().catch((error: unknown) => error);
    expect(again).to.include({ code: 'MINT_NOT_CONFIRMED', retryable: true });
    expect(queue.proxy.counts().eth_sendRawTransaction).to.equal(1);
  });
});
