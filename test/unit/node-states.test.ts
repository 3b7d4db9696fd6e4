import { expect } from 'chai';
import { errorOf } from '../helpers/error-of';
import { NodeStates, type Vote } from '../../service/chain/node-states';
import { AMOY, type FakeNode, withFakeNodes } from '../helpers/chain/fake-nodes';
import type { VirtualTime } from '../helpers/virtual-time';

/** Nodes that all answered at the start, as a test has them. */
type Held = ReturnType<typeof held>;

function held(states: NodeStates, nodes: FakeNode[], time: VirtualTime) {
  const note = (): void => {
    const heads = nodes.flatMap((node) => (states.isUp(node) ? { node, number: node.head } : []));
    states.noteHeads(heads, undefined);
  };
  return {
    states,
    nodes,
    time,
    /** Names of the nodes to ask, in order. */
    usable: async () => (await states.usable()).map(({ name }) => new URL(name).hostname),
    /** State and reason of a node. */
    reported(this: void, node: FakeNode | undefined) {
      const { state, reason } = states.report().find(({ url }) => url === node?.name) ?? {};
      return reason === undefined ? `${state}` : `${state}: ${reason}`;
    },
    /** Notes the heads of the nodes that are up, again every second, also at the end. */
    async look(this: void, forMs: number) {
      for (let second = 0; second < forMs; second += 1_000) {
        note();
        await time.sleep(Math.min(1_000, forMs - second));
      }
      note();
    },
  };
}

const withStates = (count: number, act: (held: Held) => Promise<void>): Promise<void> =>
  withFakeNodes(count, async (nodes, time) => {
    const states = new NodeStates(nodes, AMOY, time);
    await states.checkChains();
    await act(held(states, nodes, time));
    states.close();
  });

/** Asks a node. The result grows with its vote, and with whether it is given up when it is late. */
function ask({ states }: Held, node: FakeNode | undefined, method = 'eth_gasPrice'): unknown[] {
  const told: unknown[] = [];
  states.ask(node!, () => node!.send(method, []), {
    isLong: method === 'eth_getLogs',
    onVote: ({ kind }: Vote) => told.push(kind),
    onLate: (isGivenUp) => told.push(isGivenUp ? 'given up' : 'late'),
  });
  return told;
}

/** Makes a node refuse a question, so that it is away. */
async function fail(held: Held, node: FakeNode | undefined): Promise<void> {
  Object.assign(node!, { absence: 'refused' });
  ask(held, node, 'eth_blockNumber');
  await held.time.sleep(node!.latencyMs + 1);
  expect(held.reported(node)).to.equal('away: it does not answer');
}

const NO_ANSWER = 'away: no answer within 3 s';

