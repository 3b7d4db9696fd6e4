import {
  isError,
  JsonRpcProvider,
  makeError,
  Network as EthersNetwork,
  type JsonRpcApiProviderOptions,
  type JsonRpcError,
  type JsonRpcPayload,
  type JsonRpcResult,
} from 'ethers';
import pMap from 'p-map';
import { ChainError, codeOf, ConfigurationError } from '../base/errors';
import { printableUrl, secretMasker, secretPartsOf } from '../base/mask-secrets';
import type { Time } from '../base/time';
import { pause } from '../base/waiting';
import { NETWORKS, type Network } from './networks';
import {
  askedPauseMs,
  isKeyRefused,
  isRangeRefused,
  isThrottled,
  isUnknown,
  nodeErrorOf,
  problemOf,
} from './node-errors';
import {
  AnswerTooLargeError,
  createHttpTransport,
  createSocketTransport,
  noAnswer,
  type SocketTransport,
  type Transport,
} from './transport';

/** The result of a reading of several calls. Readings of the same content count as the same. */
export interface Reading<T> {
  found: T;
  content: string;
  /** A few words about it, for the message about a difference. */
  inShort: string;
}

/** An ethers provider for one chain, over HTTP or WebSocket. */
export type RpcClient = JsonRpcProvider & {
  /** The time of its pauses and limits. */
  readonly time: Time;
  /**
   * WebSocket only: calls the listener for each new block that the node reports, until the returned function
   * is called.
   */
  onNewHead?(listener: () => void): () => void;
  /** WebSocket only: the newest block as the node reported it, once. Undefined if it reported none since. */
  takeReportedHead?(): unknown;
  /**
   * `bulk`, or over WebSocket: calls the method once for each entry of `params`, several calls at a time.
   * The results are in the same order.
   */
  sendBatches?(method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]>;
  /**
   * Several nodes only: asks one of them. The next time that the same question is asked, another one must
   * confirm the answer.
   */
  sendUnconfirmed?(method: string, params: readonly unknown[]): Promise<unknown>;
  /** Several nodes only: what two of them read of these blocks, each in its own way. */
  agree?<T>(blocks: object, read: (node: RpcClient) => Promise<Reading<T>>): Promise<T>;
  /** Several nodes only: believes only what all nodes say that are not away. */
  readonly unanimous?: RpcClient;
};

const REQUEST_TIMEOUT_MS = 30_000;
/** The polling interval is the block time, within these bounds. */
const SHORTEST_POLLING_INTERVAL_MS = 200;
const LONGEST_POLLING_INTERVAL_MS = 4_000;

/**
 * Creates a client of a chain. ethers caches equal calls for 250 ms, which makes nonces and heads stale, so
 * the cache is off. ethers' batching is off too, because one slow or refused call must not affect others.
 *
 * @param use `bulk` for reading logs: answers may be large, and a refused range is reported early, so that
 *   the caller can ask for fewer blocks. `single` repeats throttled requests.
 * @param timeoutMs timeout of each request.
 */
export function createRpcClient(
  url: string,
  network: Network,
  time: Time,
  use: 'single' | 'bulk' = 'single',
  timeoutMs = REQUEST_TIMEOUT_MS,
): RpcClient {
  const options = ethersOptionsOf(network);
  if (/^wss?:/.test(url))
    return new SocketRpcClient(time, createSocketTransport(url, network, time, timeoutMs), options);
  if (use === 'bulk')
    return new BulkRpcClient(time, createHttpTransport(url, network, time, timeoutMs, CONNECTIONS), options);
  return new HttpRpcClient(time, createHttpTransport(url, network, time, timeoutMs), options);
}

