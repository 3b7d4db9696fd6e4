import type { JsonRpcProvider } from 'ethers';
import { existsSync, readFileSync } from 'node:fs';
import { setEnvValue } from '../cli/files/env-file';
import { makeDidKey, makeSigningKey } from '../cli/keys/make-keys';
import type { ServiceEvent } from '../client/events';
import { messageOf, ServiceError } from '../service/base/errors';
import { BILL_OF_LADING } from './bill-of-lading';
import type { FateOfTransactions, Reorganisation } from './blocks';
import { startLocalChain } from './local-chain';
import { accountOf, operationsOn, type Account, type Operations } from './operations';
import { filesIn, placeOf, type DevnetFacts, type DevnetOptions, type Ports } from './place';
import { startOwnReceiver, WebhookInbox, type ReceiverControl, type Webhooks } from './receiver';
import {
  issueDocument,
  makeConsoleLink,
  startServiceProcess,
  subscribe,
  writeSettings,
  type Issued,
  type ServiceProcess,
} from './service';

export type { FateOfTransactions, Reorganisation } from './blocks';
export type { Account, Giving, Operated, OperationName, Operations, Sending } from './operations';
export type { DevnetFacts, DevnetOptions } from './place';
export type { EventType, ReceiverControl, Wanted, Webhooks } from './receiver';
export type { Issued } from './service';

/** A running chain, service and receiver. */
export interface Devnet extends DevnetFacts, Operations {
  /** A client of the node. */
  client: JsonRpcProvider;
  /** Whether it goes on where an earlier one ended. */
  isContinued: boolean;
  /** The webhooks that the devnet's own receiver verified. */
  readonly webhooks: Webhooks;
  /** The devnet's own receiver. */
  readonly receiver: ReceiverControl;
  /**
   * Issues a Bill of Lading, by default a sample. `owner`, the first beneficiary, is account 1 by default;
   * `holder` is `owner` by default.
   */
  issue(
    subject?: Record<string, unknown>,
    parties?: { owner?: Account; holder?: Account; remarks?: string },
  ): Promise<Issued>;
  /**
   * Takes back the last blocks and puts a branch in their place that is one block longer. By default the
   * branch has the same transactions; with `dropped` it has none of them.
   */
  reorganise(depth: number, options?: { transactions?: FateOfTransactions }): Promise<Reorganisation>;
  /**
   * Makes a link to the console that logs in once, within 15 minutes. `page`: what it shows, for example
   * `token?id=…`; the overview by default.
   */
  consoleLink(page?: string): Promise<string>;
  /** Ends the service and starts it again. */
  restartService(): Promise<void>;
  /** Rejects if the node or the service ends by itself. */
  failure: Promise<never>;
  /** Ends everything. */
  stop(this: void): Promise<void>;
}

/** The account that a sample document is issued to. */
const OWNER = 1;

/** Options that the package does not offer. */
interface Surroundings {
  ports?: Ports | undefined;
  /** Called with each step of the start. */
  say?: (line: string) => void;
  /** Called with each webhook that the devnet's own receiver verified. */
  onWebhook?: (event: ServiceEvent) => void;
  /** Settings of the service that a devnet does not have. */
  settings?: Readonly<Record<string, string>>;
}

/**
 * Starts a local chain with a registry, the service and the reference receiver. The caller must `stop` it; it
 * also ends with this process.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NETWORK_UNKNOWN, HARDHAT_MISSING; ServiceError PORT_TAKEN,
 *   CHAIN_NOT_KEPT, DEVNET_FAILED with the last lines of each program's log. Nothing is left running then.
 */
export function startDevnet(options: DevnetOptions = {}): Promise<Devnet> {
  return startDevnetWith(options, {});
}

