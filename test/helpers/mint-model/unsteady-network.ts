import { DEPLOYER, DEPLOYER_KEY } from '../chain/local-setup';
import { Part } from './faults';
import { ADMIN_KEY } from './place';
import { hex } from './unsteady-chain';

/** The average time between two blocks. */
export const BLOCK_MS = 2_000;

/**
 * Everything that happens to the chain without the service: blocks, reorganisations, transactions that the
 * network forgets and remembers, and those of other senders.
 */
export class UnsteadyNetwork extends Part {
  /** Runs the network with faults until the time `until`. */
  async goWrong(until: number): Promise<void> {
    const { time, chain } = this.parts;
    while (time.now() < until) {
      await time.sleep(BLOCK_MS * (0.25 + 1.5 * this.random.fraction()));
      await this.#forgetAndRemember();
      await this.#meddle();
      if (this.strikes('reorganisation') && chain.reversible > 0) await this.#reorganise();
      else await this.#mine();
    }
  }

  /** Mines all waiting transactions. After each block it asks `isOver`. */
  async goWell(isOver: () => Promise<boolean>): Promise<void> {
    const { time, chain } = this.parts;
    do {
      await time.sleep(BLOCK_MS);
      if (await chain.isPaused()) await chain.setPaused(ADMIN_KEY, false);
      await this.#mine();
    } while (!(await isOver()));
  }

  async #forgetAndRemember(): Promise<void> {
    const { chain, faults, history } = this.parts;
    if (faults.has('forgotten'))
      for (const { hash } of await chain.waiting())
        if (this.strikes('forgotten')) {
          history.note(`forgotten: ${hash.slice(0, 8)}`);
          await chain.forget(hash);
        }
    if (!faults.has('heard again')) return;
    const waiting = (await chain.waiting()).map(({ hash }) => hash);
    const used = await chain.count(DEPLOYER, 'latest');
    for (const { hash, raw, nonce, from } of [...chain.heard.values()]) {
      if (waiting.includes(hash) || from !== DEPLOYER || nonce < used) continue;
      if (!this.strikes('heard again')) continue;
      history.note(`heard again: ${hash.slice(0, 8)}`);
      await chain.send(raw);
    }
  }

  async #meddle(): Promise<void> {
    const { chain, history } = this.parts;
    if (this.strikes('other sender')) await this.#sendAsOther();
    if (this.strikes('pause')) {
      const isPaused = await chain.isPaused();
      history.note(isPaused ? 'the pause ends' : 'the registry is paused');
      await chain.setPaused(ADMIN_KEY, !isPaused);
    }
    if (!this.strikes('dear block')) return;
    const block = (await chain.call('eth_getBlockByNumber', 'latest', false)) as { baseFeePerGas: string };
    const fee = hex(Number(block.baseFeePerGas) * (2 + this.random.below(5)));
    history.note(`the base fee rises to ${Number(fee)}`);
    await chain.call('hardhat_setNextBlockBaseFeePerGas', fee);
  }

  async #sendAsOther(): Promise<void> {
    const { chain, history } = this.parts;
    const how = this.random.pick(['next', 'next', 'next', 'instead', 'after a gap'] as const);
    const nonce = await chain.count(DEPLOYER, how === 'instead' ? 'latest' : 'pending');
    const answer = await chain.sendNothing(DEPLOYER_KEY, nonce + (how === 'after a gap' ? 1 : 0));
    const told = 'error' in answer ? answer.error.message : 'taken';
    history.note(`another sends (${how}) from nonce ${nonce}: ${told}`);
  }

  async #mine(): Promise<void> {
    const { chain, history } = this.parts;
    const isEmpty = this.strikes('empty block');
    const leftOut = isEmpty ? Infinity : this.strikes('some left out') ? 1 + this.random.below(3) : 0;
    const transactions = await chain.mine(leftOut);
    history.count('block');
    history.note(`block ${chain.head}: ${this.#namesOf(transactions)}`);
  }

  async #reorganise(): Promise<void> {
    const { chain, faults, history } = this.parts;
    const depth = 1 + this.random.below(chain.reversible);
    const share = this.random.fraction();
    const gone = await chain.takeBack(depth, () => this.random.chance(share));
    history.note(`${depth} blocks are taken back: ${this.#namesOf(gone)}`);
    if (faults.has('other sender') && this.random.chance(0.2)) await this.#sendAsOther();
    const blocks = Math.max(depth + this.random.pick([-1, 0, 0, 1]), 1);
    for (let mined = 0; mined < blocks; mined++) await this.#mine();
  }

  #namesOf(hashes: readonly string[]): string {
    const { chain, history } = this.parts;
    const names = hashes.map((hash) => {
      const { tokenId, nonce, from } = chain.heard.get(hash) ?? {};
      return from === DEPLOYER ? `${history.nameOf(tokenId)} nonce ${nonce} ${hash.slice(0, 8)}` : 'admin';
    });
    return names.join(', ') || 'empty';
  }
}
