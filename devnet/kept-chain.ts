import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { WebSocketProvider, type JsonRpcProvider } from 'ethers';
import { SECRET_MODE, writeFileAtomically } from '../cli/files/write-file';
import { ServiceError } from '../service/base/errors';
import {
  markBase,
  mineAgain,
  readBlocks,
  setClockToNow,
  stopMining,
  type Base,
  type MinedBlock,
} from './blocks';

/** The first line of the file: the facts that are known before any block. */
interface ChainHead {
  chainId: number;
  /** Time of the genesis block, in ISO 8601. */
  startedAt: string;
  registryAddress: string;
  /** The block in which the registry was made. */
  baseBlock: number;
}

/** An entry of the history of a chain: a block, or a call that changed the state between two blocks. */
type Step = MinedBlock | { method: string; params: unknown[] };

/** A chain as its file has it. */
export interface KeptChain {
  head: ChainHead;
  steps: Step[];
}

/** Reads the file; undefined if there is none. A kill may have cut off the last line, which is left out. */
export function readKeptChain(file: string): KeptChain | undefined {
  if (!existsSync(file)) return undefined;
  const [head, ...steps] = readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);
  if (head === undefined) return undefined;
  return { head: head as ChainHead, steps: steps as Step[] };
}

/**
 * Does everything again that happened on a chain, on a node whose chain is new. Its blocks then have the same
 * hashes.
 *
 * @returns the block of the registry, to which the chain can be taken back.
 * @throws ServiceError CHAIN_NOT_KEPT if a hash differs.
 */
export async function replay(
  client: JsonRpcProvider,
  { head, steps }: KeptChain,
  file: string,
): Promise<Base | undefined> {
  let base: Base | undefined;
  await stopMining(client);
  for (const step of steps) {
    if ('method' in step) await client.send(step.method, step.params);
    else if (!(await mineAgain(client, step))) throw notKept(step.number, file);
    else if (step.number === head.baseBlock) base = await markBase(client);
  }
  await setClockToNow(client);
  return base;
}

function notKept(number: number, file: string): ServiceError {
  const remedy = 'Delete the folder of that file to start with a new chain.';
  const message =
    `Block ${number} of ${file} gets another hash when it is mined again: another version of Hardhat, ` +
    `or a call that changed the state outside of any block. ${remedy}`;
  return new ServiceError('CHAIN_NOT_KEPT', message, { remedy });
}

/** Writes down what happens on a chain. */
export class ChainWriter {
  readonly #client: JsonRpcProvider;
  readonly #file: string;
  #steps: Step[];
  #head: ChainHead | undefined;
  /** Whether the file has all steps. An append that failed may have left a part of a line. */
  #isWritten = false;
  #work: Promise<unknown> = Promise.resolve();
  #follower: WebSocketProvider | undefined;

  constructor(client: JsonRpcProvider, file: string, kept?: KeptChain) {
    this.#client = client;
    this.#file = file;
    this.#steps = [...(kept?.steps ?? [])];
    this.#head = kept?.head;
  }

  /** Makes a call that changes the state, and notes it after all blocks so far. */
  async change(method: string, params: unknown[]): Promise<unknown> {
    await this.#catchUp();
    this.#steps.push({ method, params });
    return this.#client.send(method, params);
  }

  /** Writes the file, and from now on each block when it is mined. */
  async follow(nodeUrl: string, head: ChainHead): Promise<void> {
    this.#head = head;
    await this.#catchUp();
    this.#follower = new WebSocketProvider(nodeUrl.replace(/^http/, 'ws'), head.chainId);
    // The next one notes the blocks that one of them could not note.
    const next = (): Promise<void> => this.#inTurn(() => this.#catchUp()).catch(() => undefined);
    await this.#follower.on('block', () => void next());
    await next();
  }

  /** Does work that replaces blocks, and notes the new ones. No block is noted meanwhile. */
  replaceBlocks<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#inTurn(async () => {
      const result = await work();
      await this.#catchUp();
      return result;
    });
  }

  /** Notes the last blocks, if the node still runs. */
  async stop(): Promise<void> {
    // A node that has ended closed the connection.
    await this.#follower?.destroy().catch(() => undefined);
    await this.#inTurn(() => this.#catchUp()).catch(() => undefined);
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => undefined);
    return done;
  }

  /** Notes the blocks that are new, and drops those that a reorganisation took back. */
  async #catchUp(): Promise<void> {
    const head = await this.#client.getBlockNumber();
    const steps = [...this.#steps];
    for (let last = lastBlock(steps); last; last = lastBlock(steps)) {
      if (last.number <= head && (await this.#client.getBlock(last.number))?.hash === last.hash) break;
      steps.splice(steps.lastIndexOf(last), 1);
    }
    const hasLost = steps.length < this.#steps.length;
    const added = await readBlocks(this.#client, (lastBlock(steps)?.number ?? 0) + 1, head);
    steps.push(...added);
    if (this.#head) {
      const mayAppend = this.#isWritten && !hasLost;
      this.#isWritten = false;
      if (mayAppend) appendFileSync(this.#file, linesOf(added));
      else writeFileAtomically(this.#file, linesOf([this.#head, ...steps]), SECRET_MODE);
      this.#isWritten = true;
    }
    this.#steps = steps;
  }
}

function lastBlock(steps: readonly Step[]): MinedBlock | undefined {
  return steps.findLast((step): step is MinedBlock => 'number' in step);
}

function linesOf(values: readonly unknown[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}
