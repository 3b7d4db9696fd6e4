import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { addressProblem, type SinkRules } from '../base/sink-rules';

/**
 * How to connect within a time, in milliseconds. If nothing answers at the first of several addresses, half
 * of the time is left for the others.
 */
export function connectingWithin(timeout: number) {
  return { timeout, autoSelectFamilyAttemptTimeout: Math.ceil(timeout / 2) };
}

/** Keeps deliveries away from addresses that the rules forbid. */
export interface SinkGuard {
  readonly rules: SinkRules;
  /** `lookup` of node:dns. */
  readonly lookup: LookupFunction;
}

/** The rules forbid the address of a host. The message is for whoever chose the sink. */
export class ForbiddenAddressError extends Error {}

/**
 * Connects only to addresses that the rules allow. Each connection looks its name up once and uses an address
 * that was checked. A name server that answers a second look-up with another address (DNS rebinding)
 * therefore gains nothing.
 */
export function guardedConnector(
  { rules, lookup }: SinkGuard,
  protocol: string,
  timeout: number,
): buildConnector.connector {
  const problemOf = (address: string) => addressProblem(address, protocol, rules);
  const checkedLookup: LookupFunction = (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, []);
      const addresses = typeof found === 'string' ? [{ address: found, family: isIP(found) }] : found;
      const allowed = addresses.filter(({ address }) => problemOf(address) === undefined);
      const [first] = allowed;
      if (first === undefined) {
        const [problem] = addresses.map(({ address }) => problemOf(address));
        const reason = problem ? new ForbiddenAddressError(problem) : new Error(`${name} has no address`);
        return callback(reason, []);
      }
      if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
  const connect = buildConnector({ ...connectingWithin(timeout), lookup: checkedLookup });
  return (options, callback) => {
    // Node.js does not look up a host that is an address.
    const problem = isIP(options.hostname) === 0 ? undefined : problemOf(options.hostname);
    if (problem === undefined) connect(options, callback);
    else queueMicrotask(() => callback(new ForbiddenAddressError(problem), null));
  };
}
