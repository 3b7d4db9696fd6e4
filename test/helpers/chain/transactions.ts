import type { JsonRpcProvider } from 'ethers';

/** A transaction of an account of the local node. */
export interface Call {
  from: string;
  to: string;
  data: string;
}

/** More than any operation needs. An estimate would ignore earlier transactions of the same block. */
const GAS = '0x1e8480';
/** The same for all: at equal fees the node mines in the order of arrival. */
const FEES = { maxFeePerGas: '0x174876e800', maxPriorityFeePerGas: '0x3b9aca00' };

/** Sends one transaction, which is mined at once in a block of its own. Returns its hash. */
export async function sendTransaction(client: JsonRpcProvider, call: Call): Promise<string> {
  return (await client.send('eth_sendTransaction', [{ ...call, gas: GAS, ...FEES }])) as string;
}

/** Mines several transactions in one block, in the order given. */
export async function mineTogether(client: JsonRpcProvider, calls: readonly Call[]): Promise<void> {
  const hashes: string[] = [];
  await client.send('evm_setAutomine', [false]);
  try {
    for (const call of calls) hashes.push(await sendTransaction(client, call));
    await client.send('evm_mine', []);
  } finally {
    await client.send('evm_setAutomine', [true]);
  }
  const block = await client.getBlock('latest');
  if (block?.transactions.join() !== hashes.join()) throw new Error('not mined together in order');
  const receipts = await Promise.all(hashes.map((hash) => client.getTransactionReceipt(hash)));
  const reverted = receipts.find((receipt) => receipt?.status !== 1);
  if (reverted !== undefined) throw new Error(`transaction ${reverted?.hash} was reverted`);
}
