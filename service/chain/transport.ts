import type { Duplex } from 'node:stream';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { isHexString, makeError, type JsonRpcError, type JsonRpcPayload, type JsonRpcResult } from 'ethers';
import { Agent } from 'undici';
import { WebSocket } from 'ws';
import { type Time, newDeferred, type Deferred } from '../base/time';
import { codeOf, ServiceError } from '../base/errors';
import { secretMasker, secretPartsOf, splitCredentials } from '../base/mask-secrets';
import { type Answered, exchange, type Reading } from '../base/exchange';
import { createSemaphore } from '../base/semaphore';
import type { Network } from './networks';
import {
  AnswerTooLargeError,
  ConnectionError,
  isOfEthers,
  LARGEST_ANSWER_BYTES,
  malformed,
  noAnswer,
  serverError,
} from './node-errors';

/** A request: one call, or a batch of calls. */
export type Request = JsonRpcPayload | JsonRpcPayload[];
export type Answer = JsonRpcResult | JsonRpcError;

/** Sends JSON-RPC requests to one node. */
export interface Transport {
  /**
   * Sends one request.
   *
   * @returns the answers to its calls, in the same order.
   * @throws the errors of ethers TIMEOUT, and SERVER_ERROR for a status of 300 or more; ChainError
   *   ANSWER_MALFORMED and AnswerTooLargeError (both retryable); ConnectionError.
   */
  send(payload: Request): Promise<Answer[]>;
  /** Calls the listener with each new block that the node reports, on the current and later connections. */
  onNewHead(listener: (head: unknown) => void): () => void;
  /** Ends the requests under way. */
  close(): void;
}

/** Any other error that is thrown while a request is under way is of the connection. */
function ofConnection(cause: unknown): unknown {
  return cause instanceof ServiceError || isOfEthers(cause) ? cause : new ConnectionError(cause);
}

/** An answer of a status of 300 or more is a sentence or a page. */
const LARGEST_REFUSAL_BYTES = 64 * 1024;
/** To limit memory, at most two answers of more than a megabyte are read at the same time. */
const LARGE_BYTES = 1_000_000;
const LARGE_AT_ONCE = 2;

/**
 * Creates a transport over HTTP. Those of ethers and viem do not limit an answer's size, and wait for ever
 * for one that arrives byte by byte.
 *
 * @param timeoutMs covers the whole answer.
 * @param connections the most that are open at once; null: no limit.
 */
export function createHttpTransport(
  url: string,
  { addressPrefix }: Pick<Network, 'addressPrefix'>,
  time: Time,
  timeoutMs: number,
  connections: number | null = null,
): Transport {
  const { url: bare, authorization } = splitCredentials(url);
  const mask = secretMasker(secretPartsOf(url));
  const headers = { 'content-type': 'application/json', ...(authorization && { authorization }) };
  const { origin, pathname, search } = new URL(bare);
  const place = { origin, path: pathname + search, method: 'POST', headers } as const;
  const dispatcher = new Agent({ connect: { timeout: timeoutMs }, connections });
  const large = { permits: LARGE_AT_ONCE, waiting: Infinity, waitMs: timeoutMs };
  const turns = createSemaphore(time, large, 'Too many large answers of the node at once.');
  async function post(body: string): Promise<Answered & { body: Buffer | undefined }> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let turn: Promise<() => void> | undefined;
    const takeTurn = () => (turn ??= turns.acquire(new AbortController().signal));
    const reading: Reading = {
      time,
      timeoutMs,
      late: () => timedOut(`no answer within ${timeoutMs} ms`),
      onData(chunk, { status }, control, cut) {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > mostOf(status)) return cut();
        if (bytes <= LARGE_BYTES || turn) return;
        control.pause();
        takeTurn().then(() => control.resume(), abort);
      },
    };
    const { answered, abort } = exchange(dispatcher, { ...place, body }, reading);
    try {
      const { status, headers } = await answered;
      const most = mostOf(status);
      if (bytes > most) return { status, headers, body: undefined };
      const whole = Buffer.concat(chunks);
      if (headers['content-encoding'] !== 'gzip') return { status, headers, body: whole };
      // Some proxies compress answers although nobody asked for it.
      await takeTurn();
      return { status, headers, body: await unzipped(whole, most) };
    } finally {
      void turn?.then((release) => release()).catch(() => undefined);
    }
  }

  return {
    async send(payload) {
      try {
        const { body, ...answered } = await post(JSON.stringify(payload));
        if (answered.status >= 300) throw serverError(answered, bare, mask(body?.toString('utf8') ?? ''));
        if (body === undefined) throw new AnswerTooLargeError();
        return answersTo(payload, parseAnswer(body, addressPrefix), mask);
      } catch (cause) {
        throw isUnreadable(cause) ? malformed([payload].flat()[0]?.method ?? '') : ofConnection(cause);
      }
    },
    // Over HTTP a node reports nothing by itself.
    onNewHead: () => () => undefined,
    close: () => void dispatcher.destroy(),
  };
}

