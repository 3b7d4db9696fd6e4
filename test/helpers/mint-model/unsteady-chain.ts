import { Transaction, Wallet, type TransactionRequest } from 'ethers';
import { registryInterface } from '../../../service/registry/registry-contracts';
import type { RpcAnswer } from '../chain/rpc-proxy';
import type { NodeInProcess } from './place';
import type { VirtualTime } from '../virtual-time';

/** A transaction that a node of the network has had. It may be mined as long as its nonce is not used. */
export interface HeardTransaction {
  hash: string;
  raw: string;
  from: string;
  nonce: number;
  /** The token that it mints, if any. */
  tokenId: string | undefined;
}

/** A block, with the snapshot of its parent. */
interface Block {
  number: number;
  timestamp: number;
  /** Taken before the block was mined. */
  snapshot: unknown;
  transactions: string[];
}

interface NodeBlock {
  number: string;
  timestamp: string;
  transactions: string[];
}

interface UnsteadyChainOptions {
  node: NodeInProcess;
  registryAddress: string;
  time: VirtualTime;
  /** A block that ever had this many blocks on top is not taken back. */
  confirmations: number;
}

/** Another sender with the wallet's key pays more than any mint. */
const OTHER_FEES = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 10n };
const CHAIN_ID = 31337;

/**
 * The chain of a real node that mines on request, and the network around it: transactions that the network
 * knows may come back after the node forgot them, and the newest blocks may be replaced.
 */
export class UnsteadyChain {
  /** All transactions that any node of the network has had, keyed by hash. */
  readonly heard = new Map<string, HeardTransaction>();
  head = 0;
  /** The highest head so far. */
  highest = 0;
  /** The block at which the scenario began. */
  base = 0;
  /** A cache: recovering the signers takes as long as all of a scenario's database statements. */
  readonly #read = new Map<string, HeardTransaction>();
  #blocks: Block[] = [];
  #timestamp = 0;
  #branch = 0;

  constructor(private readonly options: UnsteadyChainOptions) {}

  async begin(): Promise<void> {
    const block = await this.#newest();
    this.head = this.highest = this.base = Number(block.number);
    this.#timestamp = Number(block.timestamp);
  }

  /** The newest block that no reorganisation takes back. */
  get settledBlock(): number {
    return Math.max(this.highest - this.options.confirmations, this.base);
  }

  /** Makes a call at the node itself. */
  ask(method: string, params: readonly unknown[]): Promise<RpcAnswer> {
    return this.options.time.real(this.options.node.ask(method, params));
  }

  call(method: string, ...params: unknown[]): Promise<unknown> {
    return this.options.time.real(this.options.node.call(method, ...params));
  }

  /** Sends a transaction to the node, and returns the answer. */
  async send(raw: string): Promise<RpcAnswer> {
    const answer = await this.ask('eth_sendRawTransaction', [raw]);
    if ('result' in answer) {
      const heard = this.read(raw);
      this.heard.set(heard.hash, heard);
    }
    return answer;
  }

  /** Parses the bytes of a transaction. */
  read(raw: string): HeardTransaction {
    const read = this.#read.get(raw) ?? readTransaction(raw);
    this.#read.set(raw, read);
    return read;
  }

  async count(wallet: string, at: 'latest' | 'pending' | number): Promise<number> {
    const block = typeof at === 'number' ? hex(at) : at;
    return Number(await this.call('eth_getTransactionCount', wallet, block));
  }

  /** The waiting transactions, in the order of nonces. */
  async waiting(): Promise<HeardTransaction[]> {
    const waiting = (await this.call('eth_pendingTransactions')) as { hash: string }[];
    return waiting
      .flatMap(({ hash }) => this.heard.get(hash) ?? [])
      .sort((left, right) => left.nonce - right.nonce || (left.hash < right.hash ? -1 : 1));
  }

