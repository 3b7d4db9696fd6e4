import { takeSnapshot } from '@nomicfoundation/hardhat-toolbox/network-helpers';
import { Contract, type ContractTransaction, type Signer, type TransactionReceipt } from 'ethers';
import { TitleEscrow__factory, type TitleEscrow } from '../../../typechain-types';
import type { Call } from './reachable-states';
import type { InProcessRegistry } from './registry-in-process';
import type { TokenModel } from './token-model';

/** Sends and tries operations on the in-process chain. `by`: an address, or a role of the registry. */
export interface TokenCalls {
  /** All accounts, keyed by address or role. */
  signers: ReadonlyMap<string, Signer>;
  transactionOf(this: void, token: TokenModel, call: Call, remark?: string): Promise<ContractTransaction>;
  send(this: void, transaction: ContractTransaction, by: string): Promise<TransactionReceipt>;
  /** Simulates the transaction; rejects with its revert. */
  attempt(this: void, transaction: ContractTransaction, by: string): Promise<string>;
}

/** The default remark of operations. */
const REMARK = '0xc0ffee';
/** `TitleEscrow__factory.connect` parses the ABI at each call, and there are thousands. */
const ESCROW = TitleEscrow__factory.createInterface();

export function createTokenCalls(chain: InProcessRegistry, persons: readonly [string, Signer][]): TokenCalls {
  const signers = new Map<string, Signer>([...persons, ...Object.entries(chain.roles)]);
  const signerOf = (by: string): Signer => {
    const signer = signers.get(by);
    if (signer === undefined) throw new Error(`nobody is called "${by}"`);
    return signer;
  };
  return {
    signers,
    transactionOf: (token, call, remark = REMARK) => transactionOf(chain, token, call, remark),
    async send(transaction, by) {
      const sent = await signerOf(by).sendTransaction(transaction);
      const receipt = await sent.wait();
      if (receipt === null) throw new Error('it was not mined');
      return receipt;
    },
    attempt: (transaction, by) => signerOf(by).call(transaction),
  };
}

async function transactionOf(
  { registry }: InProcessRegistry,
  { tokenId, escrow: address }: TokenModel,
  { operation, first, second }: Call,
  remark: string,
): Promise<ContractTransaction> {
  const escrow = new Contract(address, ESCROW, registry.runner) as unknown as TitleEscrow;
  switch (operation) {
    case 'mint':
      return registry.mint.populateTransaction(first, second, tokenId, remark);
    case 'restore':
    case 'burn':
      return registry[operation].populateTransaction(tokenId, remark);
    case 'nominate':
    case 'transferBeneficiary':
      return escrow[operation].populateTransaction(first, remark);
    case 'transferHolder':
      return escrow.transferHolder.populateTransaction(second, remark);
    case 'transferOwners':
      return escrow.transferOwners.populateTransaction(first, second, remark);
    default:
      return escrow[operation].populateTransaction(remark);
  }
}

/** Runs `action`, and takes the chain back afterwards. */
export async function inSnapshot(action: () => Promise<void>): Promise<void> {
  const snapshot = await takeSnapshot();
  try {
    await action();
  } finally {
    await snapshot.restore();
  }
}
