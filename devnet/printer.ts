import type { ServiceEvent } from '../client/events';
import { shortType } from '../service/events/event-types';
import { BILL_OF_LADING } from './bill-of-lading';
import type { Devnet, DevnetFacts } from './devnet';

/** Prints what happens: lines for people, or with `--json` one JSON object a line. */
export interface Printer {
  step(this: void, text: string): void;
  webhook(this: void, event: ServiceEvent): void;
  /** The last lines before it waits. */
  ready(this: void, devnet: Devnet, next: Next): void;
}

/** Things to try next: the console, on the page of the token if there is one. */
interface Next {
  consoleLink: string;
  tokenId: string | undefined;
}

const startedAt = performance.now();
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const elapsed = (): number => Number(((performance.now() - startedAt) / 1000).toFixed(1));

/** Seconds since the start, with one digit. */
export const seconds = (): string => `${elapsed().toFixed(1)} s`;

export const forPeople: Printer = {
  step: say,
  webhook: ({ type, id }) => say(`  webhook verified: ${shortType(type).padEnd(20)} ${id}`),
  ready: ({ serviceUrl, folder, accounts }, { consoleLink, tokenId = 'TOKEN' }) =>
    print(`
The console, with a link that logs in once, within 15 minutes:

  ${consoleLink}

Try next, in another terminal:

  npx tdoc operate transferHolder --token ${tokenId} --to 4

  curl -s ${serviceUrl}/.well-known/did.json

  curl -s ${serviceUrl}/create/BILL_OF_LADING -H 'Content-Type: application/json' -d '{
    "owner":  "${accounts[1]}",
    "holder": "${accounts[1]}",
    "credentialSubject": { "type": ["BillOfLading"], "scac": "${BILL_OF_LADING.scac}", "blNumber": "1" }
  }'

Keys, settings, received events and logs are in ${folder}. Ctrl-C stops everything.
`),
};

export const forPrograms: Printer = {
  step: (text) => printJson({ type: 'step', seconds: elapsed(), text }),
  webhook: (event) => printJson({ type: 'webhook', seconds: elapsed(), event }),
  ready: (devnet, { consoleLink }) =>
    printJson({ type: 'ready', seconds: elapsed(), ...factsOf(devnet), consoleLink }),
};

/** The facts in `--json` and in the file of the running devnet. */
export function factsOf(devnet: DevnetFacts): DevnetFacts {
  const { serviceUrl, nodeUrl, chainId, registryAddress, receiverUrl, adminApiKey, accounts } = devnet;
  const { folder, publicKeyFile, didDocumentFile, envFile } = devnet;
  const urls = { serviceUrl, nodeUrl, chainId, registryAddress, receiverUrl };
  return { ...urls, adminApiKey, accounts, folder, publicKeyFile, didDocumentFile, envFile };
}

function say(text: string): void {
  print(`${seconds().padStart(7)}  ${text}`);
}

function printJson(value: Record<string, unknown>): void {
  print(JSON.stringify(value));
}
