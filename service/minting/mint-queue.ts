import { setTimeout as sleep } from 'node:timers/promises';
import { Wallet } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import type { TransactionFees } from '../chain/fees';
import type { Network } from '../chain/networks';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';
import type { Issuance } from '../journal/issuance';
import type { Logger } from '../base/logger';
import { followMints } from './follow-mints';
import type { Mint } from './mint';
import { MintChain } from './mint-chain';
import { MintStates } from './mint-states';
import { Nonces } from './nonces';
import { prepareMints } from './prepare-mints';
import { pause, timingFor, type MintTiming, type QueueParts } from './queue-parts';
import { MintRecorder, type MintJournal, type MintObserver } from './record-mints';
import { BroadcastWidth, sendMints } from './send-mints';
import { TransactionTerms } from './transaction-terms';

/**
 * Mints the tokens of one wallet on one chain: it alone sends transactions of this wallet, as far as this
 * service goes.
 */
export interface MintQueue {
  /**
   * Mints the token of an issuance that is in the journal. Goes on until it is final or failed, with or
   * without callers.
   *
   * @returns the hash of the mined transaction.
   * @throws ChainError with the code of the failure.
   */
  mint(issuance: Issuance): Promise<string>;
  /** Sends nothing more; what is in flight is finished at the next start. */
  stop(): Promise<void>;
}

/** What a queue works with. */
export interface MintQueueOptions {
  client: RpcClient;
  network: Network;
  /** Blocks on top of a mint's block that make it final. */
  confirmations: number;
  privateKey: string;
  registryAddress: string;
  journal: MintJournal;
  /** Rejects while the node cannot be asked, and when it is of another chain. */
  checkChain: () => Promise<void>;
  /** Fees of the next transaction. */
  readFees: () => Promise<TransactionFees>;
  logger: Logger;
  /** Masks secrets in what is kept of a failure. */
  mask: (text: string) => string;
  observer: MintObserver;
  /** What tests shorten of the times. */
  timing?: Partial<MintTiming>;
}

const SHORTEST_FEE_AGE_MS = 1_000;
const NODE_PAUSE_MS = 1_000;
/** A node that hangs must not hold a stop up: what is under way is in the journal. */
const LONGEST_STOP_MS = 5_000;

/**
 * Opens the queue of a wallet. What an earlier run left is taken up first. Everything that is sent is in the
 * journal before. Three loops share the work: what waits is prepared, what is ready is sent, what a node may
 * have is followed until it is final.
 */
export function createMintQueue(options: MintQueueOptions): MintQueue {
  const stop = new AbortController();
  const parts = createParts(options, stop.signal);
  const { states, recorder, logger } = parts;
  const recovered = recover(parts, options.checkChain);

  async function run(): Promise<void> {
    await recovered;
    await Promise.all([prepareMints(parts), sendMints(parts), followMints(parts)]);
    await recorder.finish();
  }

  const running = run().catch((error: unknown) => {
    logger.fatal({ error }, 'the queue of mints has ended');
  });
  return {
    async mint(issuance) {
      const { state, tokenId, txHash } = issuance;
      if ((state === 'mined' || state === 'final') && txHash !== undefined) return txHash;
      // Those of an earlier run come first, and this may be one of them.
      await recovered;
      if (stop.signal.aborted) throw stoppedMinting(tokenId);
      const outcome = states.outcomeOf(tokenId);
      if (outcome !== undefined) return outcome;
      const mint = states.add(issuance, false);
      states.wait(mint);
      return mint.outcome.promise;
    },
    async stop() {
      stop.abort();
      for (const sleep of Object.values(states.sleeps)) sleep.wake();
      const reject = ({ outcome, issuance }: Mint): void => outcome.reject(stoppedMinting(issuance.tokenId));
      // What is being settled may be in the journal soon.
      states
        .unsettled()
        .filter((mint) => states.stateOf(mint) !== 'settled')
        .forEach(reject);
      await Promise.race([running, sleep(LONGEST_STOP_MS, undefined, { ref: false })]);
      states.unsettled().forEach(reject);
    },
  };
}

function createParts(options: MintQueueOptions, stopping: AbortSignal): QueueParts {
  const { client, network, registryAddress, confirmations, journal, logger, mask, observer } = options;
  const wallet = new Wallet(options.privateKey, client);
  const nonces = new Nonces();
  const states = new MintStates(nonces);
  return {
    client,
    network,
    wallet,
    states,
    nonces,
    chain: new MintChain(client, registryAddress, confirmations),
    recorder: new MintRecorder({
      states,
      journal,
      logger,
      mask,
      observer,
      stopping,
      isFinalAtOnce: confirmations === 0,
    }),
    terms: new TransactionTerms({
      client,
      wallet,
      chainId: network.chainId,
      registryAddress,
      registry: TradeTrustTokenStandard__factory.connect(registryAddress, wallet),
      readFees: options.readFees,
      keepFeesMs: Math.max(network.blockTimeMs, SHORTEST_FEE_AGE_MS),
    }),
    width: new BroadcastWidth(network.local),
    timing: timingFor(client, network, options.timing),
    logger,
    stopping,
  };
}

/** Takes up what an earlier run of the service left. */
async function recover(parts: QueueParts, checkChain: () => Promise<void>): Promise<void> {
  const { recorder, states, wallet, logger } = parts;
  // At once: what is added from now on is of this run, and has a caller.
  const unfinished = (await recorder.persist((journal) => journal.unfinished())) ?? [];
  // A node of another chain knows nothing of the mints, which would be taken for failed.
  await untilChainIsRight(parts, checkChain);
  if (unfinished.length > 0)
    logger.info({ mints: unfinished.length }, 'mints of an earlier run are taken up');
  for (const one of unfinished) states.takeUp(one, wallet.address);
}

async function untilChainIsRight(parts: QueueParts, checkChain: () => Promise<void>): Promise<void> {
  const { stopping, logger, network, recorder, chain } = parts;
  for (let tries = 0; !stopping.aborted; tries++) {
    try {
      await checkChain();
      if (network.local) await recorder.enterChain(await chain.genesisHash());
      return;
    } catch (error) {
      if (tries === 0) logger.warn({ error }, 'nothing is minted: the chain cannot be checked');
      await pause(NODE_PAUSE_MS, stopping);
    }
  }
}

/** What is told of a mint that this process does not wait for any more. */
export function stoppedMinting(tokenId: string): ChainError {
  const message = `The service stops while token ${tokenId} is minted: that is finished at the next start.`;
  const remedy = 'Start the service again; the document is kept.';
  return new ChainError('MINT_NOT_CONFIRMED', message, { retryable: true, remedy });
}
