import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import { toBeHex, toQuantity } from 'ethers';
import { SignerError } from '../../service/base/errors';
import { createLogger } from '../../service/base/logger';
import { findNetwork } from '../../service/chain/networks';
import { handleRejections } from '../../service/minting/handle-rejections';
import { newMint, type MintQueueOptions, type SignedMint } from '../../service/minting/mint';
import { createMintPreparing } from '../../service/minting/prepare-mints';
import { QueuedMints, type QueuedMint } from '../../service/minting/queued-mints';
import { createMintSending } from '../../service/minting/send-mints';
import { chainOf } from '../helpers/chain/fake-nodes';
import { createMemoryJournal, type MemoryJournal } from '../helpers/database/memory-journal';
import { newIssuance, queueOptions } from '../helpers/processes/running-mint-queue';
import { VirtualTime } from '../helpers/virtual-time';

const WALLET = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
/** The wallet's transactions, as the node counts them. */
const USED = 5;
const CONFIRMATIONS = 3;
const HEAD = 10;
const FINAL = toQuantity(HEAD - CONFIRMATIONS);

/** An error that a node answers with. */
const answered = (message: string): Error =>
  Object.assign(new Error(message), { error: { code: -32_000, message } });

describe('the turns of a mint queue', () => {
  let time: VirtualTime;
  let journal: MemoryJournal;
  let stop: AbortController;
  let mints: QueuedMints;
  /** The node's answers, by their methods; null to every other question. */
  let answers: Record<string, (...params: readonly unknown[]) => unknown>;
  /** Nonces that the wallet's signer refuses to sign. */
  let unsigned: number[];

  beforeEach(() => {
    time = new VirtualTime();
    journal = createMemoryJournal(time);
    stop = new AbortController();
    unsigned = [];
    answers = {
      eth_blockNumber: () => toQuantity(HEAD),
      eth_call: () => '0x',
      eth_estimateGas: () => '0x5208',
      eth_getCode: () => '0x01',
      eth_getTransactionCount: () => toQuantity(USED),
    };
    const client = chainOf(async (method, params) => (await answers[method]?.(...params)) ?? null, time);
    const network = { ...findNetwork('31337'), local: false, confirmations: CONFIRMATIONS };
    const wallet: MintQueueOptions['wallet'] = {
      address: WALLET,
      async sign({ nonce }) {
        if (unsigned.includes(nonce)) throw new SignerError('SIGNER_REFUSED', 'The signer refuses.');
        return toBeHex(nonce);
      },
    };
    mints = new QueuedMints(
      {
        ...queueOptions(client, '', network as MintQueueOptions['network']),
        wallet,
        registryAddress: `0x${'aa'.repeat(20)}`,
        journal,
        logger: createLogger({ level: 'silent', mask: (text) => text }),
        readFees: async () => ({ type: 0, gasPrice: 1n }),
        time,
      },
      stop.signal,
    );
  });

  const added = (): QueuedMint => mints.add(newMint(journal.add(newIssuance())));

  /** A mint whose transaction with this nonce is ready to be sent. */
  function ready(nonce: number, members: Partial<SignedMint> = {}): QueuedMint {
    const queued = added();
    sign(queued, nonce, members);
    mints.observe(queued, { saw: 'sendable', from: WALLET, nonce, at: 0 });
    return queued;
  }

  function sign(queued: QueuedMint, nonce: number, members: Partial<SignedMint> = {}): void {
    const raw = toBeHex(nonce);
    const terms = { from: WALLET, gasLimit: 1n, fees: { type: 0, gasPrice: 1n }, reach: 'none' } as const;
    const transaction = { tokenId: queued.tokenId, hash: raw, nonce, raw, signedAt: 0, ...terms };
    mints.observe(queued, { saw: 'signed', transaction: { ...transaction, ...members } });
  }

  const prepare = (): Promise<number> => time.settled(createMintPreparing(mints)());

  it('keep nothing from the first unsigned nonce on: it is free, and its mint is set aside', async () => {
    mints.observe(ready(6), { saw: 'sent', at: 0 });
    mints.nonces.free(5);
    added();
    added();
    unsigned = [5];
    await prepare();
    expect(journal.transactions).to.deep.equal([]);
    expect(mints.held('ready')).to.deep.equal([]);
    expect(mints.waiting().map(({ dueMs }) => dueMs > 0)).to.deep.equal([true, false]);
    expect(mints.nonces.reserve(2, USED, 6)).to.deep.equal([5, 7]);
  });

  it('send nothing that the journal may lack because the queue stopped', async () => {
    added();
    journal.onChange = () => {
      stop.abort();
      throw new Error('The database is closed.');
    };
    await prepare();
    expect(mints.held()).to.deep.equal([]);
  });

  for (const [reach, does, free] of [
    ['none', 'free', [5, 6]],
    ['possible', 'keep', [5, 8]],
  ] as const)
    it(`fill a hole with the last mint, and ${does} its nonce if its reach is "${reach}"`, async () => {
      const last = ready(6, { reach });
      mints.observe(ready(7), { saw: 'sent', at: 0 });
      mints.nonces.free(5);
      await prepare();
      expect(last.mint.state.name).to.equal('waiting');
      expect(mints.nonces.reserve(2, USED, 7)).to.deep.equal(free);
    });

  for (const [when, finalCount, isUnfunded] of [
    ['not before', USED, true],
    ['once', USED + 1, false],
  ] as const)
    it(`sign an unfunded mint anew ${when} its nonce is used at depth`, async () => {
      const queued = added();
      sign(queued, USED, { reach: 'refused' });
      mints.observe(queued, { saw: 'no funds' });
      answers.eth_getTransactionCount = (_, block) => toQuantity(block === FINAL ? finalCount : USED + 1);
      await prepare();
      expect(queued.mint).to.include({ isUnfunded });
    });

  for (const [what, error, deferrals] of [
    ['count a failed estimate if the node answers', answered('it has a headache'), 1],
    ['count no failed estimate if the node cannot be asked', new Error('ECONNREFUSED'), 0],
  ] as const)
    it(what, async () => {
      const queued = added();
      answers.eth_estimateGas = () => Promise.reject(error);
      await prepare();
      expect(queued.mint).to.include({ deferrals });
    });

  it('handle rejections from the lowest nonce on: the next one waits for what that leaves', async () => {
    const rejected = (
      [
        [6, 'nonce too high'],
        [5, 'insufficient funds'],
      ] as const
    ).map(([nonce, message]) => {
      const queued = ready(nonce);
      mints.observe(queued, { saw: 'sent', at: 0 });
      const [sent] = queued.mint.transactions;
      if (sent === undefined) expect.fail('it has no transaction');
      return { queued, sent, outcome: { state: 'refused', cause: answered(message) } } as const;
    });
    expect(await handleRejections(mints, rejected), 'the hole makes sending pause').to.equal(true);
  });

  it('send the newest version of a mint', async () => {
    const sent: unknown[] = [];
    answers.eth_sendRawTransaction = (raw) => sent.push(raw);
    sign(ready(5), 5, { hash: '0x55', raw: '0x55' });
    await createMintSending(mints).turn();
    expect(sent).to.deep.equal(['0x55']);
  });

  it('send nothing after a rejection until all that is under way is answered', async () => {
    const sent: unknown[] = [];
    answers.eth_sendRawTransaction = (raw) => {
      sent.push(raw);
      return raw === toBeHex(5) ? Promise.reject(answered('nonce too low')) : new Promise(() => undefined);
    };
    for (const nonce of [5, 6, 7]) ready(nonce);
    const { turn } = createMintSending(mints);
    await turn();
    await turn();
    await setImmediate();
    await turn();
    expect(sent).to.deep.equal([toBeHex(5), toBeHex(6)]);
  });
});
