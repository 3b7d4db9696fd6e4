import { startServiceProcess } from '../test/helpers/service-process';
import { createWorld, type World } from '../test/helpers/world';
import { startCountingReceiver, type CountingReceiver } from './counting-receiver';
import { mintTokens } from './mint-tokens';

const TOKENS = 2_000;
const EVENTS = TOKENS * 5;

/** From the start of the service to the last webhook, when everything has happened before the start. */
export async function run(): Promise<void> {
  const receiver = await startCountingReceiver();
  try {
    for (const mintsPerBlock of [20, 1] as const) await catchUp(receiver, mintsPerBlock);
  } finally {
    await receiver.stop();
  }
}

/** Each on a chain of its own: a Hardhat node grows with every mint, and slows down. */
async function catchUp(receiver: CountingReceiver, mintsPerBlock: 1 | 20): Promise<void> {
  const world = await createWorld();
  try {
    await mintTokens(world, TOKENS, mintsPerBlock);
    const milliseconds = await timeOfCatchingUp(world, receiver);
    const rate = Math.round((EVENTS / milliseconds) * 1000);
    const blocks = `${TOKENS / mintsPerBlock} blocks with ${mintsPerBlock} mints each`;
    console.log(`${EVENTS} events in ${blocks}: ${(milliseconds / 1000).toFixed(1)} s, ${rate} events/s`);
  } finally {
    await world.stop();
  }
}

/** From the start of the process on: loading the program and opening the database are part of catching up. */
async function timeOfCatchingUp(world: World, receiver: CountingReceiver): Promise<number> {
  await receiver.reset();
  const start = performance.now();
  const service = await startServiceProcess({
    ...world.settings,
    WEBHOOK_URL: receiver.url,
    LOG_LEVEL: 'warn',
  });
  try {
    await receiver.received(EVENTS);
    return performance.now() - start;
  } finally {
    await service.end('SIGTERM');
  }
}
