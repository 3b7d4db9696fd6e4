import { isIP } from 'node:net';
import { addressKindOf, isThisMachine } from './address-kind';
import { RequestError } from './errors';

/** Rules for the sinks of subscriptions that the API made. They do not apply to WEBHOOK_URL. */
export interface SinkRules {
  /** ALLOW_PRIVATE_SINKS. */
  readonly allowPrivate: boolean;
  /** Whether the service's network is local: then sinks may be on this machine, also over http. */
  readonly allowLoopback: boolean;
}

/**
 * Checks a sink as far as its URL tells. The address behind a name is checked when the service connects,
 * because it may change.
 *
 * @throws RequestError SINK_NOT_ALLOWED, whose message begins with the JSON pointer /sink.
 */
export function checkSink(sink: string, rules: SinkRules): void {
  const url = URL.canParse(sink) ? new URL(sink) : undefined;
  const httpsOnly = rules.allowLoopback ? 'https, or http to this machine' : 'https';
  if (url === undefined) throw notAllowed('is not a URL', `Use ${httpsOnly}: https://subscriber.example/in`);
  const { protocol, hostname, username, password } = url;
  if (username + password !== '') {
    const remedy =
      'Set the header Authorization in protocolsettings.headers instead: its value is not shown.';
    throw notAllowed('has a user or a password', remedy);
  }
  const isAllowedHttp = protocol === 'http:' && rules.allowLoopback && isThisMachine(hostname);
  if (protocol !== 'https:' && !isAllowedHttp) throw notAllowed('is not https', `Use ${httpsOnly}.`);
  // Only an IPv6 address has brackets.
  const host = hostname.replace(/^\[|\]$/g, '');
  const problem = isIP(host) === 0 ? nameProblem(host, rules) : addressProblem(host, protocol, rules);
  if (problem !== undefined) throw notAllowed('is not allowed', sentence(problem));
}

/** The reason why the service may not connect to this IP address; undefined if it may. */
export function addressProblem(address: string, protocol: string, rules: SinkRules): string | undefined {
  const kind = addressKindOf(address);
  const isAllowedLoopback = rules.allowLoopback && kind === 'loopback';
  if (kind !== undefined && !rules.allowPrivate && !isAllowedLoopback)
    return `the sink's address ${address} is ${kind}: set ALLOW_PRIVATE_SINKS to allow it`;
  if (protocol !== 'https:' && !isAllowedLoopback)
    return `the sink's address ${address} is not on this machine: use https`;
  return undefined;
}

function nameProblem(name: string, { allowPrivate, allowLoopback }: SinkRules): string | undefined {
  if (allowPrivate || allowLoopback || !isThisMachine(name)) return undefined;
  return `${name} is this machine: set ALLOW_PRIVATE_SINKS to allow it`;
}

function notAllowed(problem: string, remedy: string): RequestError {
  return new RequestError('SINK_NOT_ALLOWED', `/sink ${problem}. ${remedy}`, { remedy });
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
