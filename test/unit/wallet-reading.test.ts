import { expect } from 'chai';
import { parseEther } from 'ethers';
import type { TransactionFees } from '../../service/chain/transactions';
import { createLogger } from '../../service/base/logger';
import { createWalletReading } from '../../service/observability/issuing-report';
import { DOCUMENTED_GAS_LIMIT } from '../../service/registry/simulate-mint';
import { VirtualTime } from '../helpers/virtual-time';

const address = `0x${'12'.repeat(20)}`;
const logger = createLogger({ level: 'silent', mask: (text) => text });
/** A node does not answer at once. */
const ANSWER_MS = 10;
const BEGINNING = 1_000;
const READ_AT = BEGINNING + ANSWER_MS;
const GWEI = 1_000_000_000n;

describe("the wallet's balance", () => {
  let time: VirtualTime;
  let asked: number;
  let balance: () => Promise<bigint>;
  let fees: TransactionFees;
  let estimate: () => Promise<bigint>;

  beforeEach(() => {
    time = new VirtualTime(BEGINNING);
    asked = 0;
    balance = async () => parseEther('1');
    fees = { type: 2, maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: 30n * GWEI };
    estimate = async () => 350_000n;
  });

  const start = () => {
    const read = createWalletReading({
      address,
      async readBalance() {
        asked++;
        await time.sleep(ANSWER_MS);
        return balance();
      },
      readFees: async () => fees,
      estimateGas: () => estimate(),
      keepMs: 60_000,
      time,
      logger,
    });
    return () => time.settled(read());
  };
  const passUntil = (ms: number): Promise<void> => time.pass(BEGINNING + ms - time.now());

  it('is unknown until it was read, and then has the number of mints that it pays for', async () => {
    const wallet = start();
    expect(await wallet()).to.equal(undefined);
    // 350,000 units of gas at 100 gwei cost 0.035.
    expect(await time.until('it was read', wallet)).to.deep.equal({
      address,
      balanceWei: parseEther('1'),
      mintsAffordable: 28,
      gasOfMint: 350_000,
      isGasEstimated: true,
      readAt: READ_AT,
    });
  });

  it('is read again after a minute only, without a delay, and is unknown after five minutes', async () => {
    const wallet = start();
    await time.until('it was read', wallet);
    await passUntil(59_999);
    expect(await wallet()).to.include({ readAt: READ_AT });
    expect(asked).to.equal(1);
    // The node hangs.
    balance = () => new Promise(() => undefined);
    for (let round = 1; round <= 3; round++) {
      await passUntil(59_999 + round * 60_000);
      expect(await wallet()).to.include({ readAt: READ_AT });
    }
    await passUntil(360_001);
    expect(await wallet()).to.equal(undefined);
    expect(asked).to.equal(2);
  });

  it('follows the estimates of gas, and says until the first one that the gas is documented', async () => {
    estimate = () => Promise.reject(new Error('execution reverted'));
    const wallet = start();
    const documented = { gasOfMint: Number(DOCUMENTED_GAS_LIMIT), isGasEstimated: false };
    expect(await time.until('it was read', wallet)).to.include({ ...documented, mintsAffordable: 29 });
    const then = async (passes: number) => {
      await passUntil(passes * 70_000);
      await wallet();
      await time.pass(ANSWER_MS);
      return wallet();
    };
    estimate = async () => 1_400_000n;
    const raised = { gasOfMint: 1_400_000, isGasEstimated: true, mintsAffordable: 7 };
    expect(await then(1)).to.include(raised);
    estimate = () => Promise.reject(new Error('the registry is paused'));
    expect(await then(2)).to.include(raised);
  });

  it('has no number of affordable mints where gas is free, and 0 for an empty wallet', async () => {
    balance = async () => 0n;
    expect(await time.until('it was read', start())).to.include({ balanceWei: 0n, mintsAffordable: 0 });
    fees = { type: 0, gasPrice: 0n };
    expect(await time.until('it was read', start())).to.include({ mintsAffordable: undefined });
  });
});
