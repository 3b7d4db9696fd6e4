import { BlockList, isIP, isIPv4, type IPVersion } from 'node:net';
import { RequestError } from './errors';
import { isWellFormed } from './json';

/** Networks by their kind, which is that of the first one that has an address. */
type Networks = Readonly<Record<string, readonly string[]>>;

/** IANA's special-purpose address registries (RFC 6890), and the metadata services of clouds. */
const IPV4 = {
  // The second one is Azure's, although the address is a public one.
  "of a cloud's metadata service": ['169.254.169.254/32', '168.63.129.16/32'],
  loopback: ['127.0.0.0/8'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'],
  'link-local': ['169.254.0.0/16'],
  'shared by a provider (CGNAT)': ['100.64.0.0/10'],
  unspecified: ['0.0.0.0/8'],
  'for documentation': ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24'],
  'for benchmarking': ['198.18.0.0/15'],
  multicast: ['224.0.0.0/4'],
  reserved: ['192.0.0.0/24', '192.88.99.0/24', '240.0.0.0/4'],
} satisfies Networks;

const IPV6 = {
  "of a cloud's metadata service": ['fd00:ec2::254/128'],
  loopback: ['::1/128'],
  unspecified: ['::/128'],
  'link-local': ['fe80::/10'],
  'unique-local': ['fc00::/7'],
  multicast: ['ff00::/8'],
  // Site-local addresses, and NAT64 within a site.
  private: ['fec0::/10', '64:ff9b:1::/48'],
  'for documentation': ['2001:db8::/32', '3fff::/20'],
  'for benchmarking': ['2001:2::/48'],
  // Teredo, ORCHID and other assignments that are no hosts.
  reserved: ['2001::/23'],
} satisfies Networks;

/** The kinds of addresses that are no host of the public internet, as a message names them. */
export type AddressKind = keyof typeof IPV4 | keyof typeof IPV6;

/** IPv6 is public in this block only, and where it stands for an IPv4 address. */
const IPV6_PUBLIC = ['2000::/3', '::ffff:0.0.0.0/96', '::ffff:0:0.0.0.0/96', '64:ff9b::/96'];

const RULES = [...rulesOf(IPV4, 'ipv4'), ...rulesOf(IPV6, 'ipv6'), ...rulesOf(IPV4, 'ipv6', standingFor)];
const PUBLIC = blockList(IPV6_PUBLIC, 'ipv6');

/**
 * The kind of an IP address; undefined for an address of the public internet. An IPv6 address that stands for
 * an IPv4 address is of its kind.
 *
 * @param address in the notation that Node.js gives, for example without brackets.
 */
export function addressKindOf(address: string): AddressKind | undefined {
  // A percent sign separates an IPv6 address from its zone.
  const [bare = ''] = address.split('%');
  const family = isIP(bare) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(bare) === 0) return 'reserved';
  const found = RULES.find((one) => one.family === family && one.addresses.check(bare, family));
  if (found !== undefined) return found.kind;
  return family === 'ipv6' && !PUBLIC.check(bare, family) ? 'reserved' : undefined;
}

/** The IPv6 networks that stand for an IPv4 network: mapped, translated (SIIT), NAT64 and 6to4. */
function standingFor(range: string): string[] {
  const [network = '', length] = range.split('/');
  const [a = 0, b = 0, c = 0, d = 0] = network.split('.').map(Number);
  const groups = [(a << 8) | b, (c << 8) | d].map((group) => group.toString(16)).join(':');
  const bits = 96 + Number(length);
  return [
    `::ffff:${network}/${bits}`,
    `::ffff:0:${network}/${bits}`,
    `64:ff9b::${network}/${bits}`,
    `2002:${groups}::/${bits - 80}`,
  ];
}

function rulesOf(networks: Networks, family: IPVersion, seenAs = (range: string) => [range]) {
  return Object.entries(networks).map(([kind, ranges]) => {
    return { kind: kind as AddressKind, family, addresses: blockList(ranges.flatMap(seenAs), family) };
  });
}

function blockList(ranges: readonly string[], family: IPVersion): BlockList {
  const addresses = new BlockList();
  for (const [network = '', length] of ranges.map((range) => range.split('/')))
    addresses.addSubnet(network, Number(length), family);
  return addresses;
}

/** Whether a URL's host name can only be this machine. */
export function isThisMachine(hostname: string): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}

/** Rules for the sinks of subscriptions that the API made. They do not apply to WEBHOOK_URL. */
export interface SinkRules {
  /** ALLOW_PRIVATE_SINKS. */
  readonly allowPrivate: boolean;
  /** Whether the service's network is local: then sinks may be on this machine, also over http. */
  readonly allowLoopback: boolean;
  /** Whether the sink is of a key with a scope, for which ALLOW_PRIVATE_SINKS changes nothing. */
  readonly isScoped?: boolean;
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
    return `the sink's address ${address} is ${kind}: ${remedyOf(rules)}`;
  if (protocol !== 'https:' && !isAllowedLoopback)
    return `the sink's address ${address} is not on this machine: use https`;
  return undefined;
}

function nameProblem(name: string, rules: SinkRules): string | undefined {
  if (rules.allowPrivate || rules.allowLoopback || !isThisMachine(name)) return undefined;
  return `${name} is this machine: ${remedyOf(rules)}`;
}

function remedyOf({ isScoped }: SinkRules): string {
  return isScoped ? 'use a public one' : 'set ALLOW_PRIVATE_SINKS to allow it';
}

function notAllowed(problem: string, remedy: string): RequestError {
  return new RequestError('SINK_NOT_ALLOWED', `/sink ${problem}. ${remedy}`, { remedy });
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
