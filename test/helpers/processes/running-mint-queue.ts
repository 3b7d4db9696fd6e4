import { randomBytes } from 'node:crypto';
import { getAddress, Wallet, type JsonRpcProvider } from 'ethers';
import { readFees } from '../../../service/chain/transactions';
import { findNetwork, type Network } from '../../../service/chain/networks';
import { createChainCheck, createRpcClient } from '../../../service/chain/rpc-client';
import { createLogger } from '../../../service/base/logger';
import type { Issuance } from '../../../service/journal/issuance';
import { mintTopics } from '../../../service/minting/mint-chain';
import type { MintQueueOptions } from '../../../service/minting/mint';
import { createMintQueue } from '../../../service/minting/mint-queue';
import { createMemoryJournal, type MemoryJournal } from '../database/memory-journal';
import { track } from '../resources';
import { startRpcProxy, THROUGH, type Answerer, type RpcProxy } from '../chain/rpc-proxy';
import { DEPLOYER, DEPLOYER_KEY } from '../chain/local-setup';

const LOCAL = findNetwork('31337') as Network;

/** The node and the registry of a queue. */
export interface QueuePlace {
  nodeUrl: string;
  registryAddress: string;
}

/** A queue on a real node. A proxy refuses transactions that are not stored in the journal. */
export interface RunningQueue {
  journal: MemoryJournal;
  proxy: RpcProxy;
  /** Sets the proxy's answers to calls that may be sent. */
  answer(answerer: Answerer): void;
  /** Lines of the log. */
  log: Record<string, unknown>[];
  /** Adds an issuance to the journal and mints it. */
  mint(issuance?: Issuance): Promise<string>;
  /** Mints an issuance that is in the journal. */
  mintAgain(issuance: Issuance): Promise<string>;
  /** Mints `count` issuances, `atOnce` at the same time, until all are settled. */
  mintMany(count: number, atOnce: number): Promise<string[]>;
  /** Ends the queue. Its journal can be passed to the next one. */
  stop(): Promise<void>;
}

/** Starts a queue. `journal`: that of an earlier queue. */
export async function startQueue(
  place: QueuePlace,
  options: Partial<MintQueueOptions> & { journal?: MemoryJournal; answerer?: Answerer } = {},
): Promise<RunningQueue> {
  const { journal = createMemoryJournal(), answerer = THROUGH, network = LOCAL, ...others } = options;
  let decide = answerer;
  const proxy = await startRpcProxy(place.nodeUrl, (method, params, forward) => {
    if (method === 'eth_sendRawTransaction' && !journal.mayBeSent(String(params[0])))
      return { error: { code: -32000, message: 'the test refuses what is not in the journal' } };
    return decide(method, params, forward);
  });
  const client = createRpcClient(proxy.url, network);
  const log: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>) };
  const queue = createMintQueue({
    client,
    network,
    confirmations: network.confirmations,
    privateKey: DEPLOYER_KEY,
    registryAddress: place.registryAddress,
    journal,
    checkChain: createChainCheck(client, proxy.url, network),
    readFees: () =>
      readFees({
        gasPricing: network.gasPricing,
        readStation: undefined,
        readNode: () => client.getFeeData(),
        warn: () => undefined,
      }),
    logger: createLogger({ level: 'debug', mask: (text) => text, destination }),
    mask: (text) => text,
    observer: { mined: () => undefined, failed: () => undefined, reorganised: () => undefined },
    ...others,
  });
  const untrack = track(`queue on ${proxy.url}`);
  const mint = async (issuance = newIssuance()): Promise<string> => queue.mint(journal.add(issuance));
  return {
    journal,
    proxy,
    answer: (answerer) => void (decide = answerer),
    log,
    mint,
    mintAgain: (issuance) => queue.mint(issuance),
    async mintMany(count, atOnce) {
      const hashes: string[] = [];
      let left = count;
      const worker = async (): Promise<void> => {
        while (left-- > 0) hashes.push(await mint());
      };
      await Promise.all(Array.from({ length: atOnce }, worker));
      return hashes;
    },
    async stop() {
      await queue.stop();
      client.destroy();
      await proxy.close();
      untrack();
    },
  };
}

/** The issuance of a new document, with a remark of this many bytes. */
export function newIssuance(remarkBytes = 0): Issuance {
  const someone = getAddress('0x70997970c51812dc3a010c7d01b50e0d17dc79c8');
  return {
    tokenId: randomBytes(32).toString('hex'),
    credentialId: `urn:bnid:_:${randomBytes(16).toString('hex')}`,
    beneficiary: someone,
    holder: someone,
    remark: `0x${randomBytes(remarkBytes).toString('hex')}`,
    blNumber: undefined,
    state: 'signed',
    txHash: undefined,
    failure: undefined,
    requestHash: undefined,
    createdAt: Date.now(),
  };
}

/** The transactions that minted a token, from the logs. */
export async function mintsOf(
  client: JsonRpcProvider,
  registryAddress: string,
  tokenId: string,
): Promise<string[]> {
  const [transfer = '', from = '', id = ''] = mintTopics(tokenId);
  const topics = [transfer, from, null, id];
  const logs = await client.getLogs({ address: registryAddress, topics, fromBlock: 0 });
  return logs.map(({ transactionHash }) => transactionHash);
}

/** The differences between a journal and the chain. Empty if all is well. */
export async function untruths(
  client: JsonRpcProvider,
  registryAddress: string,
  journal: MemoryJournal,
): Promise<string[]> {
  const found = [...journal.violations];
  for (const { tokenId, state, txHash } of journal.issuances.values()) {
    const mints = await mintsOf(client, registryAddress, tokenId);
    const expected = state === 'mined' || state === 'final' ? String(txHash) : '';
    if (mints.join() !== expected)
      found.push(`${tokenId} is ${state} by ${txHash}, minted by ${mints.join()}`);
  }
  return found;
}

/**
 * Sends transactions of the queue's wallet outside the queue, one after the other. Stopping it returns the
 * number that were mined.
 */
export function startOtherSender(nodeUrl: string): { stop(): Promise<number> } {
  const client = createRpcClient(nodeUrl, LOCAL);
  const wallet = new Wallet(DEPLOYER_KEY, client);
  let isStopped = false;
  let sent = 0;
  const work = (async () => {
    while (!isStopped) {
      const nonce = await client.getTransactionCount(DEPLOYER, 'pending');
      const fees = { maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 2_000_000_000n };
      const transaction = { type: 2, chainId: 31337, to: DEPLOYER, nonce, gasLimit: 21_000n, ...fees };
      const raw = await wallet.signTransaction(transaction);
      await client.send('eth_sendRawTransaction', [raw]).then(
        () => sent++,
        () => undefined,
      );
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
  })();
  return {
    async stop() {
      isStopped = true;
      await work;
      client.destroy();
      return sent;
    },
  };
}
