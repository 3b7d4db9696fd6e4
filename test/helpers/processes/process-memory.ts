import { readFileSync } from 'node:fs';

/**
 * The most memory that a process of this machine ever had resident, in MB, as Linux counts it; undefined on
 * other systems.
 */
export function peakMegabytes(pid: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
}
