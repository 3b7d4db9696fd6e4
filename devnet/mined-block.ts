import { Transaction, type JsonRpcProvider } from 'ethers';

/** A block of a Hardhat node, with everything that mines it again with the same hash. */
export interface MinedBlock {
  number: number;
  hash: string;
  /** In seconds. */
  timestamp: number;
  prevRandao: string;
  /** Signed bytes, in order. */
  transactions: string[];
}

/** Reads a block. */
export async function readBlock(client: JsonRpcProvider, number: number): Promise<MinedBlock> {
  const block = await client.getBlock(number, true);
  if (!block?.hash || !block.prevRandao) throw new Error(`the node has no block ${number}`);
  const { hash, timestamp, prevRandao, prefetchedTransactions } = block;
  const transactions = prefetchedTransactions.map((sent) => Transaction.from(sent).serialized);
  return { number, hash, timestamp, prevRandao, transactions };
}

/** Signed bytes of the transactions that wait to be mined. */
export async function readPending(client: JsonRpcProvider): Promise<string[]> {
  const waiting = (await client.send('eth_pendingTransactions', [])) as { hash: string }[];
  const sent = await Promise.all(waiting.map(({ hash }) => client.getTransaction(hash)));
  return sent.flatMap((transaction) => (transaction ? [Transaction.from(transaction).serialized] : []));
}

/** Sends signed transactions, in order. The node must not mine by itself. */
export async function sendRaw(client: JsonRpcProvider, transactions: readonly string[]): Promise<void> {
  for (const bytes of transactions) await client.send('eth_sendRawTransaction', [bytes]);
}

/**
 * Mines a block again on top of the same parent, and returns its hash. It is equal unless something else
 * changed the state. The node must not mine by itself.
 */
export async function mineAgain(client: JsonRpcProvider, block: MinedBlock): Promise<string> {
  await client.send('hardhat_setPrevRandao', [block.prevRandao]);
  await sendRaw(client, block.transactions);
  await client.send('evm_mine', [block.timestamp]);
  return (await client.getBlock(block.number))?.hash ?? '';
}

/** How a node mines: blocks at this interval in milliseconds, or with 0 one for each transaction. */
export async function mineByItself(client: JsonRpcProvider, blockTimeMs: number): Promise<void> {
  await client.send('evm_setAutomine', [blockTimeMs === 0]);
  await client.send('evm_setIntervalMining', [blockTimeMs]);
}

/** Stops mining until `mineByItself`. */
export async function stopMining(client: JsonRpcProvider): Promise<void> {
  await client.send('evm_setIntervalMining', [0]);
  await client.send('evm_setAutomine', [false]);
}

/** Lets the clock of a chain whose blocks were mined again go on from now. */
export async function setClockToNow(client: JsonRpcProvider): Promise<void> {
  const head = await client.getBlock('latest');
  const behind = Math.floor(Date.now() / 1000) - Number(head?.timestamp);
  if (behind > 0) await client.send('evm_increaseTime', [behind]);
}
