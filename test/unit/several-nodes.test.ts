import { expect } from 'chai';
import { makeError } from 'ethers';
import { createFinalBlockReading, type FinalBlockReading } from '../../service/chain/finality';
import { LATE_MS } from '../../service/chain/reach-node';
import { blocksAt } from '../../service/chain/read-chain';
import { connectSeveral } from '../../service/chain/connect-nodes';
import { AMOY, type FakeNode, type TagAnswer, withFakeNodes } from '../helpers/chain/fake-nodes';

function nodeError(code: number, message: string): Error {
  return makeError('could not coalesce error', 'UNKNOWN_ERROR', { error: { code, message } });
}

const UNKNOWN = nodeError(-32602, 'invalid argument 0: hex string without 0x prefix');
const UNKNOWN_TOO = nodeError(-32000, 'the block tag is not supported');
const NOT_FOUND = nodeError(-32000, 'finalized block not found');
const INTERNAL = nodeError(-32603, 'internal error');
const HEAD = 100;

/** Runs `act` with nodes that give these answers to the tag `finalized`. */
function withAnswers(
  answers: readonly TagAnswer[],
  act: (read: FinalBlockReading, nodes: FakeNode[], now: () => number) => Promise<void>,
): Promise<void> {
  return withFakeNodes(answers.length, async (nodes, time) => {
    give(nodes, answers);
    const { client, checkChain } = connectSeveral(nodes, AMOY, time);
    await checkChain();
    await act(createFinalBlockReading(client, AMOY, 'finalized'), nodes, () => time.now());
    client.close();
  });
}

function give(nodes: readonly FakeNode[], answers: readonly TagAnswer[]): void {
  for (const [index, node] of nodes.entries()) node.final = answers[index] ?? null;
}

/** The number of the final block, or the error. */
function outcomeOf(read: FinalBlockReading): Promise<unknown> {
  return read(HEAD).catch((error: unknown) => error);
}

describe('the final block of several nodes', () => {
  for (const [answers, final] of [
    [[68, 66], 66],
    [[66, 68], 66],
    [[68, 66, 50], 66],
    [[100, 50, 68], 68],
    [[68, null, 67], 67],
    [[UNKNOWN, 68, 67], 67],
    [[68, INTERNAL, 67], 67],
  ] satisfies [TagAnswer[], number][])
    it(`is ${final} if the nodes say ${described(answers)}`, () =>
      withAnswers(answers, async (read) => {
        expect(await read(HEAD)).to.equal(final);
      }));

  it('is on the branch that two nodes have', () =>
    withAnswers([70, 68, 66], async (read, [other]) => {
      Object.assign(other!, { branch: 'other' });
      expect(await read(HEAD)).to.equal(66);
    }));

  it('is waited for, without a second question, if no node has one', async () => {
    for (const answers of [
      [null, null],
      [NOT_FOUND, NOT_FOUND],
      [null, NOT_FOUND, null],
    ])
      await withAnswers(answers, async (read, nodes) => {
        expect(await outcomeOf(read)).to.include({ code: 'FINALITY_MISSING', retryable: true });
        for (const { asked } of nodes) expect(asked).to.deep.equal(['eth_chainId', 'eth_getBlockByNumber']);
      });
  });

  it('is waited for if one node alone has one, and is then found', async () => {
    for (const answers of [
      [68, null],
      [NOT_FOUND, 68],
      [68, null, null],
      [null, 68, UNKNOWN],
    ])
      await withAnswers(answers, async (read, nodes) => {
        expect(await outcomeOf(read)).to.include({ code: 'FINALITY_MISSING', retryable: true });
        give(nodes, [68, 67, 60]);
        expect(await read(HEAD)).to.equal(67);
      });
  });

  it('is waited for if one of two nodes refuses the tag, which is named', () =>
    withAnswers([68, UNKNOWN], async (read) => {
      const error = await outcomeOf(read);
      expect(error).to.include({ code: 'NODES_DIFFER', retryable: true });
      expect(error).to.have.property('message').that.contains('http://node-2: refuses (');
    }));

  it('is refused with the number to use if two nodes do not know the tag, or the only one', async () => {
    for (const answers of [
      [UNKNOWN, UNKNOWN],
      [UNKNOWN, UNKNOWN_TOO],
      [UNKNOWN_TOO, INTERNAL, UNKNOWN],
      [UNKNOWN, 68, UNKNOWN_TOO],
    ])
      await withAnswers(answers, async (read) => {
        const error = await outcomeOf(read);
        expect(error).to.include({ code: 'FINALITY_UNSUPPORTED', retryable: false });
        expect(error).to.have.property('message').that.contains('32 (the default of amoy)');
      });
    await withAnswers([UNKNOWN, 68], async (read, [, second]) => {
      Object.assign(second!, { absence: 'refused' });
      expect(await outcomeOf(read)).to.include({ code: 'FINALITY_UNSUPPORTED' });
    });
  });

  it('is not refused for ever because of an error that may pass', () =>
    withAnswers([UNKNOWN, INTERNAL], async (read) => {
      expect(await outcomeOf(read)).to.include({ code: 'NODES_DIFFER', retryable: true });
    }));

  it('is that of a slow third node if the two others do not agree', () =>
    withAnswers([68, null, 67], async (read, [, , third]) => {
      Object.assign(third!, { latencyMs: 1_500 });
      expect(await read(HEAD)).to.equal(67);
    }));

  it('never goes back, also when nodes go away', () =>
    withAnswers([68, 67, 66], async (read, nodes) => {
      expect(await read(HEAD)).to.equal(67);
      give(nodes, [60, 61, 62]);
      expect(await read(HEAD)).to.equal(67);
      Object.assign(nodes[0]!, { absence: 'refused', final: 90 });
      Object.assign(nodes[1]!, { absence: 'hanging', final: 90 });
      expect(await read(HEAD)).to.equal(67);
      give(nodes, [90, 90, 68]);
      expect(await read(HEAD)).to.equal(68);
    }));
});

