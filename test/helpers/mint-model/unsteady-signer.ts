import { Wallet } from 'ethers';
import { SignerError, type ErrorCode } from '../../../service/base/errors';
import {
  requireSigned,
  type TransactionFields,
  type TransactionSigner,
} from '../../../service/keys/transaction-signer';
import { DEPLOYER, DEPLOYER_KEY } from '../chain/local-setup';
import { LIES } from '../chain/signer-lies';
import { Part } from './faults';

const USUAL_MS = 100;
/** A signer that takes longer counts as unreachable. */
const LONGEST_MS = 10_000;
/** Those of its lies that a queue would send, or keep under another nonce. */
const BELIEVABLE = ['another nonce', 'another recipient', 'another key', 'a high s'];

/**
 * The wallet behind a remote signer that is away, refuses, is slow, loses its answers and lies. Its answers
 * are checked like those of the real one.
 */
export class UnsteadySigner extends Part implements TransactionSigner {
  readonly address = DEPLOYER;
  readonly #wallet = new Wallet(DEPLOYER_KEY);

  async sign(fields: TransactionFields): Promise<string> {
    const { time, history } = this.parts;
    const fail = (code: ErrorCode, what: string): SignerError => {
      history.note(`the signer ${what}: nonce ${fields.nonce}`);
      return new SignerError(code, `The signer ${what}.`);
    };
    const isAway = this.strikes('signer away');
    const refuses = this.strikes('signer refuses');
    const isLost = this.strikes('signature lost');
    const isWrong = this.strikes('signature wrong');
    const ms = 1 + this.random.below(this.strikes('signature slow') ? 2 * LONGEST_MS : USUAL_MS);
    const lie = this.random.pick(BELIEVABLE);
    await time.sleep(Math.min(ms, LONGEST_MS));
    if (isAway || ms > LONGEST_MS) throw fail('SIGNER_UNREACHABLE', 'is away');
    if (refuses) throw fail('SIGNER_REFUSED', 'refuses');
    const raw = await this.#wallet.signTransaction(fields);
    if (isLost) throw fail('SIGNER_UNREACHABLE', 'loses its answer');
    if (isWrong) history.note(`the signer answers with ${lie}: nonce ${fields.nonce}`);
    return requireSigned(isWrong ? await LIES[lie]?.(raw) : raw, fields, this.address);
  }
}
