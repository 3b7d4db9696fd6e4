import { createHash } from 'node:crypto';
import { getAddress } from 'ethers';
import { messageOf } from '../../../service/base/errors';
import type { Issuance, SignedDocument } from '../../../service/journal/issuance';
import type { SeededRandom } from '../seeded-random';
import type { ScenarioParts } from './scenario-parts';
import type { ServiceLife } from './service-life';

/** The longest time until a caller repeats a failed request. */
const LONGEST_PAUSE_MS = 4_000;

/** A caller that repeats its request, with an Idempotency-Key, until it has one document. */
export class Caller {
  readonly key: string;
  /** The token of the answer. */
  told: string | undefined;
  readonly #name: string;
  readonly #parts: ScenarioParts;
  readonly #random: SeededRandom;
  /** The tokens of all documents signed for this caller. There is another one after each failure. */
  readonly #tokenIds = new Set<string>();

  constructor(name: string, parts: ScenarioParts, random: SeededRandom) {
    this.key = `key ${name}`;
    this.#name = name;
    this.#parts = parts;
    this.#random = random;
  }

  owns(tokenId: string): boolean {
    return this.#tokenIds.has(tokenId);
  }

  /** Repeats the request to the current process of the service. */
  async insist(service: () => ServiceLife | undefined, isOver: () => boolean): Promise<void> {
    const { time, history } = this.#parts;
    while (!isOver()) {
      const life = service();
      try {
        if (life !== undefined && this.told === undefined) await this.#ask(life);
      } catch (error) {
        history.note(`${this.key} is told: ${messageOf(error)}`);
      }
      await time.sleep(1 + this.#random.below(LONGEST_PAUSE_MS));
    }
  }

  /** Like issue-document.ts: continues the document with this key, or stores a new one. */
  async #ask(life: ServiceLife): Promise<void> {
    const earlier = await life.journal.findByKey(this.key);
    const issuance = earlier ?? (await this.#store(life));
    const hash = issuance.txHash ?? (await life.mint(issuance));
    this.#parts.history.note(`${this.key} is told of ${issuance.tokenId} by ${hash}`);
    this.told = issuance.tokenId;
  }

  async #store(life: ServiceLife): Promise<Issuance> {
    const { document, ...mint } = this.#newDocument();
    const requestHash = createHash('sha256').update(this.key).digest('hex');
    const earlier = await life.journal.add({ document, ...mint }, { key: this.key, requestHash });
    const createdAt = this.#parts.time.now();
    return (
      earlier ?? { ...mint, state: 'signed', txHash: undefined, failure: undefined, requestHash, createdAt }
    );
  }

  #newDocument(): SignedDocument {
    const tokenId = this.#random.hex(32).slice(2);
    const someone = getAddress('0x70997970c51812dc3a010c7d01b50e0d17dc79c8');
    this.#tokenIds.add(tokenId);
    this.#parts.history.name(tokenId, `${this.#name}.${this.#tokenIds.size}`);
    return {
      tokenId,
      credentialId: `urn:bnid:_:${tokenId.slice(0, 32)}`,
      beneficiary: someone,
      holder: someone,
      // The gas of a mint depends on the length of its remark.
      remark: this.#random.chance(0.8) ? '0x' : this.#random.hex(1 + this.#random.below(100)),
      blNumber: undefined,
      document: Buffer.from(tokenId),
    };
  }
}