/** The options of ethers for a client of a network. */
export function ethersOptionsOf({ name, chainId, blockTimeMs }: Network) {
  // ethers' own entry for the chain is not used: for Polygon it asks a gas station of ethers' choice instead
  // of the node for the fees.
  const staticNetwork = new EthersNetwork(name, chainId);
  const pollingInterval = Math.min(
    Math.max(blockTimeMs, SHORTEST_POLLING_INTERVAL_MS),
    LONGEST_POLLING_INTERVAL_MS,
  );
  return { cacheTimeout: -1, batchMaxCount: 1, staticNetwork, pollingInterval };
}

/**
 * Creates a check of the node's chain id. A correct answer is remembered.
 *
 * @throws ConfigurationError CHAIN_ID_MISMATCH when the node belongs to another chain than NET: signing or
 *   reading there would put documents on the wrong chain. Also every error of readChainId.
 */
export function createChainCheck(client: RpcClient, url: string, network: Network): () => Promise<void> {
  let checked = false;
  return async () => {
    if (checked) return;
    const chainId = await readChainId(client, url, network);
    if (chainId !== network.chainId) throw wrongChain(chainId, url, network);
    checked = true;
  };
}

/** The error for a node of another chain than NET. */
export function wrongChain(chainId: number, url: string, network: Network): ConfigurationError {
  const actual = NETWORKS.find((known) => known.chainId === chainId);
  const message =
    `NET is ${network.name} (chain id ${network.chainId}), but the node at ${printableUrl(url)} is of ` +
    `${actual ? `${actual.name} (chain id ${chainId})` : `chain id ${chainId}`}.`;
  const remedy = `Set NET=${chainId}, or point RPC_URL at a node of ${network.name}.`;
  return new ConfigurationError('CHAIN_ID_MISMATCH', `${message} ${remedy}`, { remedy });
}

/**
 * Asks a node for its chain id.
 *
 * @throws ChainError RPC_UNREACHABLE (retryable) when there is no answer, or not one of a node;
 *   RPC_KEY_REFUSED (retryable), naming the setting with the key.
 */
export async function readChainId(
  client: Pick<JsonRpcProvider, 'send'>,
  url: string,
  network: Network,
): Promise<number> {
  const node = printableUrl(url);
  const chainId = await client.send('eth_chainId', []).then(Number, (cause: unknown) => {
    if (cause instanceof AnswerTooLargeError) throw cause;
    const mask = secretMasker(secretPartsOf(url));
    if (isKeyRefused(cause)) throw keyRefused(mask(problemOf(cause)), url, network, cause);
    throw unreachable(`The node at ${node} ${mask(problemOf(cause))}.`, cause);
  });
  if (Number.isSafeInteger(chainId) && chainId > 0) return chainId;
  throw unreachable(`The node at ${node} does not report its chain id.`);
}

function unreachable(message: string, cause?: unknown): ChainError {
  return new ChainError('RPC_UNREACHABLE', message, { cause, retryable: true });
}

/**
 * The provider does not know the key, or does not allow it to read this chain. This is retryable, because the
 * operator may be about to allow it.
 */
function keyRefused(problem: string, url: string, network: Network, cause: unknown): ChainError {
  const remedy = remedyFor(url, network);
  const message = `The node at ${printableUrl(url)} ${problem}. ${remedy}`;
  return new ChainError('RPC_KEY_REFUSED', message, { cause, remedy, retryable: true });
}

function remedyFor(url: string, { name, rpcKey, rpcUrl }: Network): string {
  if (!url.startsWith(rpcUrl.split('{key}')[0] ?? rpcUrl)) return 'Check the key in RPC_URL.';
  if (rpcKey === undefined) return 'It required no key until now: set RPC_URL to another node.';
  return `Check ${rpcKey}, and that it is allowed to use ${name}.`;
}

type Payload = JsonRpcPayload | JsonRpcPayload[];

/** Attempts of a request whose connection fails. */
const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 50;

/**
 * A provider that repeats a request when the connection failed or a gateway answered for the node. Open
 * sockets are reset now and then, and a request that only reads can be repeated. An answer of the node
 * itself, even an error, is final. A request that timed out, asked for too much or was throttled is not
 * repeated either.
 */
