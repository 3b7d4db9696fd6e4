import { isIP } from 'node:net';
import { addressKindOf, isThisMachine } from './address-kind';
import { RequestError } from './errors';
import { isWellFormed } from './json';

/** Rules for the sinks of subscriptions that the API made. They do not apply to WEBHOOK_URL. */
export interface SinkRules {
  /** ALLOW_PRIVATE_SINKS. */
  readonly allowPrivate: boolean;
  /** Whether the service's network is local: then sinks may be on this machine, also over http. */
  readonly allowLoopback: boolean;
}

/** The problem of a sink's form, with the remedy. The sink is not shown: its path may hold a key. */
export function sinkProblem(sink: string): string | undefined {
  if (!/^https?:\/\/[^\s\\]+$/i.test(sink) || !URL.canParse(sink))
    return 'is not a URL of http or https. Give the URL that events are sent to.';
  const { username, password } = new URL(sink);
  if (username + password !== '')
    return 'has a user or a password. Send them in a header: protocolsettings/headers/authorization.';
  if (!isWellFormed(sink)) return 'contains half of a surrogate pair. Leave it out.';
  if (sink.includes('#')) return 'has a fragment, which is never sent. Leave out # and what follows it.';
  return undefined;
}

/**
 * Checks a sink as far as its URL tells. The address behind a name is checked when the service connects,
 * because it may change.
 *
 * @param sink without a problem of its form.
 * @throws RequestError SINK_NOT_ALLOWED, whose message begins with the JSON pointer /sink.
 */
export function checkSink(sink: string, rules: SinkRules): void {
  const httpsOnly = rules.allowLoopback ? 'https, or http to this machine' : 'https';
  const { protocol, hostname } = new URL(sink);
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
