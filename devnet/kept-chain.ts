import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { WebSocketProvider, type JsonRpcProvider } from 'ethers';
import { ServiceError } from '../service/base/errors';
import { mineAgain, readBlock, setClockToNow, stopMining, type MinedBlock } from './mined-block';
import { markBase, type Base } from './reorganise';

/** The first line of the file: what is known before any block. */
export interface ChainHead {
  chainId: number;
  /** Time of the genesis block, in ISO 8601. */
  startedAt: string;
  registryAddress: string;
  /** The block in which the registry was made. */
  baseBlock: number;
}

/** A call that changed the state between two blocks. */
export interface StateCall {
  method: string;
  params: unknown[];
}

/** What happened on a chain, in order. */
export type Step = MinedBlock | StateCall;

/** A chain as its file has it. */
export interface KeptChain {
  head: ChainHead;
  steps: Step[];
}

/** Reads the file; undefined if there is none. A last line that a kill has cut off is left out. */
export function readKeptChain(file: string): KeptChain | undefined {
  if (!existsSync(file)) return undefined;
  const [head, ...steps] = readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);
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
    else if ((await mineAgain(client, step)) !== step.hash) throw notKept(step.number, file);
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
  readonly #steps: Step[];
  #head: ChainHead | undefined;
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
    await this.catchUp();
    this.#steps.push({ method, params });
    return this.#client.send(method, params);
  }

  /** Writes the file, and from now on each block when it is mined. */
  async follow(nodeUrl: string, head: ChainHead): Promise<void> {
    this.#head = head;
    await this.catchUp();
    this.#writeAll();
    this.#follower = new WebSocketProvider(nodeUrl.replace(/^http/, 'ws'), head.chainId);
    await this.#follower.on('block', () => void this.catchUp().catch(() => undefined));
    await this.catchUp();
  }

  /** Takes note of the blocks that are new, and drops those that a reorganisation took back. */
  catchUp(): Promise<void> {
    const done = this.#work.then(() => this.#catchUp());
    this.#work = done.catch(() => undefined);
    return done;
  }

  async stop(): Promise<void> {
    // A node that has ended closed the connection.
    await this.#follower?.destroy().catch(() => undefined);
    await this.#work;
  }

  async #catchUp(): Promise<void> {
    const head = await this.#client.getBlockNumber();
    let isShorter = false;
    for (let last = this.#last(); last; last = this.#last()) {
      if (last.number <= head && (await this.#client.getBlock(last.number))?.hash === last.hash) break;
      this.#steps.splice(this.#steps.lastIndexOf(last), 1);
      isShorter = true;
    }
    const added: MinedBlock[] = [];
    for (let number = (this.#last()?.number ?? 0) + 1; number <= head; number++)
      added.push(await readBlock(this.#client, number));
    this.#steps.push(...added);
    if (this.#head === undefined) return;
    if (isShorter) this.#writeAll();
    else if (added.length > 0) appendFileSync(this.#file, linesOf(added));
  }

  #last(): MinedBlock | undefined {
    return this.#steps.findLast((step): step is MinedBlock => 'number' in step);
  }

  #writeAll(): void {
    writeFileSync(this.#file, linesOf([this.#head, ...this.#steps]), { mode: 0o600 });
  }
}

function linesOf(values: readonly unknown[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}
