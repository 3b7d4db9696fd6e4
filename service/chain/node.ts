import { isError, JsonRpcApiProvider, makeError, type JsonRpcPayload } from 'ethers';
import pMap from 'p-map';
import { codeOf } from '../base/errors';
import { printableUrl } from '../base/mask-secrets';
import { type Time, pause } from '../base/time';
import type { Network } from './networks';
import { AnswerTooLargeError, isRangeRefused, isThrottled } from './node-errors';
import { createPatience, Pacing, RateSuspicion, type Throttling } from './throttling';
import {
  createHttpTransport,
  createSocketTransport,
  type Answer,
  type Request,
  type Transport,
} from './transport';

/** The parameters of a call. */
export type Params = readonly unknown[];

/** Answers the calls of JSON-RPC. */
export interface Rpc {
  /** The time of its pauses and limits. */
  readonly time: Time;
  readonly learned: Learned;
  send(method: string, params: Params): Promise<unknown>;
  /** Calls the method once for each entry of `params`. The results are in the same order. */
  sendBatch(method: string, params: readonly Params[]): Promise<unknown[]>;
  /** Calls the listener for each new block that is reported, until the returned function is called. */
  subscribe(listener: (head: unknown) => void): () => void;
  /** Ends the requests under way. */
  close(): void;
}

/** One node of a chain. */
export interface Node extends Rpc {
  /** Its URL without its secrets. */
  readonly name: string;
}

/** Everything that a node has shown. */
export interface Learned {
  /** Whether it answers batches; undefined while that is not known. */
  answersBatches: boolean | undefined;
  /** The blocks in a row of which it gave no receipts. */
  blocksWithoutReceipts: number;
  /** Whether it refuses to give the logs of a block that it does not have; undefined while not known. */
  refusesUnknownBlocks: boolean | undefined;
  /** Whether it reports new blocks, and the newest until somebody takes it; undefined if it reported none. */
  heads: { newest: unknown } | undefined;
}

/** @param answersBatches false: it is asked for none. */
export function nothingLearned(answersBatches?: false): Learned {
  return { answersBatches, blocksWithoutReceipts: 0, refusesUnknownBlocks: undefined, heads: undefined };
}

/**
 * - `bulk`: for reading logs. Answers may be large, and a refused range is reported early, so that the caller
 *   can ask for fewer blocks.
 * - `single`: sends throttled requests again for longer.
 */
export type Use = 'single' | 'bulk';

const REQUEST_TIMEOUT_MS = 30_000;
/** Open connections for `bulk`: more than the reader's concurrent requests. */
const CONNECTIONS = 16;

/**
 * Creates a client of one node, over HTTP or WebSocket.
 *
 * @param network `{}` if it is not known.
 * @param timeoutMs timeout of each request.
 */
export function createNode(
  url: string,
  network: Pick<Network, 'addressPrefix'>,
  time: Time,
  use: Use = 'single',
  timeoutMs = REQUEST_TIMEOUT_MS,
): RpcNode {
  const isSocket = /^wss?:/.test(url);
  const isBulk = isSocket || use === 'bulk';
  const transport = isSocket
    ? createSocketTransport(url, network, time, timeoutMs)
    : createHttpTransport(url, network, time, timeoutMs, isBulk ? CONNECTIONS : null);
  const throttling = isBulk ? new Pacing(time) : createPatience(time);
  const learned = nothingLearned(isBulk ? undefined : false);
  return new RpcNode(printableUrl(url), time, transport, throttling, learned);
}

/** Attempts of a request whose connection fails, or whose error may tell of a rate. */
const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 50;
/**
 * Calls per request. This is within every provider's limit, and within free plans: six receipts cost 480 of
 * the 500 credits per second of Infura's.
 */
const BATCH = 6;
const CONCURRENT_REQUESTS = 8;

/** A node that is reached through a transport. */
export class RpcNode implements Node {
  readonly #suspicion: RateSuspicion;
  #lastId = 0;
  #isClosed = false;

  /** `transport` is public so that tests can observe requests. */
  constructor(
    readonly name: string,
    readonly time: Time,
    readonly transport: Transport,
    private readonly throttling: Throttling,
    readonly learned: Learned,
  ) {
    this.#suspicion = new RateSuspicion(time);
  }

