import { join } from 'node:path';
import { startChild } from '../../../devnet/child-process';

/** The milliseconds from each moment to the answer, and the number of requests without one. */
export interface Probed {
  times: number[];
  failures: number;
}

/** How long `GET /` takes that is sent every 10 ms while the work lasts (prober.cjs). */
export async function whileProbing(url: string, work: () => Promise<unknown>): Promise<Probed> {
  const prober = startChild('prober', join(__dirname, 'prober.cjs'), [url], {});
  try {
    await prober.lineMatching(/^probing$/);
    await work();
  } finally {
    await prober.stop();
  }
  const [, json = ''] = await prober.lineMatching(/^probed (.*)$/);
  return JSON.parse(json) as Probed;
}
