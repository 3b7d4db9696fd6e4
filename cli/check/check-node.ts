import { isError, ZeroAddress } from 'ethers';
import { cut, messageOf, ServiceError } from '../../service/base/errors';
import { createFinalBlockReading } from '../../service/chain/finality';
import { type Confirmations, FINALITY_TAGS, type Network } from '../../service/chain/networks';
import { nodeErrorOf } from '../../service/chain/node-errors';
import {
  chainOrder,
  headNumberOf,
  headOf,
  logsOf,
  refusesUnknownBlocks,
  type ChainLog,
} from '../../service/chain/read-chain';
import { receiptLogsOf, transactionIn } from '../../service/chain/read-receipts';
import { createChainCheck } from '../../service/chain/reach-node';
import type { Chain } from '../../service/chain/chain';
import type { TransactionSigner } from '../../service/keys/transaction-signer';
import { maskSecrets } from '../errors';

/** One statement of `tdoc check`. `unknown`: it could not be checked. `skipped`: nobody asked for it. */
export interface Finding {
  status: 'ok' | 'skipped' | 'warning' | 'fault' | 'unknown';
  subject: string;
  statement: string;
  remedy?: string | undefined;
}

/** A node, and the registries that are read through it. */
export interface CheckedNode {
  network: Network;
  url: string;
  /** With their checksums. */
  registries: string[];
  /** Of the registries. */
  confirmations: Confirmations[];
  /** The registry in which the wallet mints, if it does so through this node. */
  issuing: { wallet: TransactionSigner; registryAddress: string } | undefined;
}

/** A command's user waits; the service itself waits longer. */
export const ANSWER_WITHIN_MS = 10_000;
const MINUTE_MS = 60_000;
/** A newest block of this age, in blocks, is unusual on every network. */
const OLD_BLOCKS = 10;

/** A node that is connected. */
export interface OpenNode extends CheckedNode {
  /** Without its secrets. */
  name: string;
  client: Chain;
  bulkClient: Chain;
}

/** `usable`: the node, unless it does not answer or is of another chain. Nothing else is asked of it then. */
export async function checkNode(
  node: OpenNode,
  now: number,
): Promise<{ findings: Finding[]; usable?: OpenNode }> {
  const { client, bulkClient, network, url, registries } = node;
  const subject = `node ${node.name}`;
  const identity = await found(subject, () => checkIdentity(node));
  if (identity.some(({ status }) => status === 'fault'))
    return { findings: identity.map((one) => ({ ...one, remedy: one.remedy ?? ANOTHER_NODE })) };
  let logs: readonly ChainLog[] = [];
  const findings = [
    ...identity,
    ...(await found(subject, () => checkHead(client, network, now))),
    ...(await found(subject, () => checkTags(client, node))),
    ...(await found(subject, () => checkRanges(bulkClient, registries, (read) => void (logs = read)))),
    ...(await found(subject, () => checkNumbering(client, logs))),
    ...(await found(subject, () => checkUnknownBlocks(bulkClient))),
    ...(await found(subject, () => checkBatches(bulkClient, url))),
  ];
  return { findings, usable: node };
}

const ANOTHER_NODE = 'Make it answer, or set RPC_URL to another node.';

/** The findings of a check; a check that fails is a finding. */
export async function found(
  subject: string,
  check: () => Promise<Omit<Finding, 'subject'>[]>,
): Promise<Finding[]> {
  try {
    return (await check()).map((one) => ({ subject, ...one }));
  } catch (thrown) {
    const statement = thrown instanceof ServiceError ? thrown.message : reasonOf(thrown);
    const remedy = thrown instanceof ServiceError ? thrown.remedy : undefined;
    return [{ subject, status: 'fault', statement, remedy }];
  }
}

/** What a check found. */
export type Statements = Omit<Finding, 'subject'>[];

export const ok = (statement: string): Statements[number] => ({ status: 'ok', statement });

/** A node's own words, or what the library says: without the request that it adds. */
export function reasonOf(thrown: unknown): string {
  if (isError(thrown, 'TIMEOUT')) return `does not answer within ${ANSWER_WITHIN_MS / 1000} s`;
  return nodeErrorOf(thrown) ?? cut(maskSecrets(messageOf(thrown)));
}

const LATENCY_SAMPLES = 5;

async function checkIdentity({ client, network, url }: OpenNode): Promise<Statements> {
  await createChainCheck(client, url, network)();
  const times: number[] = [];
  for (let sample = 0; sample < LATENCY_SAMPLES; sample++) {
    const start = performance.now();
    await headNumberOf(client);
    times.push(performance.now() - start);
  }
  const median = times.sort((a, b) => a - b)[Math.floor(LATENCY_SAMPLES / 2)] ?? 0;
  return [ok(`chain id ${network.chainId}, answers in ${Math.max(1, Math.round(median))} ms`)];
}

