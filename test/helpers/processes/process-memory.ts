import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../eventually';

const COLLECT_ON_SIGNAL = join(__dirname, 'collect-on-signal.cjs');

/**
 * The peak resident memory of a process of this machine in MB, as Linux counts it. Undefined on other
 * systems.
 */
export function peakMegabytes(pid: number): number | undefined {
  return megabytesOf(pid, 'VmHWM');
}

/** The present resident memory, in the same way. */
export function residentMegabytes(pid: number): number | undefined {
  return megabytesOf(pid, 'VmRSS');
}

function megabytesOf(pid: number, name: string): number | undefined {
  if (process.platform !== 'linux') return undefined;
  const [, kilobytes] =
    new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
}

/** The processes that the main thread of a process has started, in the same way. */
export function childrenOf(pid: number): number[] {
  if (process.platform !== 'linux') return [];
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.split(' ').filter(Boolean).map(Number);
}

/** Forgets the peak so far. */
export function forgetPeak(pid: number): void {
  if (process.platform === 'linux') writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/**
 * Settings of a Node.js process whose memory `collectedMegabytes` tells.
 *
 * @param heapMegabytes of the process and of each thread, whatever heap its thread pool gives it.
 */
export function measuredProcess(heapMegabytes?: number): { NODE_OPTIONS: string } {
  const heap = heapMegabytes === undefined ? '' : `--max-old-space-size=${heapMegabytes} `;
  return { NODE_OPTIONS: `${heap}--require=${COLLECT_ON_SIGNAL}` };
}

/** The memory that such a process needs: what is left after its garbage is collected. */
export async function collectedMegabytes(of: { pid: number; output(): string }): Promise<number> {
  const told = (): RegExpMatchArray[] => [...of.output().matchAll(/^\{"collected":(\d+)\}$/gm)];
  const before = told().length;
  process.kill(of.pid, 'SIGUSR2');
  const line = await eventually('the memory is told', () => told()[before]);
  return Number(line[1]) / 1_000_000;
}