describe('a node among several', () => {
  it('is away when it refuses a connection, and is then asked every two seconds', () =>
    withStates(3, async (held) => {
      const { nodes, usable, reported, time } = held;
      let changes = 0;
      held.states.onChange(() => changes++);
      const [node] = nodes;
      await fail(held, node);
      expect(await usable()).to.deep.equal(['node-2', 'node-3']);
      const before = node!.asked.length;
      await time.sleep(10_000);
      expect(node!.asked.slice(before)).to.deep.equal(new Array(5).fill('eth_chainId'));
      expect(changes).to.equal(1);
      node!.absence = undefined;
      await time.sleep(2_000);
      expect(reported(node)).to.equal('up');
      expect(await usable()).to.deep.equal(['node-1', 'node-2', 'node-3']);
      expect(changes).to.equal(2);
    }));

  it('is away when it does not answer within three seconds', () =>
    withStates(2, async (held) => {
      const { nodes, usable, reported, time } = held;
      nodes[0]!.absence = 'hanging';
      const told = ask(held, nodes[0]);
      await time.sleep(2_999);
      expect([told, reported(nodes[0])]).to.deep.equal([[], 'up']);
      await time.sleep(2);
      expect([told, reported(nodes[0])]).to.deep.equal([['given up'], NO_ANSWER]);
      expect(await usable()).to.deep.equal(['node-2']);
    }));

  it('may take longer for logs while it answers others', () =>
    withStates(2, async (held) => {
      const { nodes, usable, reported, time } = held;
      nodes[0]!.hangs = ['eth_getLogs'];
      let changes = 0;
      held.states.onChange(() => changes++);
      const told = ask(held, nodes[0], 'eth_getLogs');
      await time.sleep(20_000);
      expect([told, reported(nodes[0]), changes]).to.deep.equal([['late'], 'up', 0]);
      expect(await usable()).to.deep.equal(['node-2', 'node-1']);
      nodes[1]!.absence = 'hanging';
      const other = ask(held, nodes[1], 'eth_getLogs');
      await time.sleep(6_001);
      expect([other, reported(nodes[1])]).to.deep.equal([['late', 'given up'], NO_ANSWER]);
    }));

  it('stays up when a question fails that was asked before it came back', () =>
    withStates(2, async (held) => {
      const { nodes, reported, time } = held;
      nodes[0]!.hangs = ['eth_gasPrice', 'eth_getLogs'];
      const told = [ask(held, nodes[0]), ask(held, nodes[0], 'eth_getLogs')];
      await time.sleep(1_000);
      await fail(held, nodes[0]);
      nodes[0]!.absence = undefined;
      await time.sleep(600);
      expect(reported(nodes[0])).to.equal('up');
      await time.sleep(1_500);
      expect([told, reported(nodes[0])]).to.deep.equal([[['given up'], ['given up']], 'up']);
      await time.sleep(30_000);
      expect(reported(nodes[0])).to.equal('up');
    }));

  it('is away while it is of another chain', () =>
    withStates(2, async (held) => {
      const { nodes, reported, time, states } = held;
      await fail(held, nodes[1]);
      Object.assign(nodes[1]!, { absence: undefined, chainId: 1 });
      await time.sleep(1_000);
      expect(reported(nodes[1])).to.equal('away: it is of chain id 1');
      const error = await errorOf(states.checkChains());
      expect(error).to.include({ code: 'CHAIN_ID_MISMATCH' });
      expect(error).to.have.property('message').that.contains('node-2');
      nodes[1]!.chainId = AMOY.chainId;
      await time.sleep(2_100);
      expect(reported(nodes[1])).to.equal('up');
    }));

  it('is not waited for when two others answered at the start', () =>
    withFakeNodes(3, async (nodes, time) => {
      nodes[0]!.absence = 'hanging';
      const states = new NodeStates(nodes, AMOY, time);
      expect(await states.usable()).to.deep.equal(nodes.slice(1));
      expect(time.now()).to.be.lessThan(3_000);
      states.close();
    }));

  it('is asked last for a minute after it differed, and before those if it is behind', () =>
    withStates(3, async ({ states, nodes, usable, time }) => {
      states.noteDifference(nodes[0]!, '7', 'other logs');
      expect(await usable()).to.deep.equal(['node-2', 'node-3', 'node-1']);
      const noted = states.report()[0];
      expect(noted).to.include({ state: 'up', differences: 1 });
      expect(noted?.lastDifference).to.include({ block: '7', difference: 'other logs' });
      const heads = [104, 100, 104].map((number, index) => ({ node: nodes[index]!, number }));
      states.noteHeads(heads, 104);
      expect(await usable()).to.deep.equal(['node-3', 'node-2', 'node-1']);
      await time.sleep(60_000);
      expect(await usable()).to.deep.equal(['node-1', 'node-3', 'node-2']);
    }));

  it('is asked again, although a question of before is open, when no other one answers', () =>
    withStates(2, async (held) => {
      const { nodes, usable, time } = held;
      await fail(held, nodes[0]);
      nodes[0]!.absence = 'hanging';
      await time.sleep(1_000);
      // Its answer will not come, but it would give another one.
      nodes[0]!.absence = undefined;
      await fail(held, nodes[1]);
      expect(await usable()).to.deep.equal(['node-1']);
    }));

  it('is left out with the reasons of all if none answers', () =>
    withStates(2, async (held) => {
      await fail(held, held.nodes[0]);
      await fail(held, held.nodes[1]);
      const error = await errorOf(held.usable());
      expect(error).to.include({ code: 'RPC_UNREACHABLE', retryable: true });
      expect(error).to.have.property('message').that.contains('http://node-2: it does not answer');
    }));
});

