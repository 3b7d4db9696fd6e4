import type { JsonRpcProvider } from 'ethers';
import { TitleEscrowFactory__factory, TradeTrustTokenStandard__factory } from '../../../typechain-types';
import { ACCOUNTS, callOf, callOfPause } from '../chain/random-lifecycles';
import {
  apply,
  isLegal,
  TOKEN_OPERATIONS,
  unmintedToken,
  type Named,
  type TokenModel,
  type TokenOperation,
} from '../chain/token-model';
import { sendTransaction } from '../chain/transactions';
import type { SeededRandom } from '../seeded-random';

/** An operation with the arguments of its transaction. */
type Move =
  | { kind: 'token'; token: number; operation: TokenOperation; named: Named; remark: string }
  | { kind: 'registry'; operation: 'pause' | 'unpause'; remark: string };

/** The tokens of a registry, and whether it is paused. */
interface Situation {
  tokens: TokenModel[];
  isPaused: boolean;
}

/** A block that was mined, and the situation after it. */
interface Block {
  timestamp: number;
  hash: string;
  moves: readonly Move[];
  after: Situation;
  /** The node's snapshot after it. */
  snapshot: string;
}

/** Blocks that were replaced, and the block that they grew from. */
interface Abandoned {
  index: number;
  ancestor: string;
  blocks: readonly Block[];
}

interface BranchingParts {
  client: JsonRpcProvider;
  registry: string;
  random: SeededRandom;
  depth: number;
  tokenIds: readonly bigint[];
}

const MOST_IN_A_BLOCK = 4;
const LONGEST_REMARK = 20;
/** Branches differ by their timestamps. */
const BRANCHES = 3;

/**
 * A chain with random operations on its tokens. Its last blocks are replaced by others: by ones with some of
 * the same transactions, or by blocks that were replaced before. No reorganisation goes back further than
 * `depth` blocks from the highest block so far.
 */
export class BranchingChain {
  /** From the block that all branches share. */
  readonly #blocks: Block[];
  readonly #abandoned: Abandoned[] = [];
  /** Moves of blocks that were replaced. They may be mined again. */
  #waiting: Move[] = [];
  #highest = 0;

  private constructor(
    private readonly parts: BranchingParts,
    private readonly accounts: readonly string[],
    first: Block,
  ) {
    this.#blocks = [first];
  }

  /** Begins at the present head of the chain. The node must not mine by itself. */
  static async begin(parts: BranchingParts): Promise<BranchingChain> {
    const { client, tokenIds } = parts;
    const registry = TradeTrustTokenStandard__factory.connect(parts.registry, client);
    const factory = TitleEscrowFactory__factory.connect(await registry.titleEscrowFactory(), client);
    const tokens = await Promise.all(
      tokenIds.map(async (id) => unmintedToken(id, await factory.getEscrowAddress(registry, id))),
    );
    const accounts = await Promise.all(
      ACCOUNTS.map(async (index) => (await client.getSigner(index)).address),
    );
    const head = await client.getBlock('latest');
    return new BranchingChain(parts, accounts, {
      timestamp: head?.timestamp ?? 0,
      hash: head?.hash ?? '',
      moves: [],
      after: { tokens, isPaused: false },
      snapshot: (await client.send('evm_snapshot', [])) as string,
    });
  }

