import { systemClock, systemTime } from '../base/clock';
import { codeOf, ServiceError } from '../base/errors';
import type { Logger } from '../base/logger';
import { secretMasker } from '../base/mask-secrets';
import { shared } from '../base/shared-answers';
import { createGasStation, readFees, type FeeReading } from '../chain/transactions';
import type { Confirmations } from '../chain/networks';
import type { NodeReport } from '../chain/node-states';
import type { RpcClient } from '../chain/rpc-client';
import type { Config } from '../config/config';
import type { FollowedRegistry } from '../config/followed-registries';
import { missingForIssuing } from '../config/warnings';
import type { Database } from '../database/database';
import type { PreparationSettings } from '../issuance/prepare-document';
import { createSigningPool, type SigningPool } from '../issuance/signing-pool';
import { createDatabaseJournal } from '../journal/journal';
import { mintFiguresOf } from '../journal/read-issuances';
import { watchIssuer } from '../keys/module-keys';
import { createReadiness, type RemoteSigner, type SignerReport } from '../keys/signer-state';
import { openWallet } from '../keys/wallet';
import { createMintQueue } from '../minting/mint-queue';
import { startSharedMintQueue } from '../minting/shared-mint-queue';
import { createIssuingReport, createWalletReading, type MintOutcomes } from '../observability/issuing-report';
import { createRegistryFinder } from '../registry/registry-contracts';
import { createMintSimulation, simulationFailed } from '../registry/simulate-mint';
import { nameFeed } from '../watcher/follow-registry';

/** Issuing, from a request to a mined token. Without some settings, documents cannot be issued. */
export type Issuing = Awaited<ReturnType<typeof startIssuing>>;

/** How long a caller waits at most, in milliseconds. Missing values have defaults. */
export interface CallerTiming {
  mintMs?: number;
  signerMs?: number;
}

/** The longest time a caller waits for a mint. Most callers have given up by then. */
const LONGEST_WAIT_MS = 10 * 60_000;
/** Milliseconds for which a balance is kept. */
const KEEP_BALANCE_MS = 60_000;
const KEEP_LOCAL_BALANCE_MS = 10_000;
/** A remote signer is asked this often, at most, whether it answers. */
const CHECK_SIGNER_MS = 10_000;

/**
 * Starts the signing threads and the mint queue if everything is configured, and finishes mints that an
 * earlier run left in flight.
 */
export async function startIssuing(
  config: Config,
  parts: {
    client: RpcClient;
    checkChain: () => Promise<void>;
    /** The states of the nodes, if there are several. */
    nodes?: () => NodeReport[] | undefined;
    database: Database;
    outcomes: MintOutcomes;
    logger: Logger;
    /** Times that tests shorten. */
    callerTiming?: CallerTiming | undefined;
    /** How often at most the wallet and its signer are looked at, in milliseconds. */
    lookAtKeysMs?: number | undefined;
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
  const { client, checkChain, nodes, database, outcomes, logger, lookAtKeysMs } = parts;
  const { mintMs = LONGEST_WAIT_MS, signerMs } = parts.callerTiming ?? {};
  const { network } = config;
  const wallet = openWallet(walletKey, logger);
  const { address: walletAddress } = wallet;
  const issuerSigner = watchIssuer(preparation.issuerKey, logger);
  const pool = await createSigningPool(preparation, { threads: config.signingThreads });
  const prepare: SigningPool['prepare'] = (preparation, left) => {
    const prepared = pool.prepare(preparation, left);
    return issuerSigner ? issuerSigner.follow(prepared) : prepared;
  };
  const scope = { chainId: network.chainId, registryAddress, issuer: preparation.issuer };
  const journal = createDatabaseJournal(database, scope, systemClock);
  const fees = feeReadingOf(config, client, logger);
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
    time: systemTime,
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
        observer: outcomes,
        time: systemTime,
      }),
  });
  return {
    issuer: {
      prepare,
      simulate: createMintSimulation(client, { registryAddress, walletAddress }),
      journal,
      queue,
      signers: {
        wallet: wallet.remote && createReadiness(wallet.remote, signerMs),
        issuer: issuerSigner && createReadiness(issuerSigner, signerMs),
      },
      waitMs: mintMs,
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
      signers: signerReadingOf([wallet.remote, issuerSigner], lookAtKeysMs),
      wallet: createWalletReading({
        address: walletAddress,
        readBalance: () => client.getBalance(walletAddress),
        // The wallet is read so often that logging each warning would fill the log.
        readFees: () => readFees({ ...fees, warn: () => undefined }),
        keepMs: lookAtKeysMs ?? (network.local ? KEEP_LOCAL_BALANCE_MS : KEEP_BALANCE_MS),
        clock: systemClock,
        logger,
      }),
      clock: systemClock,
    }),
    /** Ends the threads and the queue. The next start finishes the mints in flight. */
    async stop() {
      await Promise.all([queue.stop(), pool.destroy()]);
    },
  };
}

/** Gives the last states of remote signers at once, and asks them in the background whether they answer. */
function signerReadingOf(
  signers: readonly (RemoteSigner | undefined)[],
  leastMs = CHECK_SIGNER_MS,
): () => SignerReport[] {
  const readings = signers.flatMap((signer) => {
    if (signer === undefined) return [];
    const check = shared(signer.check, { clock: systemClock, leastMs });
    return [{ check, report: signer.report }];
  });
  return () =>
    readings.map(({ check, report }) => {
      void check(0);
      return report();
    });
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

function feeReadingOf(config: Config, client: RpcClient, logger: Logger): FeeReading {
  const { network, gasStationUrl, leastPriorityFeeGwei: leastGwei } = config;
  return {
    gasPricing: network.gasPricing,
    leastGwei: leastGwei ?? network.leastPriorityFeeGwei,
    readStation: gasStationUrl === undefined ? undefined : createGasStation(gasStationUrl),
    readNode: () => client.getFeeData(),
    warn: (message, error) => logger.warn({ error }, message),
  };
}