class RetryingRpcClient<Through extends Transport = Transport> extends JsonRpcProvider {
  #lastId = 0;
  readonly #suspicion: RateSuspicion;

  /** `transport` is public so that tests can observe requests. */
  constructor(
    readonly time: Time,
    readonly transport: Through,
    options: JsonRpcApiProviderOptions & { staticNetwork: EthersNetwork },
  ) {
    // The parent never uses its own URL: all of its requests go through `_send`.
    super(undefined, options.staticNetwork, options);
    this.#suspicion = new RateSuspicion(time);
  }

  /** Sends at once. ethers' own waits for a timer before each call, and tells listeners of every step. */
  override async send(method: string, params: unknown[] | Record<string, unknown>): Promise<unknown> {
    if (this.destroyed)
      throw makeError('the provider was destroyed', 'UNSUPPORTED_OPERATION', { operation: method });
    const payload = this.payloadOf(method, params);
    const [answer] = (await this._send(payload)) as (JsonRpcResult | JsonRpcError)[];
    if (answer !== undefined && 'result' in answer) return answer.result;
    throw this.getRpcError(payload, answer as JsonRpcError);
  }

  protected payloadOf(method: string, params: JsonRpcPayload['params']): JsonRpcPayload {
    return { jsonrpc: '2.0', id: ++this.#lastId, method, params };
  }

  override async _send(payload: Payload): Promise<JsonRpcResult[]> {
    // A repeated send may fail although the first one was accepted. `broadcast` handles that case.
    const isSend = [payload].flat().some(({ method }) => method === 'eth_sendRawTransaction');
    const attempts = isSend ? 1 : ATTEMPTS;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.sendOnce(payload);
      } catch (cause) {
        if (attempt === attempts || isError(cause, 'TIMEOUT') || isRangeRefused(cause)) throw cause;
        // The calls of a batch are repeated one by one.
        if (Array.isArray(payload) && codeOf(cause) === 'ANSWER_MALFORMED') throw cause;
        await pause(this.time, FIRST_PAUSE_MS * 2 ** (attempt - 1));
      }
    }
  }

  /** @throws the error of a status 429 if an answer tells that the provider is asked too often. */
  protected async sendOnce(payload: Payload): Promise<JsonRpcResult[]> {
    for (let attempt = 1; ; attempt++) {
      const answers = await this.transport.send(payload);
      const verdicts = [payload].flat().map((call, at) => this.#suspicion.judge(payload, call, answers[at]));
      const refused = answers[verdicts.indexOf('rate')];
      if (refused && 'error' in refused) throw noAnswer('too many requests', refused.error, 429);
      if (!verdicts.includes('unsure') || attempt === ATTEMPTS) return answers as JsonRpcResult[];
      await pause(this.time, FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }

  override destroy(): void {
    this.transport.close();
    super.destroy();
  }
}

/** How long answers count as given at the same time. */
const TOGETHER_MS = 5_000;
/** Requests that get the same unknown error, and requests that are answered, which tell of a rate. */
const MOST_ALIKE = 3;

/**
 * Finds a limit of requests in words that are not known: several requests get the same error, while others
 * of their method succeed. A method that the node lacks never succeeds.
 */
class RateSuspicion {
  readonly #answeredAt = new Map<string, number>();
  /** The times of the last answers. */
  #answers: number[] = [];
  #alike = { words: '', requests: new Set<Payload>(), since: 0 };

  constructor(private readonly time: Time) {}

  /**
   * `unsure`: the request is repeated. A transaction and a range of logs are not, unless other requests get
   * the same error: those who send them know more refusals.
   */
  judge(request: Payload, { method }: JsonRpcPayload, answer: unknown): 'known' | 'unsure' | 'rate' {
    if (isThrottled(answer)) return 'rate';
    const now = this.time.elapsed();
    const isRecent = (at = -Infinity): boolean => now - at < TOGETHER_MS;
    if (nodeErrorOf(answer) === undefined) {
      this.#answeredAt.set(method, now);
      this.#answers = [...this.#answers, now].slice(-MOST_ALIKE);
    }
    const isBusy = this.#answers.length === MOST_ALIKE && isRecent(this.#answers[0]);
    if (!isUnknown(answer) || !isBusy) return 'known';
    const words = String(nodeErrorOf(answer)).replace(/0x[\da-f]+|\d+/gi, '');
    if (words !== this.#alike.words || !isRecent(this.#alike.since))
      this.#alike = { words, requests: new Set(), since: now };
    const isOwn = method === 'eth_sendRawTransaction' || method === 'eth_getLogs';
    if (!isOwn) this.#alike.requests.add(request);
    const isRate = this.#alike.requests.size >= MOST_ALIKE && isRecent(this.#answeredAt.get(method));
    return isRate ? 'rate' : isOwn ? 'known' : 'unsure';
  }
}

/** Attempts of a request that the provider throttles. The pauses before them take 16 seconds on average. */
const PATIENT_ATTEMPTS = 7;
const FIRST_PATIENT_PAUSE_MS = 500;

/** A provider over HTTP that repeats throttled requests. */
class HttpRpcClient extends RetryingRpcClient {
  protected override async sendOnce(payload: Payload): Promise<JsonRpcResult[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await super.sendOnce(payload);
      } catch (cause) {
        if (attempt === PATIENT_ATTEMPTS || !isThrottled(cause)) throw cause;
        const pauseMs = FIRST_PATIENT_PAUSE_MS * 2 ** (attempt - 1) * Math.random();
        await pause(this.time, Math.max(pauseMs, askedPauseMs(cause, this.time.now())));
      }
    }
  }
}

/** Open connections of a `bulk` client: more than the reader's concurrent requests. */
const CONNECTIONS = 16;
/** Attempts of a request that the provider throttles. */
const PACED_ATTEMPTS = 5;
/**
 * Calls per request. This is within every provider's limit, and within free plans: six receipts cost 480 of
 * the 500 credits per second of Infura's.
 */
const BATCH = 6;
const CONCURRENT_BATCHES = 8;

/**
 * A provider for ranges of logs. A throttled request is repeated at a slower pace; a throttled range is
 * repeated once, after which the caller asks for fewer blocks.
 */
class BulkRpcClient<Through extends Transport = Transport> extends RetryingRpcClient<Through> {
  readonly #pace = createRequestPace(this.time);
  /** Whether the provider was seen to answer "too many requests" to a range that is too wide. */
  #refusesWidth = false;
  /** Whether the provider supports batches; undefined while that is not known. */
  #answersBatches: boolean | undefined;

  async sendBatches(method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]> {
    const batches = Array.from({ length: Math.ceil(params.length / BATCH) }, (_, index) =>
      params.slice(index * BATCH, (index + 1) * BATCH),
    );
    const results = await pMap(batches, (batch) => this.#sendBatch(method, batch), {
      concurrency: CONCURRENT_BATCHES,
    });
    return results.flat();
  }

  async #sendBatch(method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]> {
    const isBatch = params.length > 1;
    if (isBatch && this.#answersBatches !== false) {
      const together = await this.#sendTogether(method, params);
      if (together) {
        this.#answersBatches = true;
        return together;
      }
    }
    const results: unknown[] = [];
    for (const one of params) results.push(await this.send(method, [...one]));
    // A provider that answered a batch before still supports batches.
    if (isBatch) this.#answersBatches ??= false;
    return results;
  }

  /**
   * Undefined when the provider did not answer all calls. One by one, it may answer them or give a reason.
   */
  async #sendTogether(
    method: string,
    params: readonly (readonly unknown[])[],
  ): Promise<unknown[] | undefined> {
    const payloads = params.map((one) => this.payloadOf(method, [...one]));
    try {
      const answers = await this._send(payloads);
      const results = new Map(answers.flatMap((one) => ('result' in one ? [[one.id, one.result]] : [])));
      return results.size === params.length
        ? payloads.map(({ id }) => results.get(id) as unknown)
        : undefined;
    } catch (cause) {
      // More requests would make a timeout or throttling worse.
      if (isError(cause, 'TIMEOUT') || isThrottled(cause)) throw cause;
      // The provider does answer batches; the answers to some of these calls are long.
      if (cause instanceof AnswerTooLargeError) this.#answersBatches = true;
      return undefined;
    }
  }

  protected override async sendOnce(payload: Payload): Promise<JsonRpcResult[]> {
    for (let attempt = 1; ; attempt++) {
      const pace = await this.#pace.turn();
      try {
        const answer = await super.sendOnce(payload);
        this.#pace.answered();
        return answer;
      } catch (cause) {
        if (!isThrottled(cause)) throw cause;
        // The cause is the pace or the daily quota, and it may have been the cause of an earlier refusal of a
        // range.
        if (!isRange(payload)) this.#refusesWidth = false;
        if (isRange(payload) && (attempt > 1 || this.#refusesWidth)) {
          // A range that is refused at a slow pace too is too wide, so the caller must ask for fewer blocks.
          this.#refusesWidth = true;
          this.#pace.forget();
          throw cause;
        }
        this.#pace.refused(pace, askedPauseMs(cause, this.time.now()));
        if (attempt === PACED_ATTEMPTS) throw cause;
      }
    }
  }
}