function mostOf(status: number): number {
  return status >= 300 ? LARGEST_REFUSAL_BYTES : LARGEST_ANSWER_BYTES;
}

/** Undefined if it is longer than `most` bytes. */
function unzipped(zipped: Buffer, most: number): Promise<Buffer | undefined> {
  return promisify(gunzip)(zipped, { maxOutputLength: most }).catch((cause: unknown) => {
    if (codeOf(cause) !== 'ERR_BUFFER_TOO_LARGE') throw cause;
    return undefined;
  });
}

/** Whether an answer is not JSON, or not gzip. */
function isUnreadable(cause: unknown): boolean {
  return cause instanceof SyntaxError || codeOf(cause)?.startsWith('Z_') === true;
}

/**
 * Creates a transport over WebSocket. It connects for the first request, and again after the connection was
 * lost.
 */
export function createSocketTransport(
  url: string,
  { addressPrefix }: Pick<Network, 'addressPrefix'>,
  time: Time,
  timeoutMs: number,
): Transport {
  const mask = secretMasker(secretPartsOf(url));
  const listeners = new Set<(head: unknown) => void>();
  let connection: Promise<SocketConnection> | undefined;

  async function connect(): Promise<SocketConnection> {
    const opened = await openSocket(url, time, timeoutMs, {
      parse: (message) => parseAnswer(message, addressPrefix),
      onClosed: () => (connection = undefined),
      onNewHead: (head) => listeners.forEach((listener) => listener(head)),
    });
    if (listeners.size > 0) opened.subscribe();
    return opened;
  }

  return {
    async send(payload) {
      connection ??= connect();
      try {
        const { ask } = await connection;
        const answers = [payload].flat().map((call) => ask(call.id, JSON.stringify(call)));
        return answersTo(payload, await Promise.all(answers), mask);
      } catch (cause) {
        throw ofConnection(cause);
      }
    },
    onNewHead(listener) {
      listeners.add(listener);
      void connection?.then(({ subscribe }) => subscribe()).catch(() => undefined);
      return () => listeners.delete(listener);
    },
    close: () => void connection?.then(({ close }) => close()).catch(() => undefined),
  };
}

/** Requests have lower ids. A node gives an error about an unreadable request another id, such as 0 or -1. */
const SUBSCRIPTION_ID = 2 ** 31 - 1;

/** Requests and answers over one WebSocket. */
interface SocketConnection {
  /** Resolves with the answer that has this id; rejects when the connection ends or the time is over. */
  ask(this: void, id: number, message: string): Promise<unknown>;
  /** Subscribes to new blocks, once. A node may refuse: then new blocks are found by polling. */
  subscribe(this: void): void;
  close(this: void): void;
}

/**
 * Opens a WebSocket to a JSON-RPC node. Rejects when it cannot be opened in time.
 *
 * @param onClosed is called once when the connection ends for any reason, or could not be opened.
 * @param onNewHead is called with the header of each new block that the node reports.
 */
