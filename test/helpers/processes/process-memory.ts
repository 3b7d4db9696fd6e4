import { readFileSync } from 'node:fs';

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