describe('a node that is behind', () => {
  it('by more than three blocks for 15 s is away, until it has come near', () =>
    withStates(2, async (held) => {
      const { nodes, usable, reported, look, time } = held;
      nodes[0]!.head = 104;
      await look(14_999);
      expect(reported(nodes[1])).to.equal('up');
      await look(1);
      expect(reported(nodes[1])).to.equal('away: it is 4 blocks behind');
      expect(await usable()).to.deep.equal(['node-1']);
      await time.sleep(5_000);
      expect(reported(nodes[1])).to.equal('away: it is 4 blocks behind');
      nodes[1]!.head = 101;
      await time.sleep(2_100);
      expect(reported(nodes[1])).to.equal('up');
      // Its next absence has another reason.
      await fail(held, nodes[1]);
      Object.assign(nodes[1]!, { absence: undefined, head: 50 });
      await time.sleep(600);
      expect(reported(nodes[1])).to.equal('up');
    }));

  it('by three blocks, or for less than 15 s at a time, is up', () =>
    withStates(2, async ({ nodes, reported, look, states }) => {
      nodes[0]!.head = 103;
      await look(60_000);
      for (let times = 0; times < 3; times++) {
        nodes[0]!.head += 10;
        await look(14_000);
        expect(states.isAnyBehind).to.equal(true);
        nodes[1]!.head = nodes[0]!.head;
        await look(1_000);
        expect(states.isAnyBehind).to.equal(false);
      }
      expect(reported(nodes[1])).to.equal('up');
    }));

  it('two of three that go on is away', () =>
    withStates(3, async ({ nodes, reported, look }) => {
      nodes[0]!.head = nodes[2]!.head = 104;
      await look(15_000);
      expect(nodes.map(reported)).to.deep.equal(['up', 'away: it is 4 blocks behind', 'up']);
    }));

  it('an absurd head of one of three is up, and so are all', () =>
    withStates(3, async ({ nodes, usable, reported, look }) => {
      nodes[1]!.head = 1_000_000;
      await look(60_000);
      expect(nodes.map(reported)).to.deep.equal(['up', 'up', 'up']);
      expect(await usable()).to.deep.equal(['node-1', 'node-2', 'node-3']);
    }));

  it('the only other one of three that answers is up as long as it goes on itself', () =>
    withStates(3, async (held) => {
      const { nodes, reported, look } = held;
      await fail(held, nodes[2]);
      nodes[1]!.head = 1_000_000;
      for (let blocks = 0; blocks < 30; blocks++) {
        nodes[0]!.head++;
        await look(2_000);
      }
      expect(nodes.map(reported)).to.deep.equal(['up', 'up', 'away: it does not answer']);
      await look(26_000);
      expect(reported(nodes[0])).to.match(/^away: it is \d+ blocks behind$/);
    }));
});

describe('a node that is left alone', () => {
  it('is believed only after all others were asked once more', () =>
    withStates(3, async (held) => {
      const { nodes, usable, time } = held;
      await fail(held, nodes[0]);
      await time.sleep(600);
      // It is back, and the service does not know it yet.
      nodes[0]!.absence = undefined;
      await fail(held, nodes[1]);
      expect(await usable()).to.deep.equal(['node-1', 'node-3']);
    }));

  it('is the only one to ask once these have failed again', () =>
    withStates(3, async (held) => {
      const { nodes, usable, time } = held;
      await fail(held, nodes[0]);
      await time.sleep(600);
      await fail(held, nodes[1]);
      const asked = (): number[] => nodes.map((node) => node.asked.length);
      const [first = 0, ...others] = asked();
      expect(await usable()).to.deep.equal(['node-3']);
      expect(await usable()).to.deep.equal(['node-3']);
      expect(asked()).to.deep.equal([first + 1, ...others]);
    }));

  it('makes all others be asked again if another one was left meanwhile', () =>
    withStates(3, async (held) => {
      const { nodes, usable, time } = held;
      await fail(held, nodes[0]);
      await time.sleep(600);
      await fail(held, nodes[1]);
      // The first is asked, and does not answer. Meanwhile the second comes back, and the third goes away.
      nodes[0]!.absence = 'hanging';
      const asking = usable();
      nodes[1]!.absence = undefined;
      await time.sleep(1_000);
      await fail(held, nodes[2]);
      nodes[0]!.absence = undefined;
      expect(await asking).to.deep.equal(['node-1', 'node-2']);
    }));

  it('ends the question for the others when the nodes are closed', () =>
    withStates(3, async (held) => {
      const { nodes, usable, states, time } = held;
      await fail(held, nodes[0]);
      await time.sleep(600);
      await fail(held, nodes[1]);
      let isAnswered = false;
      void usable().then(() => (isAnswered = true));
      states.close();
      await time.sleep(60_000);
      expect(isAnswered).to.equal(true);
    }));
});
