import type { Lane } from './lane-state';
import type { Mint } from './mint';

/** Leaves a mint alone for a while; those after it go on. */
export function park(lane: Lane, mint: Mint, ms: number): void {
  lane.parked.add({ mint, until: performance.now() + ms });
  lane.sleeps.preparing.wake();
}
