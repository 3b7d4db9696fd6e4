import { makeDidKey, makeSigningKey } from '../cli/keys/make-keys';
import { setEnvValue } from '../cli/files/env-file';
import type { ServiceEvent } from '../client/events';
import { messageOf, ServiceError } from '../service/base/errors';
import { BILL_OF_LADING } from './bill-of-lading';
import type { Devnet, DevnetFacts, DevnetOptions } from './devnet';
import { startLocalChain, type LocalChain } from './local-chain';
import { logTails } from './log-tails';
import { namedOperations } from './named-operations';
import { accountOf } from './operations';
import { startOwnReceiver, type OwnReceiver } from './own-receiver';
import { placeOf } from './place';
import type { Ports } from './ports';
import { issueDocument, makeConsoleLink, subscribe } from './service-requests';
import { startServiceProcess, type ServiceProcess } from './service-process';
import { filesIn, writeSettings } from './stack-settings';
import { WebhookInbox } from './webhook-inbox';

export type {
  Devnet,
  DevnetFacts,
  DevnetOptions,
  Giving,
  Operations,
  ReceiverControl,
  Sending,
} from './devnet';
export type { Account, Operated, OperationName } from './operations';
export type { FateOfTransactions, Reorganisation } from './reorganise';
export type { Issued } from './service-requests';
export type { EventType, Wanted, Webhooks } from './webhook-inbox';

/** The account that a sample document is issued to. */
const OWNER = 1;

/** Options that the package does not offer. */
interface Surroundings {
  ports?: Ports;
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
  { ports: given, say = () => undefined, onWebhook = () => undefined, settings: more }: Surroundings,
): Promise<Devnet> {
  const { network, folder, leave, kept, ports } = await placeOf(options, given);
  const files = filesIn(folder);
  const receiverUrl = options.receiver ?? `http://127.0.0.1:${ports.receiver}/webhook`;
  const inbox = new WebhookInbox();
  const cleanup: (() => Promise<void>)[] = [];
  let service: ServiceProcess | undefined;
  const stopAll = async (): Promise<void> => {
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
    const webhookUrl = options.retractions ? undefined : receiverUrl;
    const { confirmations } = options;
    const { adminApiKey } = writeSettings({ folder, ports, network, webhookUrl, confirmations });
    const settings = { ENV_FILE: files.envFile };
    const starting = startLocalChain({
      network,
      port: ports.node,
      blockTimeMs: options.blockTime === undefined ? network.blockTimeMs : options.blockTime * 1000,
      logFile: files.log('node'),
      keepIn: options.keep ? files.chain : undefined,
      kept,
    });
    cleanup.push(() => starting.then((chain) => chain.stop()).catch(() => undefined));
    const receiving = (async () => {
      await makeDidKey({}, settings);
      await makeSigningKey({ publicKeyFile: files.publicKey }, settings);
      say('did:web key pair and webhook signing key made');
      if (options.receiver !== undefined) return undefined;
      const receiver = await startOwnReceiver({
        port: ports.receiver,
        publicKeyFile: files.publicKey,
        eventsFile: files.events,
        retractions: options.retractions === true,
        onEvent: (event) => {
          onWebhook(event);
          inbox.add(event);
        },
      });
      cleanup.push(() => receiver.close());
      say(`reference receiver at ${receiver.url}`);
      return receiver;
    })();
    // If one of them fails, `stop` must know what the other has started.
    await Promise.allSettled([starting, receiving]);
    const [chain, receiver] = await Promise.all([starting, receiving]);
    const { registryAddress, node, accounts } = chain;
    say(`${network.local ? 'local chain' : `stand-in for ${network.name}`} at ${node.url}`);
    say(`token registry ${chain.isContinued ? 'found' : 'deployed'} at ${registryAddress}`);
    const known = { ...more, ...settings, TOKEN_REGISTRY_ADDRESS: registryAddress };
    await setEnvValue(files.envFile, 'TOKEN_REGISTRY_ADDRESS', registryAddress);
    service = await startServiceProcess(known, files.log('service'));
    say(`service at ${service.url}`);
    await subscribe(service.url, adminApiKey, options.retractions ? receiverUrl : undefined);
    const facts: DevnetFacts = {
      serviceUrl: service.url,
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
    };
    return devnetOf(facts, { chain, service, receiver, inbox, stop });
  } catch (error) {
    const logs = logTails(folder);
    await stop();
    if (error instanceof ServiceError) throw error;
    throw new ServiceError('DEVNET_FAILED', `${messageOf(error)}\n\n${logs}`, { cause: error });
  }
}

interface Parts {
  chain: LocalChain;
  service: ServiceProcess;
  receiver: OwnReceiver | undefined;
  inbox: WebhookInbox;
  stop: () => Promise<void>;
}

function devnetOf(facts: DevnetFacts, { chain, service, receiver, inbox, stop }: Parts): Devnet {
  const ends = [
    chain.node.ended.then(() => 'The hardhat node'),
    service.endedByItself.then(() => 'The service'),
  ];
  let isStopping = false;
  const failure = Promise.race(ends).then((name) => {
    if (isStopping) return new Promise<never>(() => undefined);
    throw new ServiceError('DEVNET_FAILED', `${name} ended by itself.\n\n${logTails(facts.folder)}`);
  });
  failure.catch((error: ServiceError) => inbox.end(error));
  return {
    ...facts,
    ...namedOperations(chain),
    client: chain.client,
    isContinued: chain.isContinued,
    failure,
    get webhooks() {
      if (receiver) return inbox;
      throw notOurs('webhooks', facts);
    },
    get receiver() {
      if (receiver) return receiver;
      throw notOurs('receiver', facts);
    },
    issue: async (subject = BILL_OF_LADING, { owner = OWNER, holder = owner, remarks } = {}) =>
      issueDocument(facts.serviceUrl, {
        credentialSubject: subject,
        owner: accountOf(chain, 'owner', owner),
        holder: accountOf(chain, 'holder', holder),
        ...(remarks !== undefined && { remarks }),
      }),
    reorganise: (depth, { transactions = 'mined again' } = {}) => chain.reorganise(depth, transactions),
    consoleLink: (page) => makeConsoleLink(facts, page),
    restartService: () => service.restart(),
    async stop() {
      isStopping = true;
      inbox.end(new ServiceError('DEVNET_FAILED', 'The devnet was stopped.'));
      await stop();
    },
  };
}

function notOurs(what: string, { receiverUrl }: DevnetFacts): ServiceError {
  const message = `This devnet has no \`${what}\`: its events go to ${receiverUrl}, your own receiver.`;
  return new ServiceError('RECEIVER_NOT_OURS', message);
}
