import { expect } from 'chai';
import type { Chain } from '../../service/chain/chain';
import { BlockAlarm } from '../../service/watcher/follow-chain';
import { VirtualTime } from '../helpers/virtual-time';
import { seededRandom } from '../helpers/seeded-random';

const LONG = { shortest: 60_000, longest: 60_000 };

describe('the block alarm', () => {
  let time: VirtualTime;

  const during = (play: () => Promise<void>): Promise<void> => {
    time = new VirtualTime();
    return time.during(seededRandom(1), play);
  };
  const alarmOf = (client: object, pauses: typeof LONG) =>
    new BlockAlarm(time, { subscribe: () => () => undefined, ...client } as unknown as Chain, pauses);

  async function pauseOf(alarm: BlockAlarm, signal = new AbortController().signal): Promise<number> {
    const since = time.now();
    await alarm.wait(signal);
    return time.now() - since;
  }

  it('lengthens its pause while nothing happens, and shortens it again after an event', () =>
    during(async () => {
      const alarm = alarmOf({}, { shortest: 80, longest: 600 });
      const pauses: number[] = [];
      for (let pause = 0; pause < 8; pause++) pauses.push(await pauseOf(alarm));
      expect(pauses).to.deep.equal([...pauses].sort((one, other) => one - other));
      expect([pauses.at(0), pauses.at(-1)]).to.deep.equal([80, 600]);
      alarm.quicken();
      expect(await pauseOf(alarm)).to.equal(80);
    }));

  it('ends the wait when the node reports a block, even one reported before the wait began', () =>
    during(async () => {
      let tell = (): void => undefined;
      const alarm = alarmOf(
        { subscribe: (listener: () => void) => ((tell = listener), () => undefined) },
        LONG,
      );
      tell();
      expect(await pauseOf(alarm)).to.equal(0);
      void time.sleep(50).then(() => tell());
      expect(await pauseOf(alarm)).to.equal(50);
    }));

  it('ends the wait when the signal aborts', () =>
    during(async () => {
      const abort = new AbortController();
      void time.sleep(20).then(() => abort.abort());
      expect(await pauseOf(alarmOf({}, LONG), abort.signal)).to.equal(20);
    }));
});
