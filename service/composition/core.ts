import type { LookupFunction } from 'node:net';
import type { Lifecycle } from '../base/lifecycle';
import type { Logger } from '../base/logger';
import type { Time } from '../base/time';
import type { Config } from '../config/config';
import type { Database } from '../database/database';

/** What the composition root passes to every part of the service. */
export interface Core {
  readonly config: Config;
  readonly database: Database;
  readonly time: Time;
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  /** Finds the addresses of sinks. */
  readonly lookup: LookupFunction;
}