  /** Mines a block with the waiting transactions, without the last `leftOut` of them. */
  async mine(leftOut = 0): Promise<string[]> {
    const held = leftOut === 0 ? [] : (await this.waiting()).slice(-leftOut);
    for (const { hash } of held) await this.forget(hash);
    const snapshot = await this.call('evm_snapshot');
    // Blocks of other branches have other times and therefore other hashes.
    this.#timestamp += 1 + this.#branch;
    await this.call('evm_mine', this.#timestamp);
    const { number, transactions } = await this.#newest();
    this.head = Number(number);
    this.highest = Math.max(this.highest, this.head);
    this.#blocks.push({ number: this.head, timestamp: this.#timestamp, snapshot, transactions });
    for (const { raw } of held) await this.send(raw);
    return transactions;
  }

  /** The number of blocks that may be taken back now. */
  get reversible(): number {
    return Math.max(this.head - this.settledBlock, 0);
  }

  /**
   * Takes the newest blocks back, and returns the hashes of their transactions. Those that `returns` picks
   * wait again, and waiting transactions still wait.
   */
  async takeBack(depth: number, returns: (transaction: HeardTransaction) => boolean): Promise<string[]> {
    const before = await this.waiting();
    const gone = this.#blocks.splice(-depth);
    const [first] = gone;
    if (first === undefined || gone.length < depth)
      throw new Error(`there are no ${depth} blocks to take back`);
    if ((await this.call('evm_revert', first.snapshot)) !== true) throw new Error('could not go back');
    this.#branch = (this.#branch + 1) % 1_000;
    this.head = first.number - 1;
    this.#timestamp = first.timestamp - 1;
    const hashes = gone.flatMap(({ transactions }) => transactions);
    const mined = hashes.flatMap((hash) => this.heard.get(hash) ?? []);
    const wanted = [...before, ...mined.filter(returns)];
    for (const { hash } of await this.waiting())
      if (!wanted.some((one) => one.hash === hash)) await this.forget(hash);
    for (const { raw } of wanted.sort((left, right) => left.nonce - right.nonce)) await this.send(raw);
    return hashes;
  }

  /** Makes the node forget a waiting transaction. The network may remember it. */
  async forget(hash: string): Promise<void> {
    await this.call('hardhat_dropTransaction', hash);
  }

  /** Signs and sends a transaction without effect, with this key and nonce. */
  sendNothing(key: string, nonce: number): Promise<RpcAnswer> {
    return this.sendAs(key, { to: new Wallet(key).address, nonce, gasLimit: 21_000n });
  }

  /** Pauses or unpauses the registry from the account with this key. */
  setPaused(key: string, isPaused: boolean): Promise<RpcAnswer> {
    const data = isPaused
      ? registryInterface.encodeFunctionData('pause', ['0x'])
      : registryInterface.encodeFunctionData('unpause', ['0x']);
    return this.sendAs(key, { to: this.options.registryAddress, data });
  }

  /** Signs and sends a transaction, with the next nonce of the key unless another is given. */
  async sendAs(key: string, transaction: TransactionRequest): Promise<RpcAnswer> {
    const wallet = new Wallet(key);
    const nonce = transaction.nonce ?? (await this.count(wallet.address, 'pending'));
    const usual = { ...OTHER_FEES, type: 2, chainId: CHAIN_ID, gasLimit: 300_000n };
    return this.send(await wallet.signTransaction({ ...usual, ...transaction, nonce }));
  }

  async isPaused(): Promise<boolean> {
    const data = registryInterface.encodeFunctionData('paused');
    const answer = await this.call('eth_call', { to: this.options.registryAddress, data }, 'latest');
    return BigInt(String(answer)) === 1n;
  }

  /** The transactions that made each token since the scenario began, by token id. */
  async mints(): Promise<Map<string, string[]>> {
    const topics = [registryInterface.getEvent('Transfer').topicHash, `0x${'00'.repeat(32)}`];
    const filter = { address: this.options.registryAddress, topics, fromBlock: hex(this.base) };
    const logs = (await this.call('eth_getLogs', filter)) as { topics: string[]; transactionHash: string }[];
    const mints = new Map<string, string[]>();
    for (const { topics, transactionHash } of logs) {
      const tokenId = String(topics[3]).slice(2);
      mints.set(tokenId, [...(mints.get(tokenId) ?? []), transactionHash]);
    }
    return mints;
  }

  async #newest(): Promise<NodeBlock> {
    return (await this.call('eth_getBlockByNumber', 'latest', false)) as NodeBlock;
  }
}

function readTransaction(raw: string): HeardTransaction {
  const { hash, from, nonce, data } = Transaction.from(raw);
  const call = registryInterface.parseTransaction({ data });
  const tokenId =
    call?.name === 'mint'
      ? hex(call.args[2] as bigint)
          .slice(2)
          .padStart(64, '0')
      : undefined;
  return { hash: String(hash), raw, from: String(from), nonce, tokenId };
}

export function hex(number: number | bigint): string {
  return `0x${number.toString(16)}`;
}
