import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { getAddress } from 'ethers';
import { estimateFees, readFees } from '../../../service/chain/transactions';
import { findNetwork, type Network } from '../../../service/chain/networks';
import { createChainCheck } from '../../../service/chain/reach-node';
import { connectNode, type Chain } from '../../../service/chain/chain';
import { createLifecycle } from '../../../service/base/lifecycle';
import { systemTime } from '../../../service/base/time';
import { createLogger } from '../../../service/base/logger';
import type { Issuance } from '../../../service/journal/issuance';
import { openWallet } from '../../../service/keys/wallet';
import { mintTopics } from '../../../service/minting/node';
import type { MintQueueOptions } from '../../../service/minting/mint';
import { createMintQueue } from '../../../service/minting/mint-queue';
import { createMemoryJournal, type MemoryJournal } from '../database/memory-journal';
import { tellOfRequests, VirtualTime } from '../virtual-time';
import { owned } from '../resources';
import { startRpcProxy, THROUGH, type Answerer, type RpcProxy } from '../chain/rpc-proxy';
import { DEPLOYER, DEPLOYER_KEY, type LocalSetup } from '../chain/local-setup';

const LOCAL = findNetwork('31337') as Network;

/** A public network, whose nodes may be behind one another, with the chain id of a local node. */
export const PUBLIC: Network = { ...LOCAL, local: false };

/** A queue on a real node. A proxy refuses transactions that are not stored in the journal. */
export interface RunningQueue extends AsyncDisposable {
  journal: MemoryJournal;
  proxy: RpcProxy;
  /** Sets the proxy's answers to calls that may be sent. */
  answer(answerer: Answerer): void;
  /** Lines of the log. */
  log: Record<string, unknown>[];
  /** The number of log lines with this message. */
  logged(message: string): number;
  /** Adds an issuance to the journal and mints it. */
  mint(issuance?: Issuance): Promise<string>;
  /** Mints an issuance that is in the journal. */
  mintAgain(issuance: Issuance): Promise<string>;
  /** Mints `count` issuances, `atOnce` at the same time, until all are settled. */
  mintMany(count: number, atOnce: number): Promise<string[]>;
  /** Ends the queue. Its journal can be passed to the next one. */
  stop(): Promise<void>;
}

/** The options of a queue that mints with the deployer's wallet through this client. */
export function queueOptions(
  client: Chain,
  url: string,
  network: Network,
): Omit<MintQueueOptions, 'registryAddress' | 'journal' | 'logger'> {
  const [readStation, warn] = [undefined, () => undefined];
  return {
    client,
    network,
    confirmations: network.confirmations,
    wallet: openWallet(systemTime, { privateKey: DEPLOYER_KEY }),
    checkChain: createChainCheck(client, url, network),
    readFees: () =>
      readFees({
        gasPricing: network.gasPricing,
        leastGwei: undefined,
        readStation,
        readNode: () => estimateFees(client),
        warn,
      }),
    mask: (text) => text,
    time: systemTime,
    lifecycle: createLifecycle(),
  };
}

/** `journal`: that of an earlier queue. In virtual time, time stands still while a node is asked. */
export type QueueOptions = Partial<MintQueueOptions> & { journal?: MemoryJournal; answerer?: Answerer };

