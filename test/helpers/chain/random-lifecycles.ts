import type { Interface } from 'ethers';
import {
  TitleEscrowFactory__factory,
  TitleEscrow__factory,
  TradeTrustTokenStandard__factory,
} from '../../../typechain-types';
import type { SeededRandom } from '../seeded-random';
import {
  TOKEN_OPERATIONS,
  apply,
  isLegal,
  unmintedToken,
  type Named,
  type TokenModel,
  type TokenOperation,
} from './token-model';
import { mineTogether, sendTransaction, type Call } from './transactions';
import { DEPLOYER, type LocalSetup } from './local-setup';

/** All operations, of a token or of the registry as a whole. */
export type Operation = TokenOperation | 'pause' | 'unpause';
export const OPERATIONS: readonly Operation[] = [...TOKEN_OPERATIONS, 'pause', 'unpause'];

/** Tokens on which random operations can be run, as many as wanted. */
export interface RandomLifecycles {
  tokens: readonly TokenModel[];
  /** How often each operation was sent. */
  counts: Record<Operation, number>;
  /**
   * Sends this many operations, all of them legal: some in a block of their own, some together in one block.
   */
  run(this: void, operations: number): Promise<void>;
}

const REGISTRY = TradeTrustTokenStandard__factory.createInterface();
const ESCROW = TitleEscrow__factory.createInterface();
/** The node's accounts that own and hold tokens. */
export const ACCOUNTS = [1, 2, 3, 4];
const MOST_IN_A_BLOCK = 8;
const LONGEST_REMARK = 120;

/** Creates the lifecycles of tokens with these ids. None of them is minted yet. */
export async function randomLifecycles(
  local: LocalSetup,
  random: SeededRandom,
  tokenIds: readonly bigint[],
): Promise<RandomLifecycles> {
  const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, local.client);
  const factory = TitleEscrowFactory__factory.connect(await registry.titleEscrowFactory(), local.client);
  const tokens = await Promise.all(
    tokenIds.map(async (id) => unmintedToken(id, await factory.getEscrowAddress(registry, id))),
  );
  const accounts = await Promise.all(ACCOUNTS.map((index) => local.account(index)));
  const counts = Object.fromEntries(OPERATIONS.map((operation) => [operation, 0])) as Record<
    Operation,
    number
  >;
  let isPaused = await registry.paused();

  /**
   * Chooses the next operation and applies it to the model at once: operations that are sent together are
   * mined in the same order.
   */
  function next(): Call {
    const operation = isPaused || random.chance(0.03) ? nextOfRegistry() : undefined;
    if (operation === undefined) return nextOfToken();
    return callOfPause(local.registryAddress, operation, remark());
  }

  function nextOfRegistry(): 'pause' | 'unpause' {
    const operation = isPaused ? 'unpause' : 'pause';
    isPaused = !isPaused;
    counts[operation]++;
    return operation;
  }

  /** Prefers the operations that were sent least, so that those that need a history also occur. */
  function nextOfToken(): Call {
    const named = { first: random.pick(accounts), second: random.pick(accounts) };
    const possible = tokens.flatMap((token) =>
      TOKEN_OPERATIONS.filter((operation) => isLegal(token, operation, named)).map((operation) => ({
        token,
        operation,
      })),
    );
    const fewest = Math.min(...possible.map(({ operation }) => counts[operation]));
    const rare = possible.filter(({ operation }) => counts[operation] === fewest);
    const { token, operation } = random.pick(random.chance(0.4) ? rare : possible);
    const call = callOf(local.registryAddress, token, operation, named, remark());
    apply(token, operation, named);
    counts[operation]++;
    return call;
  }

  function remark(): string {
    return random.hex(random.chance(0.3) ? 0 : random.below(LONGEST_REMARK + 1));
  }

  return {
    tokens,
    counts,
    async run(operations) {
      for (let left = operations; left > 0;) {
        if (random.chance(0.1)) await local.client.send('evm_increaseTime', [random.below(100_000)]);
        if (random.chance(0.1))
          await local.client.send('hardhat_mine', [`0x${(1 + random.below(40)).toString(16)}`]);
        const size = Math.min(left, random.chance(0.5) ? 1 : 2 + random.below(MOST_IN_A_BLOCK - 1));
        const calls = Array.from({ length: size }, next);
        if (calls.length === 1 && calls[0]) await sendTransaction(local.client, calls[0]);
        else await mineTogether(local.client, calls);
        left -= size;
      }
    },
  };
}

/** Encodes an operation. The generated types have no signature for a union of names. */
function encode(contract: Interface, operation: Operation, args: unknown[]): string {
  return contract.encodeFunctionData(operation, args);
}

/** The transaction that pauses or unpauses the registry. */
export function callOfPause(registry: string, operation: 'pause' | 'unpause', remark: string): Call {
  return { from: DEPLOYER, to: registry, data: encode(REGISTRY, operation, [remark]) };
}

/** The transaction of an operation, sent by the one account that may. */
export function callOf(
  registry: string,
  token: TokenModel,
  operation: TokenOperation,
  { first, second }: Named,
  remark: string,
): Call {
  const { tokenId, beneficiary, holder } = token;
  const byDeployer = (data: string): Call => ({ from: DEPLOYER, to: registry, data });
  const by = (from: string, data: string): Call => ({ from, to: token.escrow, data });
  switch (operation) {
    case 'mint':
      return byDeployer(encode(REGISTRY, 'mint', [first, second, tokenId, remark]));
    case 'restore':
    case 'burn':
      return byDeployer(encode(REGISTRY, operation, [tokenId, remark]));
    case 'nominate':
      return by(beneficiary, encode(ESCROW, operation, [first, remark]));
    case 'transferBeneficiary':
      return by(holder, encode(ESCROW, operation, [first, remark]));
    case 'transferHolder':
      return by(holder, encode(ESCROW, operation, [second, remark]));
    case 'transferOwners':
      return by(holder, encode(ESCROW, operation, [first, second, remark]));
    case 'rejectTransferHolder':
      return by(holder, encode(ESCROW, operation, [remark]));
    default:
      return by(beneficiary, encode(ESCROW, operation, [remark]));
  }
}