  /** Mines a block, which may be empty. */
  async mine(): Promise<void> {
    const after = copyOf(this.#head.after);
    const moves: Move[] = [];
    const most = this.parts.random.chance(0.15) ? 0 : 1 + this.parts.random.below(MOST_IN_A_BLOCK);
    while (moves.length < most) {
      const move = this.#again() ?? this.#next(after);
      if (move === undefined) break;
      if (!this.#isPossible(move, after)) continue;
      advance(after, move);
      moves.push(move);
    }
    await this.#mineWith(moves, after, this.#head.timestamp + 1 + this.parts.random.below(BRANCHES));
  }

  /** Mines as many empty blocks as it takes to be higher than ever before. */
  async mineBeyond(): Promise<void> {
    const most = this.#highest;
    while (this.#blocks.length - 1 <= most)
      await this.#mineWith([], copyOf(this.#head.after), this.#head.timestamp + 1);
  }

  /** Replaces the last blocks. @returns their number; 0 if none can be replaced. */
  async reorganise(): Promise<number> {
    const lowest = Math.max(0, this.#highest - this.parts.depth);
    const room = this.#blocks.length - 1 - lowest;
    if (room <= 0) return 0;
    const former = this.#abandoned.filter(
      ({ index, ancestor }) => index >= lowest && this.#blocks[index]?.hash === ancestor,
    );
    if (former.length > 0 && this.parts.random.chance(0.3))
      return this.#return(this.parts.random.pick(former));
    const removed = 1 + this.parts.random.below(room);
    const gone = await this.#goBackTo(this.#blocks.length - 1 - removed);
    this.#waiting = gone.flatMap(({ moves }) => moves);
    const added = this.parts.random.below(removed + 2);
    for (let block = 0; block < added; block++) await this.mine();
    return removed;
  }

  /** Puts blocks back that were replaced: they have the same hashes as before. */
  async #return({ index, blocks }: Abandoned): Promise<number> {
    const gone = await this.#goBackTo(index);
    this.#waiting = [];
    for (const { moves, after, timestamp, hash } of blocks) {
      await this.#mineWith(moves, after, timestamp);
      if (this.#head.hash !== hash) throw new Error('the branch did not come back as it was');
    }
    return gone.length;
  }

  async #goBackTo(index: number): Promise<Block[]> {
    const ancestor = this.#blocks[index];
    if (ancestor === undefined) throw new Error('there is no such block');
    if ((await this.parts.client.send('evm_revert', [ancestor.snapshot])) !== true)
      throw new Error('could not go back');
    ancestor.snapshot = (await this.parts.client.send('evm_snapshot', [])) as string;
    const gone = this.#blocks.splice(index + 1);
    if (gone.length > 0) this.#abandoned.push({ index, ancestor: ancestor.hash, blocks: gone });
    return gone;
  }

  get #head(): Block {
    return this.#blocks.at(-1) as Block;
  }

  /** A move of a replaced block, in the order of that block. Some are left out. */
  #again(): Move | undefined {
    while (this.#waiting.length > 0) {
      const move = this.#waiting.shift();
      if (!this.parts.random.chance(0.25)) return move;
    }
    return undefined;
  }

  #next(situation: Situation): Move | undefined {
    const remark = this.parts.random.hex(this.parts.random.below(LONGEST_REMARK));
    if (situation.isPaused) return { kind: 'registry', operation: 'unpause', remark };
    if (this.parts.random.chance(0.05)) return { kind: 'registry', operation: 'pause', remark };
    const named = {
      first: this.parts.random.pick(this.accounts),
      second: this.parts.random.pick(this.accounts),
    };
    const possible = situation.tokens.flatMap((token, index) =>
      TOKEN_OPERATIONS.filter((operation) => isLegal(token, operation, named)).map((operation): Move => ({
        kind: 'token',
        token: index,
        operation,
        named,
        remark,
      })),
    );
    return possible.length === 0 ? undefined : this.parts.random.pick(possible);
  }

  #isPossible(move: Move, { tokens, isPaused }: Situation): boolean {
    if (move.kind === 'registry') return isPaused === (move.operation === 'unpause');
    const token = tokens[move.token];
    return !isPaused && token !== undefined && isLegal(token, move.operation, move.named);
  }

  async #mineWith(moves: readonly Move[], after: Situation, timestamp: number): Promise<void> {
    const now = copyOf(this.#head.after);
    for (const move of moves) {
      await sendTransaction(this.parts.client, this.#callOf(move, now));
      advance(now, move);
    }
    await this.parts.client.send('evm_mine', [timestamp]);
    const block = await this.parts.client.getBlock('latest');
    if (block?.transactions.length !== moves.length) throw new Error('other transactions were mined');
    const snapshot = (await this.parts.client.send('evm_snapshot', [])) as string;
    this.#blocks.push({ timestamp, hash: block.hash ?? '', moves, after, snapshot });
    this.#highest = Math.max(this.#highest, this.#blocks.length - 1);
  }

  #callOf(move: Move, { tokens }: Situation) {
    if (move.kind === 'registry') return callOfPause(this.parts.registry, move.operation, move.remark);
    const token = tokens[move.token];
    if (token === undefined) throw new Error('there is no such token');
    return callOf(this.parts.registry, token, move.operation, move.named, move.remark);
  }
}

function advance(situation: Situation, move: Move): void {
  if (move.kind === 'registry') situation.isPaused = move.operation === 'pause';
  else {
    const token = situation.tokens[move.token];
    if (token !== undefined) apply(token, move.operation, move.named);
  }
}

function copyOf({ tokens, isPaused }: Situation): Situation {
  return { tokens: tokens.map((token) => ({ ...token })), isPaused };
}
