import { keccak256 } from 'ethers';
import { highestGasPrice, namedTip, type TransactionFees, withLeastTip } from '../chain/transactions';
import type { Time } from '../base/time';
import type { Issuance } from '../journal/issuance';
import { estimateMint, mintData } from '../registry/simulate-mint';
import type { Mint, MintQueueOptions, SignedMint } from './mint';

/**
 * Tracks the wallet's nonces. A node's count includes transactions that others sent with this wallet, but a
 * node may be behind. The queue therefore combines that count with the nonces that it reserved.
 */
export class Nonces {
  /** Nonces below this one are used; the highest value that any node has reported. */
  floor = 0;
  /** When the floor last rose, by `elapsed`. */
  roseAt: number;
  /** Reserved, but not yet signed and kept in the journal. */
  readonly #reserved = new Set<number>();
  /** Reserved and taken back. Transactions with higher nonces cannot be mined before these are used. */
  readonly #freed = new Set<number>();
  /** When nodes began to count less than the floor. */
  #lowSince: number | undefined;

  constructor(private readonly time: Time) {
    this.roseAt = time.elapsed();
  }

  /** Takes a node's count of the wallet's transactions into account. `latest`: it counts mined ones only. */
  note(count: number, latest = false): void {
    if (count < this.floor) {
      this.#lowSince ??= this.time.elapsed();
      return;
    }
    this.#lowSince = undefined;
    if (latest) this.raise(count);
  }

