import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Transaction } from 'ethers';
import { LARGEST_ANSWER_BYTES } from '../../../service/chain/node-errors';
import { owned } from '../resources';
import { neverAnswer } from '../virtual-time';

/** The fate of a JSON-RPC call when the connection fails. */
export type Fault =
  /** The call goes through. */
  | 'none'
  /** The connection breaks before the node receives the call. */
  | 'drop request'
  /** The node answers, and the connection breaks before the caller receives the answer. */
  | 'drop answer'
  /** The call is never answered. */
  | 'hang';

/** An answer of JSON-RPC. */
export type RpcAnswer = { result: unknown } | { error: { code: number; message: string; data?: unknown } };

/** An answer of a gateway in front of the node that does not speak JSON-RPC. */
export interface HttpAnswer {
  status: number;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

const MEGABYTE = 1_000_000;

/** 65 kilobytes that decode to more than is read of any answer. */
export const BOMB: HttpAnswer = {
  status: 200,
  headers: { 'Content-Encoding': 'gzip' },
  // Compressing all of it would take half a second. Parts that are compressed decode to all parts.
  body: Buffer.concat(
    Array<Buffer>(LARGEST_ANSWER_BYTES / MEGABYTE + 1).fill(gzipSync(Buffer.alloc(MEGABYTE, ' '))),
  ),
};

/** One call of the caller. */
export interface RpcCall {
  method: string;
  params: readonly unknown[];
}

/** Forwards the call to the node, or the same method with other parameters. */
export type Forward = (params?: readonly unknown[]) => Promise<RpcAnswer>;

/** Decides the answer to a call. `calls`: how many its request has. */
export type Answerer = (
  method: string,
  params: readonly unknown[],
  forward: Forward,
  calls?: number,
) => Fault | RpcAnswer | HttpAnswer | Promise<Fault | RpcAnswer | HttpAnswer>;

/** A proxy in front of a node. It can fail like a network, a provider or a node that is behind. */
export interface RpcProxy extends AsyncDisposable {
  url: string;
  /** Methods called, in order. */
  calls: string[];
  /** The calls with their parameters, in order. */
  requests: RpcCall[];
  /** The number of calls in each HTTP request, in order. */
  sizes: number[];
  /** Answers each call with this from now on. */
  answer(answerer: Answerer): void;
  /** How often each method was called since the call number `since` (an earlier `calls.length`). */
  counts(since?: number): Record<string, number>;
  /** How many requests wait for their answers. */
  waiting(): number;
  /**
   * Breaks all connections and refuses new ones until `accept` is called, as when the node's process has
   * ended.
   */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  close(): Promise<void>;
}

/** The answerer that lets everything through. */
export const THROUGH: Answerer = () => 'none';

/** Refuses transactions whose priority fee is lower, in the words of Polygon's nodes. */
export const refuseTipsBelow =
  (least: bigint): Answerer =>
  (method, [raw]) => {
    const tip = method === 'eth_sendRawTransaction' && Transaction.from(String(raw)).maxPriorityFeePerGas;
    if (typeof tip !== 'bigint' || tip >= least) return 'none';
    const words = `transaction gas price below minimum: gas tip cap ${tip}, minimum needed ${least}`;
    return { error: { code: -32000, message: words } };
  };

/** Starts a proxy. `answerer` is called for each call, also while others are running. */
export async function startRpcProxy(nodeUrl: string, answerer: Answerer = THROUGH): Promise<RpcProxy> {
  const requests: RpcCall[] = [];
  const calls: string[] = [];
  const sizes: number[] = [];
  let decide = answerer;
  let waiting = 0;
  const server = createServer((request, response) => {
    const answerOne = (call: unknown, together: number): Promise<unknown> => {
      const { method, params = [] } = call as RpcCall;
      calls.push(method);
      requests.push({ method, params });
      const decideIt: Answerer = (method, params, forward) => decide(method, params, forward, together);
      return answerCall(nodeUrl, call as object, decideIt, () => neverAnswer(request.headers));
    };
    waiting++;
    response.on('close', () => waiting--);
    serve(request, response, sizes, answerOne).catch(() => request.socket.destroy());
  });
  // Idle connections stay open: only the faults of the test may occur.
  server.keepAliveTimeout = 0;
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  const unlisten = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const proxy = {
    url,
    calls,
    requests,
    sizes,
    answer: (answerer: Answerer) => void (decide = answerer),
    waiting: () => waiting,
    counts: (since = 0) => countEach(calls.slice(since)),
    refuse: unlisten,
    accept: () => listen(port),
    close: unlisten,
  };
  return owned(`proxy on ${url}`, proxy, 'close');
}

/**
 * Answers a call, or each call of a batch. If one breaks the connection or is answered without JSON-RPC, this
 * is the answer to the whole batch.
 */
async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  sizes: number[],
  answerOne: (call: unknown, together: number) => Promise<unknown>,
): Promise<void> {
  const body = JSON.parse(await textOf(request)) as unknown;
  const calls: unknown[] = Array.isArray(body) ? body : [body];
  sizes.push(calls.length);
  const answers = await Promise.all(calls.map((call) => answerOne(call, calls.length)));
  const refusal = answers.find((answer) => typeof answer === 'object' && answer && 'status' in answer);
  if (refusal) {
    const { status, headers = {}, body: text = '' } = refusal as HttpAnswer;
    response.writeHead(status, headers).end(text);
    return;
  }
  if (answers.includes(undefined)) {
    request.socket.destroy();
    return;
  }
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(Array.isArray(body) ? answers : answers[0]));
}

/** The answer to one call with its id; undefined breaks the connection. */
async function answerCall(
  nodeUrl: string,
  call: object,
  decide: Answerer,
  onHang: () => void,
): Promise<unknown> {
  const { id, method, params = [] } = call as RpcCall & { id: unknown };
  const forward: Forward = async (changed = params) => ask(nodeUrl, { ...call, params: changed });
  const decision = await decide(method, params, forward);
  if (decision === 'hang') {
    onHang();
    return new Promise(() => undefined);
  }
  if (decision === 'drop request') return undefined;
  if (decision === 'drop answer') return void (await forward());
  const answer = decision === 'none' ? await forward() : decision;
  return 'status' in answer ? answer : { ...answer, jsonrpc: '2.0', id };
}

/**
 * The node closes connections that were idle for five seconds. One that it closed at the moment of a question
 * would be an unwanted fault, so they are closed here before.
 */
const KEPT = new Agent({ keepAlive: true, timeout: 2_000 });

/** Asks the node. */
async function ask(nodeUrl: string, call: object): Promise<RpcAnswer> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json' };
    const request = httpRequest(nodeUrl, { method: 'POST', headers, agent: KEPT }, resolve);
    request.on('error', reject).end(JSON.stringify(call));
  });
  return JSON.parse(await textOf(answer)) as RpcAnswer;
}

async function textOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function countEach(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names.sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
