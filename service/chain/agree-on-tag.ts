import { toQuantity } from 'ethers';
import { pause } from '../base/time';
import { differing, isDeepAlike, isNone } from './compare-answers';
import { askOne, enough, gather, GRACE_MS, PAUSE_MS, READINGS, valueOf } from './gather-votes';
import type { Node } from './node';
import { malformed, isBlockAbsent, isParameterRefused } from './node-errors';
import { MOST_BEHIND, type NodeStates, type Vote } from './node-states';
import { blockOf, GET_BLOCK, type ChainBlock } from './read-chain';

// The block that several nodes have under a tag. Each node may be ahead of the others, or on another branch.

/** Two nodes have a common block at most this many blocks below their heads. */
const MOST_FORKED = 16;

/** A block, with the answer that it was read from. */
export interface BlockAnswer {
  block: ChainBlock;
  raw: unknown;
}

/** The block that one node has under the tag. */
export interface Head extends BlockAnswer {
  vote: Vote;
}

/**
 * The block of a tag, as `latest` or `finalized`, is the highest one that two nodes have under it.
 * Undefined if a node has none under another tag than `latest`, and no two have one.
 *
 * @param onHeads is called after each reading with the heads of the nodes and the block they agree on.
 * @throws the refusal of two nodes that do not know the tag.
 */
export async function agreeOnTag(
  states: NodeStates,
  tag: string,
  onHeads: (heads: readonly Head[], agreed: BlockAnswer | undefined) => void,
): Promise<BlockAnswer | undefined> {
  for (let reading = 1; ; reading++) {
    const nodes = await states.usable();
    const question = { method: GET_BLOCK, params: [tag, false] };
    // After the first difference, a slow node is waited for too: it may decide, or have a higher block.
    const wanted = enough(reading === 1 ? 2 : nodes.length);
    const votes = await gather(states, nodes, question, { wanted, graceMs: GRACE_MS });
    const heads = votes.flatMap((vote) => headIn(vote) ?? []);
    const common = heads.length < 2 ? undefined : await highestOfTwo(states, heads);
    const isComplete = votes.length === nodes.length || reading > 1;
    const agreed = common && (isComplete || isNear(common.block, heads)) ? common : undefined;
    onHeads(heads, agreed);
    if (agreed !== undefined) return agreed;
    const [only] = heads;
    if (nodes.length === 1 && only !== undefined) return { block: only.block, raw: only.raw };
    const answers = votes.filter(({ kind }) => kind !== 'failure');
    if (tag !== 'latest' && isComplete && heads.length < 2) {
      const refusals = answers.filter(isTagRefused);
      if (refusals.length >= Math.min(2, nodes.length)) valueOf(refusals[0], GET_BLOCK);
      if (answers.some(hasNoBlock)) return undefined;
    }
    if (reading === READINGS || (nodes.length === 1 && answers.length > 0)) {
      if (answers.length === 0) valueOf(votes.at(-1), GET_BLOCK);
      const areAlike = new Set(answers.map(isTagRefused)).size === 1;
      if (areAlike && answers.every(({ kind }) => kind === 'refusal')) valueOf(answers[0], GET_BLOCK);
      throw answers.length > 1 ? differing(question, answers) : malformed(GET_BLOCK);
    }
    if (isComplete && answers.length > 1) await pause(states.time, PAUSE_MS);
  }
}

/** The highest block that two of the nodes have. */
async function highestOfTwo(states: NodeStates, heads: readonly Head[]): Promise<BlockAnswer | undefined> {
  const falling = [...heads].sort((one, other) => other.block.number - one.block.number);
  for (const [place, lower] of falling.entries())
    for (const higher of falling.slice(0, place)) {
      if (isDeepAlike(lower.block, higher.block)) return lower;
      if (lower.block.number === higher.block.number) continue;
      const there = await blockAt(states, higher.vote.node, lower.block.number);
      if (there && isDeepAlike(lower.block, there.block)) return lower;
    }
  // They are on different branches.
  const [, second] = falling;
  const top = second?.block.number ?? 0;
  for (let number = top - 1; number >= Math.max(top - MOST_FORKED, 0); number--) {
    const there = await Promise.all(falling.map(({ vote }) => blockAt(states, vote.node, number)));
    const blocks = there.flatMap((block) => block ?? []);
    const common = blocks.find((block, place) =>
      blocks.slice(0, place).some((other) => isDeepAlike(block.block, other.block)),
    );
    if (common) return common;
  }
  return undefined;
}

async function blockAt(states: NodeStates, node: Node, number: number): Promise<BlockAnswer | undefined> {
  const vote = await askOne(states, node, { method: GET_BLOCK, params: [toQuantity(number), false] });
  const head = vote && headIn(vote);
  return head?.block.number === number ? head : undefined;
}

function headIn(vote: Vote): Head | undefined {
  if (vote.kind !== 'value') return undefined;
  const block = blockOf(vote.value);
  return block && { vote, block, raw: vote.value };
}

/** Whether no head is far above the block. */
function isNear({ number }: ChainBlock, heads: readonly Head[]): boolean {
  return heads.every(({ block }) => block.number <= number + MOST_BEHIND);
}

/** Whether a node has no block of this tag or number, now or any more. */
export function hasNoBlock(vote: Vote): boolean {
  return isNone(vote) || (vote.kind === 'refusal' && isBlockAbsent(vote.error));
}

/** Whether a node does not know a tag. */
function isTagRefused(vote: Vote): boolean {
  return vote.kind === 'refusal' && !hasNoBlock(vote) && isParameterRefused(vote.error);
}
