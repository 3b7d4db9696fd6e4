import * as z from 'zod';
import { checksummed } from '../base/checksums';
import { cut, orUndefined, RequestError } from '../base/errors';
import { isThisMachine } from '../base/sink-rules';

/** The message that a wallet signs to log in. https://eips.ethereum.org/EIPS/eip-4361 */
export interface LoginMessage {
  /** With its checksum. */
  address: string;
  chainId: number;
  nonce: string;
  /** The end of the log-in, in epoch milliseconds. */
  endsAt: number;
}

// Rules of RFC 3986.
const PCHAR = String.raw`(?:[\w.~!$&'()*+,;=:@-]|%[\dA-Fa-f]{2})`;
const SCHEME = String.raw`[A-Za-z][A-Za-z\d+.-]*`;
const URI = String.raw`${SCHEME}:(?:${PCHAR}|[/?#[\]])*`;

/** With a day that the calendar has. */
const TIME = z.regexes.datetime({ offset: true }).source.slice(1, -1);

const line = (name: string, value: string): string => `\\n${name}: ${value}(?=\\n|$)`;
const optional = (name: string, value: string): string => `(?:${line(name, value)}|(?!\\n${name}: ))`;

const SIGNS_IN = ' wants you to sign in with your Ethereum account:';

/** The parts in the order of the ABNF. The statement, the request id and the resources have no effect. */
const PARTS = Object.entries({
  domain: `(?<scheme>${SCHEME}://)?(?<domain>(?:${PCHAR}|[[\\]])+)${SIGNS_IN}`,
  address: String.raw`\n(?<address>0x[\dA-Fa-f]{40})\n`,
  statement: String.raw`\n(?:[\w.~!$&'()*+,;=:@/?#[\] -]+\n)?`,
  URI: line('URI', `(?<uri>${URI})`),
  Version: line('Version', '1'),
  'Chain ID': line('Chain ID', String.raw`(?<chainId>\d{1,15})`),
  Nonce: line('Nonce', String.raw`(?<nonce>[A-Za-z\d]{8,})`),
  'Issued At': line('Issued At', `(?<issued>${TIME})`),
  'Expiration Time': optional('Expiration Time', `(?<expires>${TIME})`),
  'Not Before': optional('Not Before', `(?<starts>${TIME})`),
  'Request ID': `(?:\\nRequest ID: ${PCHAR}*)?`,
  Resources: `(?:\\nResources:(?:\\n- ${URI})*)?`,
  'last line': '$',
}).map(([name, pattern]) => ({ name, pattern: new RegExp(pattern, 'y') }));

/** Clocks of wallets differ by so much. */
const SKEW_MS = 60_000;
const LONGEST_MS = 24 * 3_600_000;

/**
 * Reads a message, which must be for this service and this time.
 *
 * @param domain that of the settings: callers choose Host.
 * @throws RequestError LOGIN_INVALID, LOGIN_REFUSED, naming the line.
 */
export function readLoginMessage(text: string, domain: string, now: number): LoginMessage {
  const found: Partial<Record<string, string>> = {};
  let at = 0;
  for (const { name, pattern } of PARTS) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null) throw invalid(name, 'is missing, misplaced or malformed. Write it as EIP-4361 says.');
    Object.assign(found, match.groups);
    at = pattern.lastIndex;
  }
  const { scheme = '', address = '', uri = '', nonce = '', issued = '' } = found;
  const right = checksummed(address.toLowerCase());
  if (right !== address) throw invalid('address', `has not its checksum (EIP-55). Write ${right}.`);
  if (found.domain?.toLowerCase() !== domain)
    throw refused('domain', `is ${cut(String(found.domain))}, and this service is ${domain}. Write that.`);
  const url = orUndefined(() => new URL(uri));
  const protocol = url?.protocol === 'http:' && isThisMachine(url.hostname) ? 'http:' : 'https:';
  if (url?.origin !== new URL(`${protocol}//${domain}`).origin || !uri.startsWith(scheme))
    throw refused('URI', `is not one of this service. Write https://${domain}.`);
  if (Date.parse(issued) > now + SKEW_MS) throw refused('Issued At', 'lies ahead. Set the clock.');
  const startsAt = Date.parse(found.starts ?? issued);
  if (startsAt > now + SKEW_MS) throw refused('Not Before', 'lies ahead. Wait until then.');
  const expiresAt = found.expires === undefined ? Infinity : Date.parse(found.expires);
  const endsAt = Math.min(expiresAt + SKEW_MS, now + LONGEST_MS);
  if (endsAt <= now) throw refused('Expiration Time', 'is over. Sign a new message.');
  return { address, chainId: Number(found.chainId), nonce, endsAt };
}

function invalid(line: string, problem: string): RequestError {
  return new RequestError('LOGIN_INVALID', `/message: ${line} ${problem}`);
}

/** The refusal of a message for one of its lines. */
export function refused(line: string, problem: string): RequestError {
  return new RequestError('LOGIN_REFUSED', `/message: ${line} ${problem}`);
}
