import type { CreateStage } from '../base/lifecycle';
import { codeOf, ConfigurationError, ServiceError } from '../base/errors';
import { secretMasker } from '../base/mask-secrets';
import { contextFileAt, isOwnContext, readContextFile } from '../base/published-files';
import { createGasStation, readFees, type FeeReading, estimateFees } from '../chain/transactions';
import type { Chain } from '../chain/chain';
import type { ConnectedNodes } from '../chain/connect-nodes';
import { balanceOf } from '../chain/read-state';
import type { Config } from '../config/config';
import type { Issuer } from '../issuance/issue-document';
import type { PreparationSettings } from '../issuance/prepare-document';
import { createSigningPool } from '../issuance/signing-pool';
import type { JournalScope } from '../journal/issuance';
import { createDatabaseJournal, type Journal } from '../journal/journal';
import { mintFiguresOf } from '../journal/read-issuances';
import { watchIssuer } from '../keys/issuer-key';
import { openWallet } from '../keys/wallet';
import { createMintQueue } from '../minting/mint-queue';
import { startSharedMintQueue } from '../minting/shared-mint-queue';
import { createWalletReading, mintReport, type MintFailure } from '../observability/issuing-report';
import type { IssuingFigures } from '../observability/snapshot';
import { createRegistryFinder } from '../registry/registry-contracts';
import { createMintSimulation, estimateMint, simulationFailed, trialMint } from '../registry/simulate-mint';
import { nameFeed } from '../watcher/follow-registry';
import type { Core } from './core';

/** Issuing, from a request to a mined token. */
export interface Issuing extends IssuingFigures {
  readonly issuer: Issuer;
  readonly journal: Journal;
  readonly scope: JournalScope;
  /** Whether this process has the right to mint. */
  isMinting(this: void): boolean;
  /** Ends the threads and the queue. The next start finishes the mints in flight. */
  stop(): Promise<void>;
}

/** Milliseconds for which a balance is kept. */
const KEEP_BALANCE_MS = 60_000;
const KEEP_LOCAL_BALANCE_MS = 10_000;

/**
 * Starts the signing threads and the mint queue if everything is configured, and finishes mints that an
 * earlier run left in flight. Undefined without some settings: then no documents are issued.
 */
export async function startIssuing(core: Core, nodes: ConnectedNodes): Promise<Issuing | undefined> {
  const { config, database, lifecycle, time, logger } = core;
  const { network, walletKey, tokenRegistryAddress: registryAddress } = config;
  const preparation = preparationOf(config);
  if (!preparation || !walletKey || !registryAddress) return undefined;
  const { client, checkChain, report } = nodes;
  await expectUsableContext(preparation.documentContextUrl);
  let lastFailure: MintFailure | undefined;
  lifecycle.on('mint failed', (code) => (lastFailure = { code, at: time.now() }));
  const wallet = openWallet(time, walletKey, logger);
  const { address: walletAddress } = wallet;
  const issuerSigner = watchIssuer(time, preparation.issuerKey, logger);
  const pool = await createSigningPool(preparation, { time, threads: config.signingThreads });
  const minter = { registryAddress, walletAddress };
  const scope = { chainId: network.chainId, registryAddress, issuer: preparation.issuer };
  const journal = createDatabaseJournal(database, scope, time);
  const fees = feeReadingOf(core, client);
  const findRegistry = createRegistryFinder(client, registryAddress);
  const startBlock = config.ownRegistry?.startBlock;
  let isReadable = false;
  const timed = stageTimer(core);
  const queue = await startSharedMintQueue({
    ...core,
    journal,
    scope,
    openQueue: () =>
      createMintQueue({
        ...core,
        client,
        network,
        confirmations: config.mintConfirmations,
        wallet,
        registryAddress,
        journal,
        checkChain,
        readFees: () => readFees(fees),
        mask: secretMasker(config.secrets),
      }),
  });
  const readWallet = createWalletReading({
    address: walletAddress,
    readBalance: () => balanceOf(client, walletAddress),
    // The wallet is read so often that logging each warning would fill the log.
    readFees: () => readFees({ ...fees, warn: () => undefined }),
    estimateGas: () => estimateMint(client, minter, trialMint(walletAddress)),
    keepMs: network.local ? KEEP_LOCAL_BALANCE_MS : KEEP_BALANCE_MS,
    time,
    logger,
  });
  return {
    issuer: {
      prepare: timed('sign', pool.run),
      simulate: timed('simulate', createMintSimulation(client, minter)),
      journal: { ...journal, add: timed('store', journal.add) },
      queue: { mint: timed('mint', (issuance) => queue.mint(issuance)) },
      signers: { wallet: wallet.remote, issuer: issuerSigner },
      time,
      checkChain: timed('check', async () => {
        await checkChain();
        if (isReadable) return;
        // A document whose events could never be read must not be issued.
        try {
          await nameFeed({ client, startBlock, identity: scope, database }, await findRegistry());
          isReadable = true;
        } catch (error) {
          // The simulation says what is wrong with the registry.
          if (codeOf(error)?.startsWith('REGISTRY_')) return;
          throw error instanceof ServiceError ? error : simulationFailed(error);
        }
      }),
    },
    journal,
    scope,
    isMinting: () => queue.isMinting(),
    countMints: async () => mintReport(await mintFiguresOf(database.db, scope), lastFailure, time.now()),
    async ownFigures() {
      const { waiting, held: busy, workers: threads } = pool.figures();
      return {
        signing: { waiting, busy, threads },
        nodes: report(),
        signers: [wallet.remote, issuerSigner].flatMap((signer) => signer?.watch() ?? []),
        wallet: await readWallet(),
      };
    },
    async stop() {
      await Promise.all([queue.stop(), pool.stop()]);
    },
  };
}

/** Returns a function that does work and emits how long it took. */
function stageTimer({ time, lifecycle }: Pick<Core, 'time' | 'lifecycle'>) {
  return <Given extends unknown[], Result>(stage: CreateStage, work: (...given: Given) => Promise<Result>) =>
    (...given: Given): Promise<Result> => {
      const start = time.elapsed();
      return work(...given).finally(() => lifecycle.emit('stage ended', stage, time.elapsed() - start));
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
  const { issuerKey, rendererUrl, tokenRegistryAddress: tokenRegistry } = config;
  const { billOfLadingContextUrl: documentContextUrl, network } = config;
  if (!issuerKey || !tokenRegistry || !documentContextUrl) return undefined;
  const { currency, chainId } = network;
  const { controller: issuer } = issuerKey;
  return { issuerKey, issuer, documentContextUrl, rendererUrl, currency, chainId, tokenRegistry };
}

function feeReadingOf({ config, time, logger }: Core, client: Chain): FeeReading {
  const { network, gasStationUrl, leastPriorityFeeGwei: leastGwei } = config;
  return {
    gasPricing: network.gasPricing,
    leastGwei: leastGwei ?? network.leastPriorityFeeGwei,
    readStation: gasStationUrl === undefined ? undefined : createGasStation(gasStationUrl, time),
    readNode: () => estimateFees(client),
    warn: (message, error) => logger.warn({ error }, message),
  };
}