  /** @throws the errors of ethers for a node's refusal; all errors of the transport. */
  async send(method: string, params: Params): Promise<unknown> {
    const call = this.#callOf(method, params);
    const [answer] = await this.#answersTo(call);
    if (answer && 'error' in answer) throw JsonRpcApiProvider.prototype.getRpcError(call, answer);
    return answer?.result;
  }

  async sendBatch(method: string, params: readonly Params[]): Promise<unknown[]> {
    const size = this.learned.answersBatches === false ? 1 : BATCH;
    const batches = Array.from({ length: Math.ceil(params.length / size) }, (_, index) =>
      params.slice(index * size, (index + 1) * size),
    );
    const results = await pMap(batches, (batch) => this.#sendTogether(method, batch), {
      concurrency: CONCURRENT_REQUESTS,
    });
    return results.flat();
  }

  subscribe(listener: (head: unknown) => void): () => void {
    return this.transport.onNewHead((newest) => {
      this.learned.heads = { newest };
      listener(newest);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.transport.close();
  }

  async #sendTogether(method: string, params: readonly Params[]): Promise<unknown[]> {
    const isBatch = params.length > 1;
    if (isBatch && this.learned.answersBatches !== false) {
      const results = await this.#resultsOf(params.map((call) => this.#callOf(method, call)));
      if (results.length === params.length) {
        this.learned.answersBatches = true;
        return results;
      }
    }
    // One by one, the provider may answer the calls, or give a reason.
    const results: unknown[] = [];
    for (const call of params) results.push(await this.send(method, call));
    // A provider that answered a batch before still supports batches.
    if (isBatch) this.learned.answersBatches ??= false;
    return results;
  }

  /** The results of a batch. Fewer than its calls if the provider did not answer all of them. */
  async #resultsOf(batch: JsonRpcPayload[]): Promise<unknown[]> {
    try {
      const answers = await this.#answersTo(batch);
      return answers.flatMap((answer) => ('result' in answer ? [answer.result as unknown] : []));
    } catch (cause) {
      // More requests would make a timeout or throttling worse.
      if (isError(cause, 'TIMEOUT') || isThrottled(cause)) throw cause;
      // The provider does answer batches; the answers to some of these calls are long.
      if (cause instanceof AnswerTooLargeError) this.learned.answersBatches = true;
      return [];
    }
  }

  /**
   * The answers to the calls of a request, in the same order. An answer of the node itself, even an error, is
   * final, unless it tells of too many requests.
   */
  async #answersTo(request: Request): Promise<Answer[]> {
    let [failures, throttled] = [0, 0];
    for (;;) {
      const turn = await this.throttling.turn();
      if (this.#isClosed)
        throw makeError('the node was closed', 'UNSUPPORTED_OPERATION', { operation: 'send' });
      try {
        const answers = await this.transport.send(request);
        if (!this.#suspicion.isRaised(request, answers) || ++failures === ATTEMPTS) {
          this.throttling.answered();
          return answers;
        }
      } catch (cause) {
        if (isThrottled(cause)) {
          if (await this.throttling.again({ request, cause, times: ++throttled, turn })) continue;
          throw cause;
        }
        if (!isOfConnection(request, cause) || ++failures === ATTEMPTS) throw cause;
      }
      await pause(this.time, FIRST_PAUSE_MS * 2 ** (failures - 1));
    }
  }

  #callOf(method: string, params: Params): JsonRpcPayload {
    return { jsonrpc: '2.0', id: ++this.#lastId, method, params: [...params] };
  }
}

/**
 * Whether the connection failed, or a gateway answered for the node, and the request can be repeated. Open
 * sockets are reset now and then. A request that timed out or asked for too much is not repeated.
 */
function isOfConnection(request: Request, cause: unknown): boolean {
  // A repeated send may fail although the first one was accepted. `broadcast` handles that case.
  if ([request].flat().some(({ method }) => method === 'eth_sendRawTransaction')) return false;
  // The calls of a batch are repeated one by one.
  if (Array.isArray(request) && codeOf(cause) === 'ANSWER_MALFORMED') return false;
  return !isError(cause, 'TIMEOUT') && !isRangeRefused(cause);
}