/** Starts a queue that mints with the deployer's wallet. */
export async function startQueue(
  { node, registryAddress }: LocalSetup,
  options: QueueOptions = {},
): Promise<RunningQueue> {
  const { time = systemTime, answerer = THROUGH, network = LOCAL, ...others } = options;
  const journal = options.journal ?? createMemoryJournal(time);
  let decide = answerer;
  const proxy = await startRpcProxy(node.url, (method, params, forward) => {
    if (method === 'eth_sendRawTransaction' && !journal.mayBeSent(String(params[0])))
      return { error: { code: -32000, message: 'the test refuses what is not in the journal' } };
    return decide(method, params, forward);
  });
  const client = connectNode(proxy.url, {}, time);
  if (time instanceof VirtualTime) tellOfRequests(client, time);
  const log: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>) };
  const queue = createMintQueue({
    ...queueOptions(client, proxy.url, network),
    registryAddress,
    logger: createLogger({ level: 'debug', mask: (text) => text, destination }),
    ...others,
    journal,
    time,
  });
  const mint = async (issuance = newIssuance()): Promise<string> => queue.mint(journal.add(issuance));
  const running = {
    journal,
    proxy,
    answer: (answerer: Answerer) => void (decide = answerer),
    log,
    logged: (message: string) => log.filter(({ msg }) => msg === message).length,
    mint,
    mintAgain: (issuance: Issuance) => queue.mint(issuance),
    async mintMany(count: number, atOnce: number) {
      const hashes: string[] = [];
      let left = count;
      const worker = async (): Promise<void> => {
        while (left-- > 0) hashes.push(await mint());
      };
      await Promise.all(Array.from({ length: atOnce }, worker));
      return hashes;
    },
    async stop() {
      const stopped = queue.stop();
      await (time instanceof VirtualTime ? time.settled(stopped) : stopped);
      client.close();
      await proxy.close();
    },
  };
  return owned(`queue on ${proxy.url}`, running, 'stop');
}

/** Runs `use` with a queue. Then its journal must agree with the chain. */
export async function withQueue(
  local: LocalSetup,
  options: QueueOptions,
  use: (queue: RunningQueue) => Promise<void>,
): Promise<void> {
  await using queue = await startQueue(local, options);
  await use(queue);
  expect(await untruths(local, queue.journal)).to.deep.equal([]);
}

/** Gives the wallet funds, and lets the node mine what waits, and each later transaction at once. */
export async function mineAtOnce({ client }: LocalSetup): Promise<void> {
  await client.send('hardhat_setBalance', [DEPLOYER, '0x21e19e0c9bab2400000']);
  await client.send('evm_setAutomine', [true]);
  await client.send('evm_mine', []);
}

/** The error of a mint. */
export async function failureOf(outcome: Promise<string>): Promise<unknown> {
  return outcome.then(
    () => 'it did not fail',
    (error: unknown) => error,
  );
}

/** Applies `answerer` to the first calls of a method; all others go through. */
export function first(method: string, times: number, answerer: Answerer): Answerer {
  let left = times;
  return (called, params, forward) =>
    called === method && left-- > 0 ? answerer(called, params, forward) : 'none';
}

/** The issuance of a new document. */
export function newIssuance(members: Partial<Issuance> = {}): Issuance {
  const someone = getAddress('0x70997970c51812dc3a010c7d01b50e0d17dc79c8');
  return {
    tokenId: randomBytes(32).toString('hex'),
    credentialId: `urn:bnid:_:${randomBytes(16).toString('hex')}`,
    owner: someone,
    holder: someone,
    remark: '0x',
    blNumber: undefined,
    state: 'signed',
    txHash: undefined,
    failure: undefined,
    requestHash: undefined,
    createdAt: systemTime.now(),
    ...members,
  };
}

/** The transactions that minted a token, from the logs. */
export async function mintsOf({ client, registryAddress }: LocalSetup, tokenId: string): Promise<string[]> {
  const [transfer = '', from = '', id = ''] = mintTopics(tokenId);
  const topics = [transfer, from, null, id];
  const logs = await client.getLogs({ address: registryAddress, topics, fromBlock: 0 });
  return logs.map(({ transactionHash }) => transactionHash);
}

/** The differences between a journal and the chain. Empty if all is well. */
async function untruths(local: LocalSetup, journal: MemoryJournal): Promise<string[]> {
  const found = [...journal.violations];
  for (const { tokenId, state, txHash } of journal.issuances.values()) {
    const mints = await mintsOf(local, tokenId);
    const expected = state === 'mined' || state === 'final' ? String(txHash) : '';
    if (mints.join() !== expected)
      found.push(`${tokenId} is ${state} by ${txHash}, minted by ${mints.join()}`);
  }
  return found;
}
