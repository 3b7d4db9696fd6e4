import { EventEmitter } from 'node:events';
import type { ErrorCode } from './errors';
import type { RegistryName } from './registry-name';

/** Each happening, with what it tells. */
export interface Happenings {
  /** The watcher looked at the chain of a registry, and stored what it saw. */
  looked: [registry: RegistryName];
  /** The watcher stored so many events. */
  recorded: [registry: RegistryName, events: number];
  /**
   * An attempt to deliver ended, after so many milliseconds. `failed`: it will be retried. `dead`: it was
   * given up. `ageMs`: milliseconds since the time of the delivered event, which is that of its block.
   */
  attempted: [
    registry: RegistryName | 'operations',
    outcome: 'delivered' | 'failed' | 'dead',
    ms: number,
    ageMs?: number,
  ];
  /** A request was answered. `operation`: its method and path as described, or `none`. */
  answered: [operation: string, status: number, ms: number];
  /** A stage of POST /create ended, well or not, after so many milliseconds. */
  'stage ended': [stage: CreateStage, ms: number];
  /** A token was minted in this block. `tokenId`: 64 lower-case hexadecimal digits. */
  mined: [tokenId: string, block: number];
  /** A mint failed with this code. */
  'mint failed': [code: ErrorCode];
  /** A reorganisation removed the final blocks of this many mints. */
  'mints reorganised': [mints: number];
  /** Journal and watcher contradict each other about a token. */
  contradicted: [];
}

/** A stage of POST /create: `check` asks the node about its chain, `mint` lasts until the token is mined. */
export type CreateStage = 'sign' | 'check' | 'simulate' | 'store' | 'mint';

/**
 * Tells what the program just did to those who count it, and to tests that wait for it. What a part needs of
 * another one to go on is a call.
 */
export type Lifecycle = EventEmitter<Happenings>;

export const createLifecycle = (): Lifecycle => new EventEmitter<Happenings>();
