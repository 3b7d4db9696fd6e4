import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { hexlify, randomBytes } from 'ethers';
import { WebSocket } from 'ws';
import type { CloudEvent } from '../service/events/cloud-event';
import { TradeTrustTokenStandard__factory } from '../typechain-types';
import { eventually } from '../test/helpers/eventually';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { median } from './median';
import { costOfEach, startProbedService } from './probed-service';
import { spread } from './spread';

const MINTS = 60;
/** The first mints are slow: they compile code and open connections. */
const WARM_UP = 5;
const PAUSE_MS = 200;
const EVENTS_OF_A_MINT = 5;

/**
 * Times per block: when it was first seen, when a bare subscriber saw its first log, and when its webhooks
 * arrived.
 */
interface Sightings {
  mined: Map<number, number>;
  logs: Map<number, number>;
  webhooks: Map<number, number[]>;
}

/**
 * Compares the time from a mined block to its webhooks, at five mints a second, with the time until a bare
 * subscriber sees the logs. Also measures the processor time of the service for each event.
 */
export async function run(): Promise<void> {
  for (const protocol of ['ws', 'http'] as const) await follow(protocol);
}

async function follow(protocol: 'ws' | 'http'): Promise<void> {
  const local = await createLocalSetup();
  const seen: Sightings = { mined: new Map(), logs: new Map(), webhooks: new Map() };
  const receiver = await startReceiver(seen);
  const socket = await subscribe(local, seen);
  try {
    const service = await startProbedService({
      ...local.settings,
      RPC_URL: local.node.url.replace('http', protocol),
      WEBHOOK_URL: receiver.url,
    });
    try {
      await mint(local, seen, WARM_UP);
      const before = await service.cost();
      await mint(local, seen, MINTS);
      const { cpuMs } = costOfEach(before, await service.cost(), MINTS * EVENTS_OF_A_MINT);
      report(protocol, seen, cpuMs);
    } finally {
      await service.end('SIGTERM');
    }
  } finally {
    socket.terminate();
    receiver.close();
    await local.stop();
  }
}

async function startReceiver(seen: Sightings): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    const at = performance.now();
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      response.writeHead(200).end();
      const { data } = JSON.parse(Buffer.concat(chunks).toString()) as CloudEvent;
      seen.webhooks.set(data.blockNumber, [...(seen.webhooks.get(data.blockNumber) ?? []), at]);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/**
 * Subscribes directly to the node: to the heads, which show when a block is mined, and to the registry's
 * logs.
 */
async function subscribe(local: LocalSetup, seen: Sightings): Promise<WebSocket> {
  const socket = new WebSocket(local.node.url.replace('http', 'ws'));
  await new Promise((resolve) => socket.once('open', resolve));
  socket.on('message', (data: Buffer) => {
    const at = performance.now();
    const { params } = JSON.parse(data.toString()) as {
      params?: { result: { number?: string; blockNumber?: string } };
    };
    if (!params) return;
    const { number, blockNumber } = params.result;
    setFirst(seen.mined, Number(number ?? blockNumber), at);
    if (blockNumber !== undefined) setFirst(seen.logs, Number(blockNumber), at);
  });
  const ask = (id: number, ...params: unknown[]): void =>
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_subscribe', params }));
  ask(1, 'newHeads');
  ask(2, 'logs', { address: local.registryAddress });
  return socket;
}

/** Mints so many tokens, and waits for their webhooks. */
async function mint(local: LocalSetup, seen: Sightings, count: number): Promise<void> {
  const minter = await local.client.getSigner(0);
  const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, minter);
  const owner = await local.account(1);
  const before = seen.webhooks.size;
  for (let minted = 0; minted < count; minted++) {
    const start = performance.now();
    const tokenId = hexlify(randomBytes(32));
    const sent = await registry.mint(owner, owner, tokenId, '0x', { gasLimit: 1_000_000 });
    const receipt = await local.client.getTransactionReceipt(sent.hash);
    if (!receipt) throw new Error('a mint was not mined at once');
    setFirst(seen.mined, receipt.blockNumber, performance.now());
    await sleep(Math.max(0, start + PAUSE_MS - performance.now()));
  }
  await arrived(seen, before + count);
}

function arrived(seen: Sightings, mints: number): Promise<unknown> {
  return eventually(`the webhooks of ${mints} mints`, () => {
    const complete = [...seen.webhooks.values()].filter((times) => times.length === EVENTS_OF_A_MINT);
    return complete.length === mints;
  });
}

function setFirst(times: Map<number, number>, block: number, at: number): void {
  if (!times.has(block)) times.set(block, at);
}

function report(protocol: string, { mined, logs, webhooks }: Sightings, cpuMs: number): void {
  const blocks = [...webhooks.keys()].sort((a, b) => a - b).slice(WARM_UP);
  const since = (block: number, at: number | undefined): number => (at ?? NaN) - (mined.get(block) ?? NaN);
  const subscriber = blocks.map((block) => since(block, logs.get(block)));
  const first = blocks.map((block) => since(block, webhooks.get(block)?.[0]));
  const last = blocks.map((block) => since(block, webhooks.get(block)?.at(-1)));
  console.log(`over ${protocol}, ${1000 / PAUSE_MS} mints a second, from a mined block:`);
  console.log(`  to the first log at a bare subscriber:   ${spread(subscriber)}`);
  console.log(`  to the first webhook of the mint:        ${spread(first)}`);
  console.log(`  to the fifth, each after the one before: ${spread(last)}`);
  console.log(
    `  first webhook later than the bare log by ${(median(first) - median(subscriber)).toFixed(1)} ms`,
  );
  console.log(`  processor time of the service per event: ${cpuMs.toFixed(1)} ms`);
}
