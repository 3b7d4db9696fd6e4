import { toQuantity, type BlockTag, type ContractRunner } from 'ethers';
import type { Rpc } from './node';

// The state of accounts and contracts.

/** A call of a contract, as a transaction would make it. */
export interface Call {
  from?: string;
  to: string;
  data: string;
  /** A quantity: the most gas that it may take. */
  gas?: string;
}

/** Makes the calls of TypeChain's contracts. */
export function runnerOf(chain: Rpc): ContractRunner {
  return {
    provider: null,
    call: ({ to, data, blockTag }) =>
      callContract(chain, { to: to as string, data: data ?? '0x' }, blockTag ?? 'latest'),
  };
}

/** @throws CALL_EXCEPTION of ethers if the contract reverts, or the node refuses. */
export async function callContract(chain: Rpc, call: Call, at: BlockTag = 'latest'): Promise<string> {
  return String(await chain.send('eth_call', [call, tagOf(at)]));
}

/** @throws CALL_EXCEPTION of ethers if the contract reverts, or the node refuses. */
export async function estimateGas(chain: Rpc, call: Call): Promise<bigint> {
  return BigInt(String(await chain.send('eth_estimateGas', [call])));
}

/** The code of a contract; `0x` if there is none. */
export async function codeAt(chain: Rpc, address: string, at: BlockTag = 'latest'): Promise<string> {
  return String(await chain.send('eth_getCode', [address.toLowerCase(), tagOf(at)]));
}

/** In wei. */
export async function balanceOf(chain: Rpc, address: string): Promise<bigint> {
  return BigInt(String(await chain.send('eth_getBalance', [address.toLowerCase(), 'latest'])));
}

/** The number of an account's transactions. `pending`: also those that wait in the node. */
export async function transactionCountOf(chain: Rpc, address: string, at: BlockTag): Promise<number> {
  return Number(await chain.send('eth_getTransactionCount', [address.toLowerCase(), tagOf(at)]));
}

function tagOf(at: BlockTag): BlockTag {
  return typeof at === 'number' ? toQuantity(at) : at;
}
