import { ChainError } from '../base/errors';
import { checked, GET_LOGS, type Question } from './compare-answers';
import type { Node, Params } from './node';
import type { NodeStates, Vote } from './node-states';
import { blockReceiptsOf, GET_BLOCK_RECEIPTS } from './read-receipts';

// Asks several nodes the same, until there are enough answers. Which answer counts is decided elsewhere.

/** Questions that are asked, or answers that are compared, at the same time. */
export const CONCURRENT_CALLS = 8;
/** Readings of the same that may differ before the difference is an error, and the pause between them. */
export const READINGS = 4;
export const PAUSE_MS = 500;
/** After two nodes have given their newest block or a count, the others have this long. */
export const GRACE_MS = 500;

/** How many more answers are wanted after these. */
type Wanted = (votes: readonly Vote[]) => number;

interface Gathering {
  wanted: Wanted;
  /** Answers from before. Their nodes are not asked again. */
  earlier?: readonly Vote[];
  /** How long to wait for more after enough answers came in. All nodes are then asked at once. */
  graceMs?: number;
  /** Whether the answer may take longer than others. By default that of a question about many logs. */
  isLong?: boolean;
}

/** The answer of one node. */
export async function askOne(states: NodeStates, node: Node, question: Question): Promise<Vote | undefined> {
  return (await gather(states, [node], question, { wanted: (votes) => 1 - votes.length })).at(0);
}

/**
 * The answers of nodes to several questions, by node. Each is asked those that `questionsOf` gives for it,
 * all at once. Two nodes are asked, and another one if one of them is late.
 */
export async function gatherTogether(
  states: NodeStates,
  nodes: readonly Node[],
  method: string,
  questionsOf: (node: Node) => readonly Params[],
): Promise<ReadonlyMap<Node, readonly unknown[]>> {
  const ask = (node: Node): Promise<unknown> => node.sendBatch(method, questionsOf(node));
  const isLong = nodes.some((node) => questionsOf(node).length > 1);
  const votes = await gather(states, nodes, { method: '', params: [], ask }, { isLong, wanted: enough(2) });
  return new Map(
    votes.flatMap(({ node, ...vote }) => ('value' in vote ? [[node, vote.value as unknown[]]] : [])),
  );
}

/**
 * Asks nodes one after the other until there are enough answers, or none is left. As many are asked at the
 * same time as answers are wanted. A node that is late is waited for, but another one is asked too, for logs
 * also one that comes back meanwhile: a question to a node that was away unnoticed is answered only by its
 * time-out.
 */
export function gather(
  states: NodeStates,
  nodes: readonly Node[],
  { method, params, ask }: Question,
  gathering: Gathering,
): Promise<Vote[]> {
  const isReading = ask !== undefined || [GET_LOGS, GET_BLOCK_RECEIPTS].includes(method);
  const { wanted, isLong = isReading, earlier = [], graceMs = 0 } = gathering;
  const mayJoin = isReading && nodes.length > 1;
  const askNode = ask ?? ((node) => answerOf(node, method, params));
  return new Promise((resolve) => {
    const votes = [...earlier];
    const askedNodes = new Set(earlier.map(({ node }) => node));
    const nextNode = (): Node | undefined =>
      [...nodes, ...(mayJoin ? states.up() : [])].find((node) => !askedNodes.has(node));
    const open = new Set<Node>();
    const late = new Set<Node>();
    let cancelGrace: (() => void) | undefined;
    let stopListening: (() => void) | undefined;
    let isOver = false;
    const end = (): void => {
      isOver = true;
      cancelGrace?.();
      stopListening?.();
      resolve(votes);
    };
    const look = (): void => {
      if (isOver) return;
      const more = wanted(votes);
      if (more > 0 || graceMs > 0)
        while (open.size - late.size < (graceMs > 0 ? Infinity : more)) {
          const next = nextNode();
          if (next === undefined) break;
          start(next);
        }
      if (open.size === 0 || (more <= 0 && graceMs === 0)) end();
      else if (more <= 0) cancelGrace ??= states.time.later(graceMs, end);
    };
    const start = (node: Node): void => {
      askedNodes.add(node);
      open.add(node);
      states.ask(node, () => askNode(node), {
        isLong,
        onVote: (vote) => {
          if (!open.delete(node)) return;
          late.delete(node);
          votes.push(checked(method, vote));
          look();
        },
        onLate: (isGivenUp) => {
          if (isOver || !open.has(node)) return;
          if (isGivenUp) open.delete(node);
          if (isGivenUp) late.delete(node);
          else late.add(node);
          if (mayJoin) stopListening ??= states.onChange(look);
          look();
        },
      });
    };
    look();
  });
}

function answerOf(node: Node, method: string, params: Params): Promise<unknown> {
  if (method !== GET_BLOCK_RECEIPTS) return node.send(method, params);
  return blockReceiptsOf(node, String(params[0]), (receipts) => receipts);
}

/** As many answers as there are nodes, but this many are enough after a moment. */
export function enough(answers: number): Wanted {
  return (votes) => answers - votes.filter(({ kind }) => kind === 'value').length;
}

/** The value of a vote. Throws the error of a refusal or a failure. */
export function valueOf(vote: Vote | undefined, method: string): unknown {
  if (vote === undefined) throw new ChainError('RPC_UNREACHABLE', `No node answers ${method} in time.`);
  if (vote.kind === 'value') return vote.value;
  throw vote.error;
}