function openSocket(
  url: string,
  time: Time,
  timeoutMs: number,
  {
    parse,
    onClosed,
    onNewHead,
  }: { parse: (message: Buffer) => unknown; onClosed: () => void; onNewHead: (head: unknown) => void },
): Promise<SocketConnection> {
  const mask = secretMasker(secretPartsOf(url));
  const socket = new WebSocket(url, { handshakeTimeout: timeoutMs, maxPayload: LARGEST_ANSWER_BYTES });
  const waiting = new Map<number, Deferred<unknown>>();
  let isEnded = false;
  let isSubscribed = false;
  let below: Duplex | undefined;

  function end(cause: Error): void {
    if (isEnded) return;
    isEnded = true;
    for (const { reject } of waiting.values()) reject(cause);
    onClosed();
    socket.terminate();
  }

  /** The only subscription is the one to new blocks. */
  function take(message: unknown): void {
    const { id, method, params, error } = isObject(message) ? message : {};
    if (method === 'eth_subscription') onNewHead(isObject(params) ? params.result : undefined);
    else if (waiting.has(Number(id))) waiting.get(Number(id))?.resolve(message);
    else if (isObject(error) && id !== SUBSCRIPTION_ID)
      for (const { reject } of waiting.values())
        reject(noAnswer('the node names no request', { ...error, message: mask(String(error.message)) }));
  }

  /** Messages of one turn of the event loop go into one packet: each packet may wake the node's process. */
  function send(message: string): void {
    if (below?.writableCorked === 0) {
      const corked = below;
      corked.cork();
      process.nextTick(() => corked.uncork());
    }
    socket.send(message);
  }

  async function ask(id: number, message: string): Promise<unknown> {
    const answer = newDeferred<unknown>();
    waiting.set(id, answer);
    const cancel = time.later(timeoutMs, () => {
      answer.reject(timedOut(`no answer over the WebSocket within ${timeoutMs} ms`));
      // A connection that does not answer a request is most likely half-open. The next request opens a new
      // one.
      socket.terminate();
    });
    try {
      send(message);
      return await answer.promise;
    } finally {
      cancel();
      waiting.delete(id);
    }
  }

  function subscribe(): void {
    if (isSubscribed) return;
    isSubscribed = true;
    const subscription = { jsonrpc: '2.0', id: SUBSCRIPTION_ID, method: 'eth_subscribe' };
    socket.send(JSON.stringify({ ...subscription, params: ['newHeads'] }));
  }

  return new Promise((resolve, reject) => {
    socket.on('message', (data) => {
      try {
        take(parse(data as Buffer));
      } catch (cause) {
        // The message may answer any of the requests.
        end(cause instanceof AnswerTooLargeError ? cause : malformed('a request'));
      }
    });
    socket.on('upgrade', (response) => (below = response.socket));
    socket.on('unexpected-response', (_request, { statusCode: status = 0, headers }) => {
      reject(serverError({ status, headers }, url));
      socket.terminate();
    });
    // 'close' follows every 'error'.
    socket.on('error', (cause) => {
      if (codeOf(cause) === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') end(new AnswerTooLargeError());
      reject(cause);
    });
    socket.on('close', () => end(new Error('the WebSocket was closed')));
    socket.on('open', () => resolve({ ask, subscribe, close: () => socket.terminate() }));
  });
}

function timedOut(message: string): Error {
  return makeError(message, 'TIMEOUT', { operation: 'request', reason: 'timeout' });
}

/**
 * Maximum number of arrays and objects in an answer: three times those of 64 MB of logs. Each may take 90
 * bytes of memory, however short it is.
 */
const MOST_BRACKETS = 1_000_000;
const [OBJECT, ARRAY] = Buffer.from('{[');

/**
 * Parses an answer. Addresses then begin with 0x: nodes of XDC may write `xdc` instead, and take both.
 *
 * @throws AnswerTooLargeError; SyntaxError when it is not JSON.
 */
function parseAnswer(body: Buffer, addressPrefix: string | undefined): unknown {
  let brackets = 0;
  // A shorter answer cannot have as many.
  for (let at = body.length > MOST_BRACKETS ? 0 : body.length; at < body.length; at++)
    if (body[at] === OBJECT || body[at] === ARRAY) brackets++;
  if (brackets > MOST_BRACKETS) throw new AnswerTooLargeError();
  const text = body.toString('utf8');
  const prefixed = addressPrefix && new RegExp(`"${addressPrefix}(?=[0-9a-f]{40}")`, 'gi');
  return JSON.parse(prefixed ? text.replace(prefixed, '"0x') : text);
}

/**
 * The answer to each call, in the same order. An error without an id answers every call that has no other
 * answer: JSON-RPC 2.0, section 5. The node's words may have the key of the URL: they are masked.
 *
 * @throws ChainError ANSWER_MALFORMED (retryable) when a call has no answer, or one of the wrong type.
 */
function answersTo(payload: Request, answer: unknown, mask: (text: string) => string): Answer[] {
  const answers = (Array.isArray(answer) ? answer : [answer]).filter(isObject);
  return [payload].flat().map(({ id, method }) => {
    const match =
      answers.find((one) => one.id === id) ?? answers.find((one) => (one.id ?? null) === null && one.error);
    const { error, result } = match ?? {};
    if (isObject(error) && typeof error.message === 'string')
      return { id, error: { ...error, message: mask(error.message) } as JsonRpcError['error'] };
    if (error || result === undefined || RESULTS[method]?.(result) === false)
      throw malformed(method, typeof error === 'string' ? mask(error) : '');
    return { id, result };
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A quantity has 256 bits at most. */
const LONGEST_QUANTITY = 66;

function isQuantity(result: unknown): boolean {
  return isHexString(result) && result !== '0x' && result.length <= LONGEST_QUANTITY;
}

function isData(result: unknown): boolean {
  return isHexString(result) && result.length % 2 === 0;
}

function isObjectOrNull(result: unknown): boolean {
  return isObject(result) || result === null;
}

/** The types of results. What a block, a transaction or a log contains is checked where it is read. */
const RESULTS: Record<string, (result: unknown) => boolean> = {
  eth_blockNumber: isQuantity,
  eth_call: isData,
  eth_chainId: isQuantity,
  eth_estimateGas: isQuantity,
  eth_gasPrice: isQuantity,
  eth_getBalance: isQuantity,
  eth_getBlockByHash: isObjectOrNull,
  eth_getBlockByNumber: isObjectOrNull,
  eth_getCode: isData,
  eth_getLogs: Array.isArray,
  eth_getTransactionByBlockHashAndIndex: isObjectOrNull,
  eth_getTransactionByHash: isObjectOrNull,
  eth_getTransactionCount: isQuantity,
  eth_getTransactionReceipt: isObjectOrNull,
  eth_maxPriorityFeePerGas: isQuantity,
  eth_sendRawTransaction: isData,
};
