import { BlockList, isIP } from 'node:net';
import type { Config } from './config';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** A line to log at start. */
export interface OpenIssuingWarning {
  level: 'warn' | 'error';
  message: string;
}

/**
 * Warns if documents can be issued without an API key, by everybody who reaches the API and by every web
 * page, because the API accepts every origin. Undefined if a key is required.
 *
 * @param url the URL at which the service listens.
 */
export function openIssuingWarning(
  { apiKey, host, tunnelAuthtoken }: Pick<Config, 'apiKey' | 'host' | 'tunnelAuthtoken'>,
  url: string,
): OpenIssuingWarning | undefined {
  if (apiKey !== undefined) return undefined;
  if (tunnelAuthtoken !== undefined) {
    const message =
      'API_KEY is not set, and TUNNEL_AUTHTOKEN is: anybody who reaches DOMAIN can issue documents at the ' +
      "wallet's expense. Set API_KEY.";
    return { level: 'error', message };
  }
  if (!isLoopback(host)) {
    const message =
      `API_KEY is not set, and HOST is ${host}: anybody who reaches this machine can issue documents at the ` +
      "wallet's expense, and so can any web page in a browser that does. Set API_KEY, or HOST=127.0.0.1.";
    return { level: 'error', message };
  }
  const message =
    `API_KEY is not set: anybody who reaches ${url} can issue documents at the wallet's expense, and so can ` +
    'any web page in a browser on this machine. Set API_KEY.';
  return { level: 'warn', message };
}

function isLoopback(host: string): boolean {
  // A percent sign separates an IPv6 address from its zone.
  const [address = ''] = host.split('%');
  const version = isIP(address);
  if (version === 0) return host.toLowerCase() === 'localhost';
  return LOOPBACK.check(address, version === 6 ? 'ipv6' : 'ipv4');
}
