import { join } from 'node:path';
import { JsonRpcProvider } from 'ethers';
import { messageOf } from '../service/base/errors';
import { PROJECT_ROOT } from '../service/base/project-root';
import { BILL_OF_LADING } from './bill-of-lading';
import { logTails } from './log-tails';
import { restartOnChange } from './restart-on-change';
import { makeRunFolder } from './run-folder';
import { startStack, type Cleanup, type Stack } from './stack';
import { followWebhooks } from './verified-webhooks';
import { MINT_EVENTS, OWNER, stepsFor } from './walk-token';

const WEBHOOKS_WITHIN_MS = 60_000;
const startedAt = performance.now();

const seconds = (): string => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
const say = (line: string): void => void process.stdout.write(`${seconds().padStart(7)}  ${line}\n`);

async function main(): Promise<number> {
  const once = process.argv.includes('--once');
  const cleanup: Cleanup = [];
  const interrupted = new Promise<'interrupted'>((resolve) => {
    // `on`, not `once`: npm passes the terminal's Ctrl-C on, and the second signal must not end this process
    // half-way.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve('interrupted'));
  });
  try {
    const outcome = await Promise.race([run(once, cleanup), interrupted]);
    if (outcome !== 'interrupted' && process.argv.includes('--watch')) restartOnChange(outcome, say, cleanup);
    if (outcome !== 'interrupted' && !once) {
      await Promise.race([orLogs(outcome, outcome.failure), interrupted]);
    }
    return outcome === 'interrupted' && once ? 1 : 0;
  } catch (error) {
    process.stderr.write(`\n${messageOf(error)}\n`);
    return 1;
  } finally {
    say('stopping');
    await Promise.all(cleanup.map((stop) => stop()));
  }
}

async function run(once: boolean, cleanup: Cleanup): Promise<Stack> {
  const stack = await startStack(makeRunFolder(join(PROJECT_ROOT, '.devnet')), say, cleanup);
  await orLogs(stack, Promise.race([issueAndWalk(stack, cleanup), stack.failure]));
  if (!once) sayWhatNext(stack);
  return stack;
}

/** Adds the programs' last log lines to a failure. */
async function orLogs(stack: Stack, work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    throw new Error(`${messageOf(error)}\n\n${logTails(stack.folder)}`, { cause: error });
  });
}

/**
 * Issues a Bill of Lading, transfers its token, and checks that every event was delivered, verified and in
 * order.
 */
async function issueAndWalk(stack: Stack, cleanup: Cleanup): Promise<void> {
  const node = new JsonRpcProvider(stack.nodeUrl, 31337, { staticNetwork: true, cacheTimeout: -1 });
  cleanup.push(async () => node.destroy());
  const webhooks = followWebhooks(stack.receiver, (type, id) =>
    say(`  webhook verified: ${type.padEnd(20)} ${id}`),
  );
  const expected: string[] = [...MINT_EVENTS];

  const tokenId = await issue(stack, (await node.getSigner(OWNER)).address);
  say(`Bill of Lading signed and minted: token ${tokenId}`);
  await webhooks.expect(MINT_EVENTS.slice(0, 1), WEBHOOKS_WITHIN_MS);
  say(`first webhook verified after ${seconds()}`);
  for (const step of await stepsFor(node, stack.registryAddress, BigInt(`0x${tokenId}`))) {
    say(step.title);
    await step.run();
    expected.push(...step.events);
  }
  await webhooks.expect(expected, WEBHOOKS_WITHIN_MS);
  say(`all ${expected.length} webhooks verified, in order`);
}

async function issue(stack: Stack, owner: string): Promise<string> {
  const response = await fetch(`${stack.serviceUrl}/create/BILL_OF_LADING`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      credentialSubject: BILL_OF_LADING,
      owner,
      holder: owner,
      remarks: 'shipped on board',
    }),
  });
  const text = await response.text();
  if (response.status !== 200) {
    throw new Error(
      `POST /create answered ${response.status}: ${text}\nSee ${join(stack.folder, 'service.log')}`,
    );
  }
  const answer = JSON.parse(text) as { signedW3CDocument: { credentialStatus: { tokenId: string } } };
  return answer.signedW3CDocument.credentialStatus.tokenId;
}

function sayWhatNext({ serviceUrl, folder }: Stack): void {
  process.stdout.write(`
Try next, in another terminal:

  curl -s ${serviceUrl}/.well-known/did.json

  curl -s ${serviceUrl}/create/BILL_OF_LADING -H 'Content-Type: application/json' -d '{
    "owner":  "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    "holder": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    "credentialSubject": { "type": ["BillOfLading"], "scac": "SGPU", "blNumber": "1" }
  }'

Keys, settings, received events and logs are in ${folder}. Ctrl-C stops everything.

`);
}

void main().then((code) => process.exit(code));