  /** Nonces below `used` are used, as a node says. */
  raise(used: number): void {
    if (used <= this.floor) return;
    this.floor = used;
    this.roseAt = this.time.elapsed();
    for (const nonce of this.#freed) if (nonce < used) this.#freed.delete(nonce);
  }

  /** Milliseconds for which nodes have counted less than the floor. */
  lowForMs(): number {
    return this.#lowSince === undefined ? 0 : this.time.elapsed() - this.#lowSince;
  }

  /**
   * Reserves the next nonces to sign with. Nonces that were taken back come first.
   *
   * @param pending the node's count, including transactions in its pool.
   * @param highestHeld the highest nonce of a transaction that is signed.
   */
  reserve(count: number, pending: number, highestHeld = -1): number[] {
    const lowest = Math.max(this.floor, pending);
    for (const nonce of this.#freed) if (nonce < pending) this.#freed.delete(nonce);
    const next = Math.max(lowest, highestHeld + 1, ...[...this.#reserved].map((nonce) => nonce + 1));
    const holes = [...this.#freed].filter((nonce) => nonce >= lowest && nonce < next).sort((a, b) => a - b);
    const nonces = holes.slice(0, count);
    for (let nonce = next; nonces.length < count; nonce++) nonces.push(nonce);
    for (const nonce of nonces) {
      this.#reserved.add(nonce);
      this.#freed.delete(nonce);
    }
    return nonces;
  }

  /** Ends the reservation of these nonces: their transactions are kept in the journal, or will never be. */
  settle(nonces: readonly number[]): void {
    for (const nonce of nonces) this.#reserved.delete(nonce);
  }

  isReserved(nonce: number): boolean {
    return this.#reserved.has(nonce);
  }

  /** Takes a nonce back that no transaction will use. */
  free(nonce: number): void {
    if (nonce >= this.floor) this.#freed.add(nonce);
  }

  /** A nonce that was taken back is used after all. */
  take(nonce: number): void {
    this.#freed.delete(nonce);
  }

  lowestFreed(): number | undefined {
    return this.#freed.size === 0 ? undefined : Math.min(...this.#freed);
  }

  /** The chain, or its pool of transactions, is gone: nonces from `count` on are free. */
  reset(count: number): void {
    this.floor = count;
    this.#lowSince = undefined;
    this.roseAt = this.time.elapsed();
    this.#freed.clear();
    this.#reserved.clear();
  }
}

const KEEP_GAS_MS = 5 * 60_000;
const SHORTEST_FEE_AGE_MS = 1_000;
/** A node may ask for less later, and may have named more than it needs. */
const KEEP_TIP_MS = 3_600_000;
/** Signs mint transactions. Gas limits and fees are read once and kept for a while for all mints. */
export class TransactionTerms {
  /** Gas limits by the length of the remark. */
  readonly #limits = new Map<number, Kept<Promise<bigint>>>();
  #fees: Kept<Promise<TransactionFees>> | undefined;
  /** The priority fee that a refusal has named last. */
  #leastTip: Kept<bigint> | undefined;

  constructor(private readonly options: MintQueueOptions) {}

  /**
   * The gas limit of a mint. Its gas depends on the length of its remark, of which 32 bytes are stored
   * together, and slightly on the zero bytes of its ids and addresses. One estimate therefore serves all
   * mints with a remark of that length for a while. A mint that was signed before is estimated by itself,
   * because it may revert where others do not.
   *
   * @throws ChainError REGISTRY_MISSING; any error of the node's estimate, as when the mint would revert or
   *   the wallet cannot pay.
   */
  async gasLimit({ issuance, transactions }: Mint): Promise<bigint> {
    if (transactions.length > 0) return this.#estimate(issuance);
    const { length } = issuance.remark;
    const learned = this.#limits.get(length);
    // The shared estimate may have failed for a reason of the mint that asked for it.
    if (this.#isFresh(learned, KEEP_GAS_MS)) return learned.value.catch(() => this.#estimate(issuance));
    const learning = { value: this.#estimate(issuance), at: this.options.time.elapsed() };
    this.#limits.set(length, learning);
    learning.value.catch(() => this.#limits.delete(length));
    return learning.value;
  }

  /** Drops the kept gas limits, as when the registry changed or a mint ran out of gas. */
  forgetGas(): void {
    this.#limits.clear();
  }

  /** The fees of the next transactions. A failed read is not kept. */
  fees(): Promise<TransactionFees> {
    const { network, readFees } = this.options;
    if (this.#isFresh(this.#fees, Math.max(network.blockTimeMs, SHORTEST_FEE_AGE_MS)))
      return this.#fees.value;
    const leastTip = this.#isFresh(this.#leastTip, KEEP_TIP_MS) ? this.#leastTip.value : 0n;
    const value = readFees().then((fees) => withLeastTip(fees, leastTip));
    this.#fees = { value, at: this.options.time.elapsed() };
    value.catch(() => this.forgetFees());
    return value;
  }

  /** Drops the kept fees because they were too low; the next call reads them anew. */
  forgetFees(refusal = ''): void {
    const tip = namedTip(refusal);
    if (tip > 0n) this.#leastTip = { value: tip, at: this.options.time.elapsed() };
    this.#fees = undefined;
  }

  /**
   * Signs the transaction of a mint. The caller adds it to the mint and writes it to the journal.
   *
   * @throws SignerError when a remote signer fails.
   */
  async sign(
    mint: Mint,
    { nonce, gasLimit, fees }: Pick<SignedMint, 'nonce' | 'gasLimit' | 'fees'>,
  ): Promise<SignedMint> {
    const { tokenId } = mint.issuance;
    const { registryAddress: to, network, wallet } = this.options;
    const data = mintData(mint.issuance);
    const raw = await wallet.sign({ to, data, chainId: network.chainId, nonce, gasLimit, ...fees });
    const from = wallet.address;
    const signedAt = this.options.time.now();
    const signed = { tokenId, hash: keccak256(raw), nonce, raw, signedAt };
    return { ...signed, from, gasLimit, fees, reach: 'none' };
  }

  #isFresh<T>(kept: Kept<T> | undefined, ms: number): kept is Kept<T> {
    return kept !== undefined && this.options.time.elapsed() - kept.at < ms;
  }

  #estimate(issuance: Issuance): Promise<bigint> {
    const { client, registryAddress, wallet } = this.options;
    return estimateMint(client, { registryAddress, walletAddress: wallet.address }, issuance);
  }
}

interface Kept<T> {
  value: T;
  at: number;
}

/**
 * The fees of a replacement transaction. Each is at least an eighth higher than before, as nodes require, and
 * at least the current fee.
 *
 * @returns undefined where gas is free, because no fee would make a difference.
 */
export function raiseFees(offered: TransactionFees, now: TransactionFees): TransactionFees | undefined {
  if (highestGasPrice(offered) === 0n && highestGasPrice(now) === 0n) return undefined;
  if (offered.type === 0 && now.type === 0)
    return { type: 0, gasPrice: highest(raised(offered.gasPrice), now.gasPrice) };
  const maxPriorityFeePerGas = highest(raised(priorityOf(offered)), priorityOf(now));
  const maxFeePerGas = highest(raised(highestGasPrice(offered)), highestGasPrice(now), maxPriorityFeePerGas);
  return { type: 2, maxFeePerGas, maxPriorityFeePerGas };
}

/** A legacy transaction offers its whole gas price to the block producer. */
function priorityOf(fees: TransactionFees): bigint {
  return fees.type === 2 ? fees.maxPriorityFeePerGas : fees.gasPrice;
}

/**
 * Rounded up, because nodes refuse a wei less. A free transaction is raised too: its replacement must offer
 * more.
 */
function raised(fee: bigint): bigint {
  return fee + highest((fee + 7n) / 8n, 1n);
}

function highest(...fees: bigint[]): bigint {
  return fees.reduce((most, fee) => (fee > most ? fee : most));
}
