import type { Lifecycle } from '../base/lifecycle';
import type { Time } from '../base/time';
import { codeOf, ConfigurationError, ServiceError } from '../base/errors';
import type { Logger } from '../base/logger';
import { secretMasker } from '../base/mask-secrets';
import { contextFileAt, isOwnContext, readContextFile } from '../base/published-files';
import { createGasStation, readFees, type FeeReading, estimateFees } from '../chain/transactions';
import type { Confirmations } from '../chain/networks';
import type { NodeReport } from '../chain/node-states';
import type { Chain } from '../chain/chain';
import { balanceOf } from '../chain/read-state';
import type { Config } from '../config/config';
import type { FollowedRegistry } from '../config/followed-registries';
import { missingForIssuing } from '../config/warnings';
import type { Database } from '../database/database';
import type { PreparationSettings } from '../issuance/prepare-document';
import { createSigningPool } from '../issuance/signing-pool';
import { createDatabaseJournal } from '../journal/journal';
import { mintFiguresOf } from '../journal/read-issuances';
import { watchIssuer } from '../keys/issuer-key';
import { openWallet } from '../keys/wallet';
import { createMintQueue } from '../minting/mint-queue';
import { startSharedMintQueue } from '../minting/shared-mint-queue';
import {
  createGasReading,
  createIssuingReport,
  createWalletReading,
  type MintOutcomes,
} from '../observability/issuing-report';
import { createRegistryFinder } from '../registry/registry-contracts';
import { createMintSimulation, estimateMint, simulationFailed, trialMint } from '../registry/simulate-mint';
import { nameFeed } from '../watcher/follow-registry';

/** Issuing, from a request to a mined token. Without some settings, documents cannot be issued. */
export type Issuing = Awaited<ReturnType<typeof startIssuing>>;

/** Milliseconds for which a balance is kept. */
const KEEP_BALANCE_MS = 60_000;
const KEEP_LOCAL_BALANCE_MS = 10_000;

/**
 * Starts the signing threads and the mint queue if everything is configured, and finishes mints that an
 * earlier run left in flight.
 */
export async function startIssuing(
  config: Config,
  parts: {
    client: Chain;
    checkChain: () => Promise<void>;
    /** The states of the nodes, if there are several. */
    nodes?: () => NodeReport[] | undefined;
    database: Database;
    outcomes: MintOutcomes;
    lifecycle: Lifecycle;
    time: Time;
    logger: Logger;
  },
) {
  const { walletKey, tokenRegistryAddress: registryAddress } = config;
  const preparation = preparationOf(config);
  if (!preparation || !walletKey || !registryAddress)
    return {
      issuer: { missing: missingForIssuing(config) },
      journal: undefined,
      scope: undefined,
      report: async () => undefined,
      isMinting: () => false,
      stop: async () => undefined,
    };
  const { client, checkChain, nodes, database, outcomes, time, lifecycle, logger } = parts;
  const { network } = config;
  await expectUsableContext(preparation.documentContextUrl);
  const wallet = openWallet(time, walletKey, logger);
  const { address: walletAddress } = wallet;
  const issuerSigner = watchIssuer(time, preparation.issuerKey, logger);
  const pool = await createSigningPool(preparation, { time, threads: config.signingThreads });
  const minter = { registryAddress, walletAddress };
  const scope = { chainId: network.chainId, registryAddress, issuer: preparation.issuer };
  const journal = createDatabaseJournal(database, scope, time);
  const fees = feeReadingOf(config, client, time, logger);
  const findRegistry = createRegistryFinder(client, registryAddress);
  const { startBlock } = ownRegistryOf(config) ?? {};
  let isReadable = false;
  /** A document whose events could never be read must not be issued. */
  const checkHistory = async (): Promise<void> => {
    try {
      await nameFeed({ client, startBlock, identity: scope, database }, await findRegistry());
      isReadable = true;
    } catch (error) {
      // The simulation says what is wrong with the registry.
      if (codeOf(error)?.startsWith('REGISTRY_')) return;
      throw error instanceof ServiceError ? error : simulationFailed(error);
    }
  };
  const queue = await startSharedMintQueue({
    database,
    journal,
    scope,
    logger,
    time,
    openQueue: () =>
      createMintQueue({
        client,
        network,
        confirmations: confirmationsOf(config),
        wallet,
        registryAddress,
        journal,
        checkChain,
        readFees: () => readFees(fees),
        logger,
        mask: secretMasker(config.secrets),
        lifecycle,
        time,
      }),
  });
  return {
    issuer: {
      prepare: pool.prepare,
      simulate: createMintSimulation(client, minter),
      journal,
      queue,
      signers: { wallet: wallet.remote, issuer: issuerSigner },
      time,
      async checkChain() {
        await checkChain();
        if (!isReadable) await checkHistory();
      },
    },
    journal,
    scope,
    isMinting: () => queue.isMinting(),
    report: createIssuingReport({
      mints: () => mintFiguresOf(database.db, scope),
      lastFailure: outcomes.lastFailure,
      signing: () => pool.figures(),
      nodes,
      signers: () => [wallet.remote, issuerSigner].flatMap((signer) => signer?.watch() ?? []),
      wallet: createWalletReading({
        address: walletAddress,
        readBalance: () => balanceOf(client, walletAddress),
        // The wallet is read so often that logging each warning would fill the log.
        readFees: () => readFees({ ...fees, warn: () => undefined }),
        readGas: createGasReading(() => estimateMint(client, minter, trialMint(walletAddress))),
        keepMs: network.local ? KEEP_LOCAL_BALANCE_MS : KEEP_BALANCE_MS,
        time,
        logger,
      }),
      time,
    }),
    /** Ends the threads and the queue. The next start finishes the mints in flight. */
    async stop() {
      await Promise.all([queue.stop(), pool.destroy()]);
    },
  };
}

