import { Wallet } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import type { TransactionFees } from '../chain/fees';
import type { Network } from '../chain/networks';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../errors';
import type { Logger } from '../logger';
import { createWakeableSleep } from '../wakeable-sleep';
import { createBroadcastWidth } from './broadcast-width';
import { createCurrentFees } from './current-fees';
import type { Issuance } from '../journal/issuance';
import { putToWaiting, type Lane, type LaneJournal } from './lane-state';
import { timingOf, type LaneTiming } from './lane-timing';
import { createLearnedGas } from './learned-gas';
import { newOutcome, type Mint } from './mint';
import { prepareMints } from './prepare-mints';
import { recoverMints } from './recover-mints';
import { sendMints } from './send-mints';
import { watchReceipts } from './watch-receipts';

/** Mints the tokens of one wallet on one chain: the only one who sends transactions of this wallet, as far as this service goes. */
export interface MintLane {
  /**
   * Mints the token of an issuance that is in the journal. Goes on until it is mined or failed, whoever still waits.
   *
   * @returns the hash of the mined transaction.
   * @throws ChainError with the code of the failure.
   */
  mint(issuance: Issuance): Promise<string>;
  /** Sends nothing more; what is in flight is finished at the next start. */
  stop(): Promise<void>;
}

/** What a lane works with. */
export interface MintLaneOptions {
  client: RpcClient;
  network: Network;
  privateKey: string;
  registryAddress: string;
  journal: LaneJournal;
  /** Rejects while the node cannot be asked, and when it is of another chain. */
  checkChain: () => Promise<void>;
  /** Fees of the next transaction. */
  readFees: () => Promise<TransactionFees>;
  logger: Logger;
  /** Masks secrets in what is kept of a failure. */
  mask: (text: string) => string;
  /** Milliseconds after which a transaction that is not mined is replaced: some blocks, and a minute at least. */
  replaceAfterMs?: number;
  /** How often a transaction is replaced that offers enough, each time with a higher fee. */
  mostReplacements?: number;
  /** What tests shorten of the other times. */
  timing?: Partial<LaneTiming>;
}

const MOST_REPLACEMENTS = 5;
const SHORTEST_FEE_AGE_MS = 1_000;
/** A node that hangs must not hold a stop up: what is under way is in the journal. */
const LONGEST_STOP_MS = 5_000;

/**
 * Opens the lane of a wallet. What an earlier run left is taken up first; then what is asked for is sent in order, while receipts of all that is in flight
 * are watched together. Everything that is sent is in the journal before. Three loops share the work: what waits is prepared, what is ready is sent,
 * what is in flight is watched.
 */
export function createMintLane(options: MintLaneOptions): MintLane {
  const stop = new AbortController();
  const lane = openLane(options, stop.signal);
  let order = 0;

  function admit(issuance: Issuance, isRecovered: boolean): Mint {
    const known = lane.mints.get(issuance.tokenId);
    if (known !== undefined) return known;
    const mint: Mint = {
      issuance,
      order: order++,
      isRecovered,
      transactions: [],
      refusals: 0,
      estimates: 0,
      isSettled: false,
      isNoted: false,
      outcome: newOutcome(),
    };
    lane.mints.set(issuance.tokenId, mint);
    return mint;
  }

  const recovered = recoverMints(lane, ({ issuance }) => admit(issuance, true));

  async function run(): Promise<void> {
    await recovered;
    await Promise.all([prepareMints(lane), sendMints(lane), watchReceipts(lane)]);
    await Promise.all([...lane.underWay]);
  }

  const running = run().catch((error: unknown) => {
    lane.logger.fatal({ error }, 'the lane of mints has ended');
  });
  return {
    async mint(issuance) {
      const { state, tokenId, txHash } = issuance;
      if (state === 'mined' && txHash !== undefined) return txHash;
      // Those of an earlier run come first, and this may be one of them.
      await recovered;
      if (stop.signal.aborted) throw stoppedMinting(tokenId);
      const settled = lane.settled.get(tokenId);
      if (settled !== undefined) return settled;
      const isNew = !lane.mints.has(tokenId);
      const mint = admit(issuance, false);
      if (isNew) putToWaiting(lane, mint);
      return mint.outcome.promise;
    },
    async stop() {
      stop.abort();
      for (const sleep of Object.values(lane.sleeps)) sleep.wake();
      for (const { outcome, issuance, isSettled } of lane.mints.values())
        if (!isSettled) outcome.reject(stoppedMinting(issuance.tokenId));
      await endsWithin(running, LONGEST_STOP_MS);
      for (const { outcome, issuance } of lane.mints.values())
        outcome.reject(stoppedMinting(issuance.tokenId));
    },
  };
}

function openLane(options: MintLaneOptions, stopping: AbortSignal): Lane {
  const { client, network, registryAddress, journal, checkChain, logger, mask } = options;
  const { readFees, privateKey } = options;
  const wallet = new Wallet(privateKey, client);
  const registry = TradeTrustTokenStandard__factory.connect(registryAddress, wallet);
  const feeAgeMs = Math.max(network.blockTimeMs, SHORTEST_FEE_AGE_MS);
  return {
    client,
    network,
    wallet,
    registry,
    registryAddress,
    journal,
    checkChain,
    logger,
    mask,
    gas: createLearnedGas(client, registry),
    fees: createCurrentFees(readFees, feeAgeMs),
    width: createBroadcastWidth(!network.local),
    timing: timingOf(options),
    mostReplacements: options.mostReplacements ?? MOST_REPLACEMENTS,
    stopping,
    sleeps: {
      preparing: createWakeableSleep(),
      sending: createWakeableSleep(),
      watching: createWakeableSleep(),
    },
    mints: new Map(),
    settled: new Map(),
    waiting: [],
    preparing: new Set(),
    ready: [],
    sending: new Set(),
    inFlight: new Map(),
    parked: new Set(),
    doomed: new Set(),
    freed: new Set(),
    floor: 0,
    lowSince: undefined,
    progressAt: performance.now(),
    minesAtOnce: network.local,
    headAt: undefined,
    presenceAt: performance.now(),
    registryMissingSince: undefined,
    epoch: 0,
    underWay: new Set(),
    noting: Promise.resolve(),
  };
}

/** What is told of a mint that this process does not wait for any more. */
export function stoppedMinting(tokenId: string): ChainError {
  const message = `The service stops while token ${tokenId} is minted: that is finished at the next start.`;
  const remedy = 'Start the service again; the document is kept.';
  return new ChainError('MINT_NOT_CONFIRMED', message, { retryable: true, remedy });
}

async function endsWithin(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
