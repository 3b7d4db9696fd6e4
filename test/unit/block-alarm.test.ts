import { expect } from 'chai';
import type { RpcClient } from '../../service/chain/rpc-client';
import { createBlockAlarm } from '../../service/watcher/follow-chain';

const PAUSES = { shortest: 80, longest: 600 };
const NEVER = new AbortController().signal;

describe('the block alarm', () => {
  const alarmOf = (client: object, pauses = PAUSES) => createBlockAlarm(client as RpcClient, pauses);

  async function pauseOf(alarm: ReturnType<typeof createBlockAlarm>): Promise<number> {
    const since = performance.now();
    await alarm.wait(NEVER);
    return performance.now() - since;
  }

  it('lengthens its pause while nothing happens, and shortens it again after an event', async () => {
    const alarm = alarmOf({});
    const pauses: number[] = [];
    for (let pause = 0; pause < 6; pause++) pauses.push(await pauseOf(alarm));
    expect(pauses[0]).to.be.within(75, 400);
    expect(pauses[5]).to.be.at.least(590);
    alarm.quicken();
    expect(await pauseOf(alarm)).to.be.within(75, 400);
  });

  it('ends the wait when the node reports a block, even one reported before the wait began', async () => {
    let tell = (): void => undefined;
    const client = {
      onNewHead(listener: () => void) {
        tell = listener;
        return () => undefined;
      },
    };
    const alarm = alarmOf(client, { shortest: 5_000, longest: 5_000 });
    tell();
    expect(await pauseOf(alarm)).to.be.lessThan(1_000);
    setTimeout(() => tell(), 50);
    expect(await pauseOf(alarm)).to.be.within(40, 2_000);
  });

  it('ends the wait when the signal aborts', async () => {
    const abort = new AbortController();
    const alarm = alarmOf({}, { shortest: 60_000, longest: 60_000 });
    setTimeout(() => abort.abort(), 20);
    await alarm.wait(abort.signal);
  });
});
