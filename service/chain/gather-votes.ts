import pMap from 'p-map';
import { ChainError } from '../base/errors';
import { checked, GET_LOGS, type Params } from './compare-answers';
import type { Node, NodeStates, Vote } from './node-states';
import { blockReceiptsOf, GET_BLOCK_RECEIPTS } from './read-receipts';
import type { RpcClient } from './rpc-client';

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
  given?: readonly Vote[];
  /** How long to wait for more after enough answers came in. All nodes are then asked at once. */
  graceMs?: number;
  /** Whether the answer may take longer than others. */
  isLong?: boolean;
}

/** The answers of nodes to one question. */
export function gather(
  states: NodeStates,
  nodes: readonly Node[],
  method: string,
  params: Params,
  { isLong = method === GET_LOGS || method === GET_BLOCK_RECEIPTS, ...gathering }: Gathering,
): Promise<Vote[]> {
  const ask = (client: RpcClient): Promise<unknown> =>
    method === GET_BLOCK_RECEIPTS
      ? blockReceiptsOf(client, String(params[0]), (receipts) => receipts)
      : client.send(method, [...params]);
  return gatherWith(states, nodes, ask, { ...gathering, isLong, method });
}

/** The answer of one node. */
export async function askOne(
  states: NodeStates,
  node: Node,
  method: string,
  params: Params,
): Promise<Vote | undefined> {
  return (await gather(states, [node], method, params, { wanted: (votes) => 1 - votes.length })).at(0);
}

/** The answers of one node to several questions. There are none if their batch failed. */
export async function askTogether(
  states: NodeStates,
  node: Node,
  method: string,
  params: readonly Params[],
): Promise<Vote[]> {
  if (params.length < 2 || !('sendBatches' in node.client)) {
    const each = await pMap(params, (one) => askOne(states, node, method, one), {
      concurrency: CONCURRENT_CALLS,
    });
    return each.map((vote) => vote ?? { node, kind: 'failure', error: undefined });
  }
  const ask = (client: RpcClient): Promise<unknown> =>
    client.sendBatches?.(method, params) ?? Promise.reject(new Error('no batches'));
  const [vote] = await gatherWith(states, [node], ask, { isLong: true, wanted: (votes) => 1 - votes.length });
  if (vote?.kind !== 'value' || !Array.isArray(vote.value)) return [];
  return vote.value.map((value: unknown): Vote => ({ node, kind: 'value', value }));
}

/**
 * Asks nodes one after the other until there are enough answers, or none is left. As many are asked at the
 * same time as answers are wanted. A node that is late is waited for, but another one is asked too.
 */
function gatherWith(
  states: NodeStates,
  nodes: readonly Node[],
  ask: (client: RpcClient) => Promise<unknown>,
  { wanted, isLong, given = [], graceMs = 0, method = '' }: Gathering & { isLong: boolean; method?: string },
): Promise<Vote[]> {
  return new Promise((resolve) => {
    const votes = [...given];
    const left = nodes.filter((node) => given.every((vote) => vote.node !== node));
    const open = new Set<Node>();
    const late = new Set<Node>();
    let grace: ReturnType<typeof setTimeout> | undefined;
    const end = (): void => {
      clearTimeout(grace);
      resolve(votes);
    };
    const look = (): void => {
      const more = wanted(votes);
      if (more > 0 || graceMs > 0)
        while (open.size - late.size < (graceMs > 0 ? Infinity : more)) {
          const next = left.shift();
          if (next === undefined) break;
          start(next);
        }
      if (open.size === 0 || (more <= 0 && graceMs === 0)) end();
      else if (more <= 0) grace ??= setTimeout(end, graceMs);
    };
    const start = (node: Node): void => {
      open.add(node);
      states.ask(node, ask, {
        isLong,
        onVote: (vote) => {
          if (!open.delete(node)) return;
          late.delete(node);
          votes.push(checked(method, vote));
          look();
        },
        onLate: (isGivenUp) => {
          if (!open.has(node)) return;
          if (isGivenUp) open.delete(node);
          if (isGivenUp) late.delete(node);
          else late.add(node);
          look();
        },
      });
    };
    look();
  });
}

/** As many answers as there are nodes, but this many are enough after a moment. */
export function enough(answers: number): Wanted {
  return (votes) => answers - votes.filter(({ kind }) => kind === 'value').length;
}

/** The value of a vote. Throws the error of a refusal or a failure. */
export function valueOf(vote: Vote | undefined, method: string): unknown {
  if (vote === undefined)
    throw new ChainError('RPC_UNREACHABLE', `No node answers ${method} in time.`, { retryable: true });
  if (vote.kind === 'value') return vote.value;
  throw vote.error;
}
