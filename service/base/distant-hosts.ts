import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';

/**
 * Longest time to connect to one of several addresses of a host. Connecting may take five seconds or more in
 * all, so that a second address gets as long when nothing answers at the first.
 */
const ADDRESS_WITHIN_MS = 2_500;

/**
 * Lets this process connect to distant hosts, whoever opens the connection. Node.js tries the addresses of a
 * host one after the other. By default it gives each but the last up after 250 ms: if such a host has an
 * address of a family that this machine has no route to, none of its addresses can be reached.
 */
export function reachDistantHosts(): void {
  setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_WITHIN_MS);
}
