import { isIPv4 } from 'node:net';

/** Whether a URL's host name can only be this machine. */
export function isThisMachine(hostname: string): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}
