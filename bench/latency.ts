import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { hexlify, randomBytes } from 'ethers';
import { WebSocket } from 'ws';
import type { CloudEvent } from '../service/events/cloud-event';
import type { LocalSetup } from '../test/helpers/chain/local-setup';
import { eventually } from '../test/helpers/eventually';
import { TradeTrustTokenStandard__factory } from '../typechain-types';
import { compare, percentile, timeOf, type Figures, type Size } from './measure';
import { gasOfMint, presign, sendMints } from './mints';
import { onNewChain, withService } from './processes';

const MINTS = 60;
/** The first mints compile code and open connections. */
const WARM_UP = 5;
const PAUSE_MS = 200;
const EVENTS_OF_A_MINT = 5;
const REQUESTS = 40;

/**
 * The time of one POST /create against that of one bare mint, and the time from a mined block to its webhooks
 * at five mints a second against the time until a bare subscriber of the node sees its logs.
 */
export async function latency(size: Size): Promise<void> {
  await onNewChain((local) =>
    withService(local, {}, async ({ issue }) => {
      const rounds = size.of(REQUESTS);
      const mints = await presign(local, rounds + 1);
      await compare(
        'a document, one at a time, mined at once',
        { rounds },
        {
          'presigned mint': async () => ({ ms: await timeOf(() => sendMints(local, mints.splice(0, 1), 1)) }),
          'POST /create': async () => ({ ms: await timeOf(issue) }),
        },
      );
    }),
  );
  await compare(`the five events of a mint, ${1_000 / PAUSE_MS} mints a second`, size, {
    'over http': () => onNewChain((local) => follow(local, 'http', size.of(MINTS))),
    'over ws': () => onNewChain((local) => follow(local, 'ws', size.of(MINTS))),
  });
}

/** Times of each block: when a bare subscriber of the node first saw it or a log of it, and its webhooks. */
interface Sightings {
  mined: Map<number, number>;
  webhooks: Map<number, number[]>;
}

async function follow(local: LocalSetup, protocol: string, mints: number): Promise<Figures> {
  const seen: Sightings = { mined: new Map(), webhooks: new Map() };
  // In this process: its clock is that of the other sightings.
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
  const WEBHOOK_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const RPC_URL = local.node.url.replace('http', protocol);
  const socket = await subscribeBare(local, seen);
  try {
    return await withService(local, { RPC_URL, WEBHOOK_URL }, async ({ cost }) => {
      await mint(local, seen, WARM_UP);
      const before = await cost();
      await mint(local, seen, mints);
      const after = await cost();
      const cpuMs = (after.cpuMs - before.cpuMs) / mints / EVENTS_OF_A_MINT;
      const blocks = [...seen.webhooks.keys()].sort((one, other) => one - other).slice(WARM_UP);
      const median = (timeIn: (block: number) => number | undefined): number =>
        percentile(
          blocks.map((block) => (timeIn(block) ?? NaN) - (seen.mined.get(block) ?? NaN)),
          0.5,
        );
      return {
        'first webhook, ms': median((block) => seen.webhooks.get(block)?.[0]),
        'fifth webhook, each after the one before, ms': median((block) => seen.webhooks.get(block)?.at(-1)),
        'processor of the service, ms an event': cpuMs,
        'statements, all five events': (after.statements - before.statements) / mints,
      };
    });
  } finally {
    socket.terminate();
    server.closeAllConnections();
    server.close();
  }
}

/** Subscribes to the node: to the heads, which show when a block is mined, and to the registry's logs. */
async function subscribeBare(local: LocalSetup, { mined }: Sightings): Promise<WebSocket> {
  const socket = new WebSocket(local.node.url.replace('http', 'ws'));
  await new Promise((resolve) => socket.once('open', resolve));
  socket.on('message', (data: Buffer) => {
    const at = performance.now();
    const { params } = JSON.parse(data.toString()) as {
      params?: { result: { number?: string; blockNumber?: string } };
    };
    if (params) setFirst(mined, Number(params.result.number ?? params.result.blockNumber), at);
  });
  const ask = (id: number, ...params: unknown[]): void =>
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_subscribe', params }));
  ask(1, 'newHeads');
  ask(2, 'logs', { address: local.registryAddress });
  return socket;
}

/** Mints so many tokens, and waits for their webhooks. */
async function mint(local: LocalSetup, { mined, webhooks }: Sightings, count: number): Promise<void> {
  const minter = await local.client.getSigner(0);
  const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, minter);
  const owner = await local.account(1);
  const target = webhooks.size + count;
  const gasLimit = ((await gasOfMint(local)) * 12n) / 10n;
  for (let minted = 0; minted < count; minted++) {
    const start = performance.now();
    const tokenId = hexlify(randomBytes(32));
    const sent = await registry.mint(owner, owner, tokenId, '0x', { gasLimit });
    const receipt = await local.client.getTransactionReceipt(sent.hash);
    if (!receipt) throw new Error('a mint was not mined at once');
    setFirst(mined, receipt.blockNumber, performance.now());
    await sleep(Math.max(0, start + PAUSE_MS - performance.now()));
  }
  await eventually(`the webhooks of ${target} mints`, () => {
    const complete = [...webhooks.values()].filter((times) => times.length === EVENTS_OF_A_MINT);
    return complete.length === target;
  });
}

function setFirst(times: Map<number, number>, block: number, at: number): void {
  if (!times.has(block)) times.set(block, at);
}
