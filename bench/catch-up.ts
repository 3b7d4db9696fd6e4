import { startServiceProcess } from '../test/helpers/processes/service-process';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { startCountingReceiver, type CountingReceiver } from './counting-receiver';
import { mintTokens } from './mint-tokens';

const TOKENS = 2_000;
const EVENTS = TOKENS * 5;

/**
 * Measures the time from the start of the service to the last webhook, for events that were mined before the
 * start.
 */
export async function run(): Promise<void> {
  const receiver = await startCountingReceiver();
  try {
    for (const mintsPerBlock of [20, 1] as const) await catchUp(receiver, mintsPerBlock);
  } finally {
    await receiver.stop();
  }
}

/** Each run has its own chain: a Hardhat node grows with every mint and slows down. */
async function catchUp(receiver: CountingReceiver, mintsPerBlock: 1 | 20): Promise<void> {
  const local = await createLocalSetup();
  try {
    await mintTokens(local, TOKENS, mintsPerBlock);
    const { recorded, received } = await measure(local, receiver);
    const rate = Math.round((EVENTS / received) * 1000);
    console.log(`${EVENTS} events in ${TOKENS / mintsPerBlock} blocks, ${mintsPerBlock} mints in each:`);
    console.log(`  ${seconds(received)} from the start to the last webhook: ${rate} events/s`);
    console.log(`  ${seconds(recorded)} from the start until all were read and recorded`);
  } finally {
    await local.stop();
  }
}

/** Milliseconds since the start of the process: loading the program and opening the database count too. */
async function measure(
  local: LocalSetup,
  receiver: CountingReceiver,
): Promise<{ recorded: number; received: number }> {
  await receiver.reset();
  const start = Date.now();
  const service = await startServiceProcess({ ...local.settings, WEBHOOK_URL: receiver.url });
  try {
    await receiver.received(EVENTS);
    const received = Date.now() - start;
    const lines = service.output().split('\n');
    const last = lines.findLast((line) => line.includes('"msg":"events recorded"')) ?? '{}';
    const { time } = JSON.parse(last) as { time: string };
    return { recorded: Date.parse(time) - start, received };
  } finally {
    await service.end('SIGTERM');
  }
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}
