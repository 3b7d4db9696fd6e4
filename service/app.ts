import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { v7 as uuidV7 } from 'uuid';
import { createGasStation, type FeeSource } from './chain/gas-station';
import { createChainCheck, createRpcClient, type RpcClient } from './chain/rpc-client';
import { createTokenMinter } from './chain/token-registry';
import { systemClock } from './clock';
import type { Config } from './config';
import { openSqlite } from './database/open-sqlite';
import { createFeedDelivery } from './delivery/feed-delivery';
import { ChainError } from './errors';
import { createHttpApp } from './http/app';
import { listen } from './http/server';
import { createDocumentLoader } from './issuance/document-loader';
import { createIssueDocument, type Issuer } from './issuance/issue-document';
import { createCredentialSigner } from './issuance/sign';
import type { Logger } from './logger';
import { secretMasker } from './secrets';
import { followRegistry } from './watcher/follow-registry';

/** The running service. */
export interface App {
  url: string;
  /** Finishes what is in flight and closes everything. */
  stop(): Promise<void>;
}

const LOCAL_POLL_INTERVAL_MS = 200;
const POLL_INTERVAL_MS = 2_000;

/**
 * The composition root: the only place that knows every part. Two lines start here, issuing and announcing, and meet only on the
 * chain.
 *
 * @throws ConfigurationError when what is configured cannot work: the node is of another chain, the port or DATA_DIR is taken.
 */
export async function startApp(config: Config, logger: Logger): Promise<App> {
  const client = createRpcClient(config.rpcUrl, config.network);
  const checkChain = createChainCheck(client, config.rpcUrl, config.network);
  await checkChain().catch((error: unknown) => {
    if (!(error instanceof ChainError)) throw error;
    logger.warn({ error }, error.message);
  });
  const handler = await httpHandler(config, client, checkChain, logger);
  const feed = await startFeed(config, client, checkChain, logger);
  try {
    const server = await listen(handler, config.host, config.port);
    return {
      url: server.url,
      async stop() {
        await Promise.all([server.close(), feed.stop()]);
        client.destroy();
      },
    };
  } catch (cause) {
    await feed.stop();
    client.destroy();
    throw cause;
  }
}

/** http → issuance → chain. */
async function httpHandler(
  config: Config,
  client: RpcClient,
  checkChain: () => Promise<void>,
  logger: Logger,
): Promise<RequestListener> {
  const issuer = await createIssuer(config, client, checkChain, logger);
  if ('missing' in issuer) {
    logger.warn(
      { missing: issuer.missing },
      `documents cannot be issued: ${issuer.missing.join(', ')} not configured`,
    );
  }
  const app = createHttpApp({
    issueDocument: createIssueDocument(issuer, systemClock, uuidV7),
    didDocumentPath: config.didDocumentPath,
    apiKey: config.apiKey,
    development: config.development,
    logger,
    mask: secretMasker(config.secrets),
    newId: randomUUID,
  });
  const handle = app.callback();
  return (request, response) => void handle(request, response);
}

async function createIssuer(
  config: Config,
  client: RpcClient,
  checkChain: () => Promise<void>,
  logger: Logger,
): Promise<Issuer | { missing: string[] }> {
  const { walletPrivateKey, didKeyPair, tokenRegistryAddress, billOfLadingContextUrl } = config;
  if (!walletPrivateKey || !didKeyPair || !tokenRegistryAddress || !billOfLadingContextUrl) {
    const needed = {
      DOMAIN: billOfLadingContextUrl,
      WALLET_PRIVATE_KEY: walletPrivateKey,
      DID_KEY_PAIRS: didKeyPair,
      TOKEN_REGISTRY_ADDRESS: tokenRegistryAddress,
    };
    return { missing: Object.entries(needed).flatMap(([name, value]) => (value ? [] : [name])) };
  }
  return {
    did: didKeyPair.controller,
    network: config.network,
    tokenRegistry: tokenRegistryAddress,
    documentContextUrl: billOfLadingContextUrl,
    rendererUrl: config.rendererUrl,
    sign: await createCredentialSigner(didKeyPair, createDocumentLoader(billOfLadingContextUrl)),
    minter: createTokenMinter({
      client,
      privateKey: walletPrivateKey,
      registryAddress: tokenRegistryAddress,
      readFees: feeSourceOf(config),
      warn: (message, error) => logger.warn({ error }, message),
    }),
    checkChain,
  };
}

function feeSourceOf({ network }: Config): FeeSource {
  return network.gasStationUrl ? createGasStation(network.gasStationUrl) : async () => undefined;
}

/** watcher → outbox → delivery. */
async function startFeed(
  config: Config,
  client: RpcClient,
  checkChain: () => Promise<void>,
  logger: Logger,
): Promise<{ stop(): Promise<void> }> {
  const { tokenRegistryAddress, network } = config;
  if (tokenRegistryAddress === undefined) {
    logger.warn('no events are read: TOKEN_REGISTRY_ADDRESS is not configured');
    return { stop: async () => undefined };
  }
  if (!config.webhook) logger.warn('events are stored, not delivered: no webhook is configured');
  const database = await openSqlite(config.dataDir);
  const delivery = createFeedDelivery(config.webhook, database.db, logger);
  const registryAddress = tokenRegistryAddress.toLowerCase();
  const follower = followRegistry({
    client,
    registryAddress: tokenRegistryAddress,
    identity: { chainKey: network.chainKey, chainId: network.chainId, registryAddress },
    startBlock: config.startBlock,
    confirmations: config.confirmations,
    pollIntervalMs: network.local ? LOCAL_POLL_INTERVAL_MS : POLL_INTERVAL_MS,
    db: database.db,
    clock: systemClock,
    logger,
    checkChain,
    onOpened: (feed) => delivery.start(feed),
    onRecorded: () => delivery.wake(),
  });
  return {
    async stop() {
      await follower.stop();
      await delivery.stop();
      await database.close();
    },
  };
}