describe('the newest block of several nodes', () => {
  it('is that of a slow third node if one of the two others is far behind', () =>
    withFakeNodes(3, async (nodes, time) => {
      const { client, checkChain } = connectSeveral(nodes, AMOY, time);
      await checkChain();
      nodes[0]!.head = 50;
      nodes[2]!.latencyMs = 1_500;
      expect(await client.send('eth_blockNumber', [])).to.equal('0x64');
      nodes[0]!.head = 98;
      expect(await client.send('eth_blockNumber', [])).to.equal('0x62');
      client.close();
    }));

  it('is not compared again once the client is closed', () =>
    withFakeNodes(3, async (nodes, time) => {
      const { client, checkChain } = connectSeveral(nodes, AMOY, time);
      await checkChain();
      nodes[0]!.head = 50;
      const asking = client.send('eth_blockNumber', []);
      client.close();
      await asking;
      const asked = nodes.map((node) => node.asked.length);
      await time.sleep(60_000);
      expect(nodes.map((node) => node.asked.length)).to.deep.equal(asked);
    }));
});

function described(answers: readonly TagAnswer[]): string {
  return answers
    .map((answer) => (answer instanceof Error ? 'an error' : (answer?.toString() ?? 'none')))
    .join(', ');
}

describe('several questions to several nodes', () => {
  it('go to a third node when one is late, although it answers others', () =>
    withFakeNodes(3, async (nodes, time) => {
      const { client, checkChain } = connectSeveral(nodes, AMOY, time);
      await checkChain();
      Object.assign(nodes[0]!, { hangs: ['eth_getBlockByNumber'] });
      const startedAt = time.now();
      const blocks = await blocksAt(client, [10, 11, 12]);
      expect(blocks.map((block) => block?.number)).to.deep.equal([10, 11, 12]);
      expect(time.now() - startedAt).to.be.below(LATE_MS + 1_000);
      client.close();
    }));
});

describe('the answers of several nodes', () => {
  const receipt = (number: string, gas: string, status: string): unknown => ({
    transactionHash: '0x01',
    blockHash: '0x02',
    blockNumber: number,
    gasUsed: gas,
    status,
    logs: [],
  });
  for (const { about, method, params, one, other } of [
    {
      about: 'receipts',
      method: 'eth_getTransactionReceipt',
      params: ['0x01'],
      one: receipt('0x22', '0x5208', '0x1'),
      other: receipt('0x022', '0x05208', '0x01'),
    },
    {
      about: 'counts of transactions',
      method: 'eth_getTransactionCount',
      params: [`0x${'ab'.repeat(20)}`, '0x10'],
      one: '0x5',
      other: '0x05',
    },
  ])
    it(`are the same if their numbers are written differently: ${about}`, () =>
      withFakeNodes(2, async (nodes, time) => {
        const { client, checkChain } = connectSeveral(nodes, AMOY, time);
        await checkChain();
        nodes[0]!.send = () => Promise.resolve(one);
        nodes[1]!.send = () => Promise.resolve(other);
        expect(await client.send(method, params)).to.be.oneOf([one, other]);
        client.close();
      }));
});