/** The same for `npm run devnet` and the tests of this project. */
export async function startDevnetWith(
  options: DevnetOptions,
  { ports: given, say = () => undefined, onWebhook, settings: more }: Surroundings,
): Promise<Devnet> {
  const place = await placeOf(options, given);
  const { network, folder, ports, leave } = place;
  const files = filesIn(folder);
  const receiverUrl = options.receiver ?? `http://127.0.0.1:${ports.receiver}/webhook`;
  const inbox = new WebhookInbox();
  const cleanup: (() => Promise<void>)[] = [];
  let service: ServiceProcess | undefined;
  let isStopping = false;
  const stopAll = async (): Promise<void> => {
    isStopping = true;
    inbox.end(new ServiceError('DEVNET_FAILED', 'The devnet was stopped.'));
    // The service goes first: it finishes what it has begun with the others.
    const ends = [Promise.resolve(service?.stop())];
    await Promise.allSettled(ends);
    ends.push(...cleanup.map((end) => end()));
    await Promise.allSettled(ends);
    leave();
    await Promise.all(ends);
  };
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= stopAll());
  try {
    const { adminApiKey } = writeSettings(place, options, receiverUrl);
    const settings = { ENV_FILE: files.envFile };
    const starting = startLocalChain(place, options);
    cleanup.push(() => starting.then((chain) => chain.stop()).catch(() => undefined));
    const receiving = (async () => {
      await makeDidKey({}, settings);
      await makeSigningKey({ publicKeyFile: files.publicKey }, settings);
      say('did:web key pair and webhook signing key made');
      if (options.receiver !== undefined) return undefined;
      const { url, close, control } = await startOwnReceiver(place, options, (event) => {
        onWebhook?.(event);
        inbox.add(event);
      });
      cleanup.push(close);
      say(`reference receiver at ${url}`);
      return control;
    })();
    // If one of them fails, `stop` must know what the other has started.
    await Promise.allSettled([starting, receiving]);
    const [chain, receiver] = await Promise.all([starting, receiving]);
    const { registryAddress, node, accounts, client } = chain;
    say(`${network.local ? 'local chain' : `stand-in for ${network.name}`} at ${node.url}`);
    say(`token registry ${place.kept ? 'found' : 'deployed'} at ${registryAddress}`);
    const known = { ...more, ...settings, TOKEN_REGISTRY_ADDRESS: registryAddress };
    await setEnvValue(files.envFile, 'TOKEN_REGISTRY_ADDRESS', registryAddress);
    const running = await startServiceProcess(known, files.log('service'));
    service = running;
    say(`service at ${running.url}`);
    await subscribe(running.url, adminApiKey, options.retractions ? receiverUrl : undefined);
    const failure = Promise.race([
      node.ended.then(() => 'The hardhat node'),
      running.endedByItself.then(() => 'The service'),
    ]).then((name) => {
      if (isStopping) return new Promise<never>(() => undefined);
      throw new ServiceError('DEVNET_FAILED', `${name} ended by itself.\n\n${logTails(folder)}`);
    });
    failure.catch((error: ServiceError) => inbox.end(error));
    const notOurs = (name: string): never => {
      const message = `This devnet has no \`${name}\`: its events go to ${receiverUrl}, your own receiver.`;
      throw new ServiceError('RECEIVER_NOT_OURS', message);
    };
    return {
      serviceUrl: running.url,
      nodeUrl: node.url,
      chainId: network.chainId,
      registryAddress,
      receiverUrl,
      adminApiKey,
      accounts,
      folder,
      publicKeyFile: files.publicKey,
      didDocumentFile: files.didDocument,
      envFile: files.envFile,
      ...operationsOn(chain),
      client,
      isContinued: place.kept !== undefined,
      failure,
      get webhooks() {
        return receiver ? inbox : notOurs('webhooks');
      },
      get receiver() {
        return receiver ?? notOurs('receiver');
      },
      issue: async (subject = BILL_OF_LADING, { owner = OWNER, holder = owner, remarks } = {}) =>
        issueDocument(running.url, {
          credentialSubject: subject,
          owner: accountOf(accounts, 'owner', owner),
          holder: accountOf(accounts, 'holder', holder),
          ...(remarks !== undefined && { remarks }),
        }),
      reorganise: (depth, { transactions = 'mined again' } = {}) => chain.reorganise(depth, transactions),
      consoleLink: (page) => makeConsoleLink({ serviceUrl: running.url, adminApiKey }, page),
      restartService: () => running.restart(),
      stop,
    };
  } catch (error) {
    const logs = logTails(folder);
    await stop();
    if (error instanceof ServiceError) throw error;
    throw new ServiceError('DEVNET_FAILED', `${messageOf(error)}\n\n${logs}`, { cause: error });
  }
}

const TAIL_LINES = 10;

/** The last lines that each program of a run has logged, to explain a failure. */
export function logTails(folder: string): string {
  return ['node', 'service']
    .map((program) => filesIn(folder).log(program))
    .filter((file) => existsSync(file))
    .map(
      (file) =>
        `--- ${file}\n${readFileSync(file, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES).join('\n')}`,
    )
    .join('\n');
}
