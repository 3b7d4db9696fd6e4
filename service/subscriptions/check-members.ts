import { checksummed } from '../base/checksums';
import { found, isWellFormed } from '../base/json';
import { registryName } from '../base/registry-name';
import { sourceOf } from '../events/cloud-event';
import { LONGEST_SINK, MOST_TYPES } from './bounds';
import { RETRACTED_TYPE, SUBSCRIBABLE_TYPES } from '../events/event-types';
import { subscriptionError } from './subscription-error';

/** Checks a source, and writes the address of its registry in lower case, as in events. */
export function checkedSource(given: string): string {
  const remedy =
    'Write urn:service:<chain id>:<address of the registry>, or leave it out for all registries.';
  const [, chainId = '', address = ''] = /^urn:service:([1-9]\d*):(0x[0-9a-f]{40})$/i.exec(given) ?? [];
  if (!given.startsWith('urn:service:') || address === '' || !Number.isSafeInteger(Number(chainId)))
    throw subscriptionError(['source'], `is not the source of a registry. ${remedy}`);
  if (checksummed(address) === undefined) {
    const problem = 'has an address with a wrong checksum. Correct it, or write it in lower case.';
    throw subscriptionError(['source'], problem);
  }
  return sourceOf(registryName(Number(chainId), address));
}

/** Checks the types of a subscription. */
export function checkedTypes(given: readonly unknown[], retractions: boolean): string[] {
  if (given.length === 0)
    throw subscriptionError(['types'], 'is empty. Give at least one type, or leave it out for all types.');
  if (given.length > MOST_TYPES)
    throw subscriptionError(['types'], `has more than ${MOST_TYPES} entries. Leave it out for all types.`);
  return given.map((type, index) => {
    const path = ['types', index];
    if (typeof type !== 'string')
      throw subscriptionError(path, `must be a string, ${found(type)}. Write it in double quotes.`);
    if (!SUBSCRIBABLE_TYPES.includes(type))
      throw subscriptionError(path, `is not a type of event. Use one of ${SUBSCRIBABLE_TYPES.join(', ')}.`);
    if (given.indexOf(type) < index)
      throw subscriptionError(path, `is the same as types/${given.indexOf(type)}. Leave one out.`);
    if (type === RETRACTED_TYPE && !retractions)
      throw subscriptionError(
        path,
        'is sent only if config/retractions is true. Set it, or leave the type out.',
      );
    return type;
  });
}

/** Checks the form of a sink. The rules in sink-rules.ts decide which schemes and addresses are allowed. */
export function checkSink(sink: string): void {
  const problem = sinkProblem(sink);
  if (problem !== undefined) throw subscriptionError(['sink'], problem);
}

/** The sink is not shown: its path may hold a key. */
function sinkProblem(sink: string): string | undefined {
  if (sink.length > LONGEST_SINK) return `has more than ${LONGEST_SINK} characters. Shorten it.`;
  if (!/^https?:\/\/[^\s\\]+$/i.test(sink) || !URL.canParse(sink))
    return 'is not a URL of http or https. Give the URL that events are sent to.';
  const { username, password } = new URL(sink);
  if (username + password !== '')
    return 'has a user or a password. Send them in a header: protocolsettings/headers/authorization.';
  if (!isWellFormed(sink)) return 'contains half of a surrogate pair. Leave it out.';
  if (sink.includes('#')) return 'has a fragment, which is never sent. Leave out # and what follows it.';
  return undefined;
}