/** The calls of a batch are messages of their own, which every node understands. */
class SocketRpcClient extends BulkRpcClient<SocketTransport> {
  #reported: unknown;

  onNewHead(listener: () => void): () => void {
    return this.transport.onNewHead((head) => {
      this.#reported = head;
      listener();
    });
  }

  takeReportedHead(): unknown {
    const head = this.#reported;
    this.#reported = undefined;
    return head;
  }
}

/** Whether a request asks for the logs of more than one block. */
function isRange(payload: Payload): boolean {
  return [payload].flat().some(({ method, params }) => {
    const [filter] = params as [{ fromBlock?: string; toBlock?: string }?];
    return method === 'eth_getLogs' && filter?.fromBlock !== filter?.toBlock;
  });
}

/** The pause between two requests after a refusal, long enough for free plans. */
const SLOW_INTERVAL_MS = 1_000;
/** Each answer multiplies the pause by this. */
const RECOVERY = 0.8;
/** A shorter pause is dropped. */
const SHORTEST_INTERVAL_MS = 50;

/**
 * Providers limit requests per second, each in its own unit (credits, compute units, requests), and do not
 * declare the limit; a free plan may allow two log queries per second. The pace is therefore found: a
 * refusal slows it down, and answers speed it up again.
 */
export function createRequestPace(time: Time) {
  let intervalMs = 0;
  let pace = 0;
  let nextAt = 0;
  return {
    /** Resolves when the next request may be sent, with the number of the current pace. */
    async turn(): Promise<number> {
      while (intervalMs > 0) {
        const now = time.elapsed();
        if (now >= nextAt) break;
        await pause(time, nextAt - now);
      }
      nextAt = time.elapsed() + intervalMs;
      return pace;
    },
    /** The provider throttled a request. `sentAt`: the number that `turn` gave for it. */
    refused(sentAt: number, askedMs = 0): void {
      // Refusals of requests that were sent at the same pace count as one.
      if (sentAt !== pace) return;
      pace++;
      intervalMs = SLOW_INTERVAL_MS;
      nextAt = time.elapsed() + Math.max(intervalMs, askedMs);
    },
    answered(): void {
      intervalMs = intervalMs * RECOVERY < SHORTEST_INTERVAL_MS ? 0 : intervalMs * RECOVERY;
    },
    /** Removes the pause, because the refusal had another cause than the pace. */
    forget(): void {
      intervalMs = 0;
    },
  };
}
