import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { v7 as uuidV7 } from 'uuid';
import { readFees, type FeeReading } from './chain/fees';
import { createGasStation } from './chain/gas-station';
import { createChainCheck, createRpcClient, type RpcClient } from './chain/rpc-client';
import { createTokenMinter } from './chain/token-registry';
import { systemClock } from './clock';
import type { Config } from './config';
import type { Database } from './database/database';
import { openDatabase } from './database/open-database';
import { createFeedDelivery } from './delivery/feed-delivery';
import { ChainError } from './errors';
import type { FollowedRegistry } from './followed-registries';
import { createHttpApp } from './http/app';
import { healthOf, type ReportedFeed } from './health';
import { listen } from './http/server';
import { createDocumentLoader } from './issuance/document-loader';
import { createIssueDocument, type Issuer } from './issuance/issue-document';
import { createCredentialSigner } from './issuance/sign';
import type { Logger } from './logger';
import { createMetrics, type Metrics } from './metrics';
import { outboxFiguresOf, type OutboxFigures } from './outbox/outbox-figures';
import { secretMasker } from './secrets';
import { openTunnel, type Tunnel, type TunnelOptions } from './tunnel';
import { followRegistry } from './watcher/follow-registry';

/** The running service. */
export interface App {
  url: string;
  /** Finishes what is in flight and closes everything. */
  stop(): Promise<void>;
}

/** What tests replace of the tunnel. */
export type TunnelParts = Partial<Pick<TunnelOptions, 'load' | 'openWithinMs'>>;

/**
 * The composition root: the only place that knows every part. Two lines start here, issuing and announcing, and meet only on the
 * chain.
 *
 * @throws ConfigurationError when what is configured cannot work: the node is of another chain, the port or the database is taken.
 */
export async function startApp(config: Config, logger: Logger, tunnel: TunnelParts = {}): Promise<App> {
  const client = createRpcClient(config.rpcUrl, config.network);
  const checkChain = createChainCheck(client, config.rpcUrl, config.network);
  await checkChain().catch((error: unknown) => {
    if (!(error instanceof ChainError)) throw error;
    logger.warn({ error }, error.message);
  });
  const issuer = await createIssuer(config, client, checkChain, logger);
  const announcing = await startAnnouncing(config, logger);
  try {
    const server = await listen(httpHandler(config, issuer, announcing, logger), config.host, config.port);
    const publicEnd = tunnelTo(server.url, config, logger, tunnel);
    return {
      url: server.url,
      async stop() {
        // What is asked through the tunnel is answered before it closes.
        await Promise.all([server.close().finally(() => publicEnd?.close()), announcing.stop()]);
        client.destroy();
      },
    };
  } catch (cause) {
    await announcing.stop();
    client.destroy();
    throw cause;
  }
}

/** The tunnel of TUNNEL_AUTHTOKEN; undefined without it. */
function tunnelTo(
  localUrl: string,
  { domain, tunnelAuthtoken: authtoken }: Config,
  logger: Logger,
  { load, openWithinMs }: TunnelParts,
): Tunnel | undefined {
  if (authtoken === undefined) return undefined;
  return openTunnel({ localUrl, domain, authtoken, logger, load, openWithinMs });
}

/** http → issuance → chain. */
function httpHandler(
  config: Config,
  issuer: Issuer | { missing: string[] },
  announcing: Announcing,
  logger: Logger,
): RequestListener {
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
    health: () => healthOf(announcing.feeds, systemClock.now()),
    metrics: announcing.metrics,
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
  const { gasPricing } = config.network;
  const fees: FeeReading = {
    gasPricing,
    readStation: config.gasStationUrl === undefined ? undefined : createGasStation(config.gasStationUrl),
    readNode: () => client.getFeeData(),
    warn: (message, error) => logger.warn({ error }, message),
  };
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
      readFees: () => readFees(fees),
    }),
    checkChain,
  };
}

/** A registry whose events are announced. */
interface AnnouncedFeed extends ReportedFeed {
  stop(): Promise<void>;
}

interface Announcing {
  feeds: readonly AnnouncedFeed[];
  metrics: Metrics;
  stop(): Promise<void>;
}

/** watcher → outbox → delivery, once for each registry: what one waits for, the others do not. */
async function startAnnouncing(config: Config, logger: Logger): Promise<Announcing> {
  if (config.registries.length === 0)
    logger.warn('no events are read: TOKEN_REGISTRY_ADDRESS is not configured');
  const database = await openDatabase(config, logger);
  const opened = new Map<string, string>();
  const figures = async (): Promise<({ registry: string } & OutboxFigures)[]> =>
    Promise.all(
      [...opened].map(async ([registry, feed]) => ({
        registry,
        ...(await outboxFiguresOf(database.db, feed)),
      })),
    );
  const metrics = createMetrics(() => feeds, figures);
  const feeds = config.registries.map((registry) =>
    startFeed(registry, { config, database, metrics, opened, logger }),
  );
  return {
    feeds,
    metrics,
    async stop() {
      await Promise.all(feeds.map((feed) => feed.stop()));
      await database.close();
    },
  };
}

/** What the feeds share. `opened`: the name of each registry's feed, once it is known. */
interface FeedParts {
  config: Config;
  database: Database;
  metrics: Metrics;
  opened: Map<string, string>;
  logger: Logger;
}

function startFeed(registry: FollowedRegistry, parts: FeedParts): AnnouncedFeed {
  const { config, database, metrics, opened } = parts;
  const { network, rpcUrl, address } = registry;
  const registryAddress = address.toLowerCase();
  const name = `${network.chainId}:${registryAddress}`;
  const logger = parts.logger.child({ registry: name });
  if (!registry.webhook) logger.warn('events are stored, not delivered: no webhook is configured');
  const client = createRpcClient(rpcUrl, network, 'bulk');
  const delivery = createFeedDelivery(registry.webhook, database, logger, (outcome) =>
    metrics.attempted(name, outcome),
  );
  const follower = followRegistry({
    client,
    registryAddress: address,
    identity: { chainKey: network.chainKey, chainId: network.chainId, registryAddress },
    startBlock: registry.startBlock,
    confirmations: registry.confirmations,
    finalityDepth: config.finalityDepth,
    pauses: registry.pauses,
    database,
    clock: systemClock,
    logger,
    mask: secretMasker(config.secrets),
    checkChain: createChainCheck(client, rpcUrl, network),
    async onOpened(feed) {
      opened.set(name, feed);
      await delivery.start(feed);
    },
    onHeld: () => delivery.hold(),
    onDue(events) {
      if (events > 0) metrics.recorded(name, events);
      delivery.wake();
    },
  });
  return {
    network: network.name,
    chainId: network.chainId,
    registry: registryAddress,
    status: follower.status,
    async stop() {
      await Promise.all([follower.stop(), delivery.stop()]);
      client.destroy();
    },
  };
}
