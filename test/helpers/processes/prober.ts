import { join } from 'node:path';
import { startChild } from '../../../devnet/child-process';

/** The milliseconds from each moment to the answer, and the number of requests without one. */
export interface Probed {
  times: number[];
  failures: number;
}

/**
 * How long `GET /` takes that is sent every 10 ms while the work lasts (prober.cjs). Undefined if one is not
 * answered within 12 seconds after the work.
 */
export async function whileProbing(url: string, work: () => Promise<unknown>): Promise<Probed | undefined> {
  const prober = startChild('prober', join(__dirname, 'prober.cjs'), [url], {});
  try {
    await prober.lineMatching(/^probing$/);
    await work();
  } finally {
    await prober.stop();
  }
  const probed = await prober.lineMatching(/^probed (.*)$/).catch(() => undefined);
  return probed && (JSON.parse(probed[1] ?? '') as Probed);
}
