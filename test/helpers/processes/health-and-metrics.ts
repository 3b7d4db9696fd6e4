import { createClient, type components } from '../../../client/create-client';

type Described = components['schemas']['Health'];

/** One feed of `GET /health`, after its registry was found. */
export type FeedHealth = Described['feeds'][number] & { nextBlock: number };

/** The progress of a feed's catch-up. */
export type CatchUpHealth = NonNullable<FeedHealth['catchUp']>;

/** The state of issuing in `GET /health`. */
export type IssuingHealth = NonNullable<Described['issuing']>;

/** The status and body of `GET /health`. */
export type Health = Omit<Described, 'feeds'> & { httpStatus: number; feeds: FeedHealth[] };

/** Asks `GET /health`. */
export async function healthOf(serviceUrl: string): Promise<Health> {
  const { data, error, response } = await createClient({ url: serviceUrl }).GET('/health');
  return { httpStatus: response.status, ...((data ?? error) as Omit<Health, 'httpStatus'>) };
}

/** A value of `GET /metrics`, summed over its labels. Undefined if there is no such metric. */
export async function metricOf(serviceUrl: string, name: string): Promise<number | undefined> {
  const { data = '' } = await createClient({ url: serviceUrl }).GET('/metrics', { parseAs: 'text' });
  const lines = data.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  if (lines.length === 0) return undefined;
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}