/** A block's timestamp says nothing on a local chain, which mines on demand. */
async function checkHead(client: Chain, network: Network, now: number): Promise<Statements> {
  const head = await headOf(client);
  if (network.local) return [ok(`newest block ${head.number}`)];
  const ageMs = Math.max(0, now - head.timestamp * 1000);
  const statement = `newest block ${head.number}, ${Math.round(ageMs / 1000)} s old`;
  if (ageMs <= Math.max(MINUTE_MS, OLD_BLOCKS * network.blockTimeMs)) return [ok(statement)];
  const remedy = 'The node is behind the chain, or this clock is wrong: use another node (RPC_URL).';
  return [{ status: 'warning', statement, remedy }];
}

/**
 * What the chain itself calls final. Not every node knows these tags.
 *
 * @throws ConfigurationError FINALITY_UNSUPPORTED if a registry has a tag that the node does not know.
 */
async function checkTags(client: Chain, { network, confirmations }: CheckedNode): Promise<Statements> {
  const head = await headNumberOf(client);
  for (const one of confirmations) await createFinalBlockReading(client, network, one)(head);
  const tags = await Promise.all(
    FINALITY_TAGS.map(async (tag) => {
      const block = (await client.send('eth_getBlockByNumber', [tag, false]).catch(() => null)) as {
        number?: unknown;
      } | null;
      const number = Number(block?.number ?? NaN);
      return Number.isSafeInteger(number)
        ? `${tag} is ${Math.max(0, head - number)} blocks behind the newest`
        : `does not know ${tag}`;
    }),
  );
  return [ok(tags.join(', '))];
}

/** The widest ranges first. The service starts with the first one, and narrows it by itself. */
const WIDTHS = [2_000, 1_000, 500, 250, 100, 50, 10, 1];

/** `take` receives the newest logs of the registries. */
async function checkRanges(
  client: Chain,
  registries: readonly string[],
  take: (logs: ChainLog[]) => void,
): Promise<Statements> {
  const address = registries.length > 0 ? [...registries] : [ZeroAddress];
  const toBlock = await headNumberOf(client);
  let refusal: unknown;
  for (const width of WIDTHS) {
    try {
      take(await logsOf(client, { address, fromBlock: Math.max(0, toBlock - width + 1), toBlock }));
    } catch (thrown) {
      refusal = thrown;
      continue;
    }
    const blocks = Math.min(width, toBlock + 1).toLocaleString('en');
    const all = width > toBlock ? ', which is all there are' : '';
    const statement = `eth_getLogs takes ${blocks} blocks${all}`;
    if (refusal === undefined) return [ok(statement)];
    const remedy = `More are refused (${reasonOf(refusal)}): catching up takes more requests.`;
    return [{ status: 'warning', statement, remedy }];
  }
  const remedy = 'Events cannot be read here: use another node (RPC_URL).';
  return [{ status: 'fault', statement: `eth_getLogs is refused: ${reasonOf(refusal)}`, remedy }];
}

/**
 * Whether the node counts logs through the block: nothing is said without a block in which several
 * transactions have logs.
 */
async function checkNumbering(client: Chain, logs: readonly ChainLog[]): Promise<Statements> {
  const [second, first] =
    logs.flatMap((log, at) => {
      const before = logs[at - 1];
      const isOther = before?.blockHash === log.blockHash && before.transactionHash !== log.transactionHash;
      return isOther ? [[log, before]] : [];
    })[0] ?? [];
  if (first === undefined || second === undefined) return [];
  const receipts = await receiptLogsOf(client, [first, second]);
  const [one = [], other = []] = [first, second].map((log) => receipts.get(transactionIn(log)));
  const all = [...one, ...other].sort(chainOrder);
  const isCounted = (list: readonly ChainLog[]): boolean =>
    list.every(({ index }, at) => at === 0 || index > (list[at - 1]?.index ?? 0));
  if (isCounted(all) && isCounted(logs.filter(({ blockHash }) => blockHash === first.blockHash)))
    return [ok('counts logs within the block')];
  return [
    {
      status: 'warning',
      statement: `counts logs within each transaction of block ${first.blockNumber}, not within the block`,
      remedy:
        'All events come, in order, but such a block takes the receipts of all its transactions: ' +
        'a node that counts within the block (RPC_URL) takes fewer requests.',
    },
  ];
}

/** Behind one name, a node that is behind others must not answer like one whose block has no logs. */
async function checkUnknownBlocks(client: Chain): Promise<Statements> {
  if (await refusesUnknownBlocks(client)) return [ok('refuses the logs of a block that it does not have')];
  const statement = 'gives no logs, and no error, for a block that it does not have';
  const remedy =
    'Blocks are read by number where their headers do not show which logs they have, ' +
    'which takes one more call each: a newer version of the node program may refuse.';
  return [{ status: 'warning', statement, remedy }];
}

/** Batches are used over HTTP only, and save requests: without them all works. */
async function checkBatches(client: Chain, url: string): Promise<Statements> {
  if (/^wss?:/.test(url)) return [ok('calls go one by one over WebSocket')];
  await client.sendBatch('eth_chainId', [[], []]).catch(() => undefined);
  if (client.learned.answersBatches) return [ok('answers batches')];
  const remedy = 'Calls go one by one, which is slower while catching up.';
  return [{ status: 'warning', statement: 'does not answer batches', remedy }];
}