/**
 * Examines a context of the issuer's own, so that no document is the first to show that it cannot be used.
 *
 * @throws ConfigurationError CONTEXT_UNUSABLE.
 */
async function expectUsableContext(url: string): Promise<void> {
  const fileName = contextFileAt(url);
  if (fileName === undefined || !isOwnContext(fileName)) return;
  // Loaded only here: verification takes a fifth of the time of a start.
  const { examineContext } =
    require('../validation/examine-context') as typeof import('../validation/examine-context');
  const found = await examineContext(readContextFile(fileName));
  if (found.length === 0) return;
  const remedy = 'Correct the file, or unset BILL_OF_LADING_CONTEXT_URL.';
  const message = `No document can be issued under contexts/${fileName}: ${found.join('; ')}. ${remedy}`;
  throw new ConfigurationError('CONTEXT_UNUSABLE', message, { remedy });
}

/** The values that all documents of this issuer share; undefined while settings are missing. */
export function preparationOf(config: Config): PreparationSettings | undefined {
  const { issuerKey, tokenRegistryAddress: tokenRegistry, billOfLadingContextUrl } = config;
  if (!issuerKey || !tokenRegistry || !billOfLadingContextUrl) return undefined;
  const { currency, chainId } = config.network;
  return {
    issuerKey,
    issuer: issuerKey.controller,
    documentContextUrl: billOfLadingContextUrl,
    rendererUrl: config.rendererUrl,
    currency,
    chainId,
    tokenRegistry,
  };
}

/** The followed registry in which documents are issued. */
export function ownRegistryOf(config: Config): FollowedRegistry | undefined {
  const { registries, network, tokenRegistryAddress } = config;
  return registries.find((one) => one.network === network && one.address === tokenRegistryAddress);
}

/** Mints use the confirmations of the registry's events, so both become final together. */
export function confirmationsOf(config: Config): Confirmations {
  return ownRegistryOf(config)?.confirmations ?? config.network.confirmations;
}

function feeReadingOf(config: Config, client: Chain, time: Time, logger: Logger): FeeReading {
  const { network, gasStationUrl, leastPriorityFeeGwei: leastGwei } = config;
  return {
    gasPricing: network.gasPricing,
    leastGwei: leastGwei ?? network.leastPriorityFeeGwei,
    readStation: gasStationUrl === undefined ? undefined : createGasStation(gasStationUrl, time),
    readNode: () => estimateFees(client),
    warn: (message, error) => logger.warn({ error }, message),
  };
}
