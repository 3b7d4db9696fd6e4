/** The progress of a feed's catch-up. */
export interface CatchUpHealth {
  blocksRead: number;
  blocks: number;
  blocksPerSecond: number;
  secondsLeft?: number;
}

/** One feed of `GET /health`. */
export interface FeedHealth {
  network: string;
  registry: string;
  state: string;
  nextBlock: number;
  catchUp?: CatchUpHealth;
  code?: string;
  reason?: string;
}

/** The state of issuing in `GET /health`. */
export interface IssuingHealth {
  /** Absent while the database is unreachable. */
  mints?: {
    waiting: number;
    inFlight: number;
    mined: number;
    oldestSeconds?: number;
    lastFailure?: { code: string; at: string };
  };
  signing: { waiting: number; busy: number; threads: number };
  /** Absent until it is read. */
  wallet?: { address: string; balanceWei: string; mintsAffordable?: number; readAt: string };
}

/** The status and body of `GET /health`. */
export interface Health {
  httpStatus: number;
  status: string;
  feeds: FeedHealth[];
  /** Absent while settings are missing. */
  issuing?: IssuingHealth;
}

/** Asks `GET /health`. */
export async function healthOf(serviceUrl: string): Promise<Health> {
  const response = await fetch(`${serviceUrl}/health`);
  const body = (await response.json()) as Omit<Health, 'httpStatus'>;
  return { httpStatus: response.status, ...body };
}

/** A value of `GET /metrics`, summed over its labels. Undefined if there is no such metric. */
export async function metricOf(serviceUrl: string, name: string): Promise<number | undefined> {
  const text = await (await fetch(`${serviceUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  if (lines.length === 0) return undefined;
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}
