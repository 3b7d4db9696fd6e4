import { HDNodeWallet, Transaction, type JsonRpcProvider, type TransactionRequest } from 'ethers';

/**
 * A signed transaction. The same bytes, with the same hash, can be mined on several branches.
 */
export interface SignedCall {
  hash: string;
  bytes: string;
}

/** A local chain whose blocks a test mines itself, and can replace. */
export interface ForkableChain {
  /**
   * Signs a call as the node's n-th account, with its next nonce on the present branch after all mined and
   * waiting transactions.
   *
   * @param first mined before all others in its block.
   */
  sign(
    this: void,
    account: number,
    call: TransactionRequest,
    options?: { first: boolean },
  ): Promise<SignedCall>;
  /** Mines a block with exactly these transactions, and returns its number. */
  mine(this: void, ...calls: SignedCall[]): Promise<number>;
  /** Marks the present end of the chain as the place to go back to. */
  fork(this: void): Promise<Fork>;
  /** Lets the node mine by itself again. */
  release(this: void): Promise<void>;
}

/** A block that branches grow from. */
export interface Fork {
  /**
   * Takes the chain back to the block. Blocks that are mined from now on belong to the branch of this number.
   * The same transactions in the same blocks have the same block hashes on a branch of the same number, and
   * other hashes on other branches. The first branch is 0.
   */
  back(this: void, branch: number): Promise<void>;
}

/** The mnemonic of the accounts of every Hardhat node. */
export const PHRASE = 'test test test test test test test test test test test junk';
const GAS_LIMIT = 1_000_000;
const GWEI = 1_000_000_000n;

/** Takes mining over from the node. */
export async function takeOverMining(client: JsonRpcProvider): Promise<ForkableChain> {
  const accounts = HDNodeWallet.fromPhrase(PHRASE, undefined, "m/44'/60'/0'/0");
  const { chainId } = await client.getNetwork();
  let branch = 0;
  await client.send('evm_setAutomine', [false]);
  return {
    async sign(account, call, { first } = { first: false }) {
      const wallet = accounts.deriveChild(account);
      const bytes = await wallet.signTransaction({
        ...call,
        chainId,
        type: 2,
        nonce: await client.getTransactionCount(wallet.address, 'pending'),
        gasLimit: GAS_LIMIT,
        maxFeePerGas: 100n * GWEI,
        // The node orders the transactions of a block by their priority fee.
        maxPriorityFeePerGas: first ? 2n * GWEI : GWEI,
      });
      return { bytes, hash: Transaction.from(bytes).hash ?? '' };
    },
    async mine(...calls) {
      for (const { bytes } of calls) await client.send('eth_sendRawTransaction', [bytes]);
      const parent = await client.getBlock('latest');
      await client.send('evm_mine', [Number(parent?.timestamp) + 1 + branch]);
      const block = await client.getBlock('latest');
      if (block?.transactions.length !== calls.length) throw new Error('other transactions were mined');
      const receipts = await Promise.all(calls.map(({ hash }) => client.getTransactionReceipt(hash)));
      if (receipts.some((receipt) => receipt?.status !== 1)) throw new Error('a transaction was reverted');
      return block.number;
    },
    async fork() {
      branch = 0;
      let snapshot: unknown = await client.send('evm_snapshot', []);
      return {
        async back(next) {
          // A snapshot can be reverted to only once.
          if ((await client.send('evm_revert', [snapshot])) !== true) throw new Error('could not go back');
          snapshot = await client.send('evm_snapshot', []);
          branch = next;
        },
      };
    },
    release: () => client.send('evm_setAutomine', [true]) as Promise<void>,
  };
}
