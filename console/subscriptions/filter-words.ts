import { shortType } from '../../service/events/cloud-event';
import type { Subscription } from '../requests/api';
import { withShortHex } from '../text/words';

type Rules = Pick<Subscription, 'source' | 'types' | 'filters'>;

/** The events that a subscription gets, in words: one condition in each line. */
export function conditionsOf({ source, types, filters = [] }: Rules): string[] {
  const registry = source?.replace(/^urn:service:/, '');
  const conditions = [
    ...(registry === undefined ? [] : [`of the registry ${registry}`]),
    ...(types === undefined ? [] : [`of the types ${types.map(shortType).join(', ')}`]),
    ...filters.map(wordsOf),
  ];
  if (conditions.length === 0) return ['all events of all registries'];
  return conditions.map(withShortHex);
}

/** A filter has one member, its dialect. The types of the API leave filters within others open. */
function wordsOf(filter: object): string {
  const [dialect = '', value] = Object.entries(filter)[0] as [string, unknown];
  if (dialect === 'tokens') return `of ${namesOf(value, 'the token', 'tokens')}`;
  if (dialect === 'parties') return `that name ${namesOf(value, '', 'addresses')}`.trim();
  if (dialect === 'not') return `not (${wordsOf(value as object)})`;
  if (dialect === 'all' || dialect === 'any') {
    const parts = (value as object[]).map(wordsOf);
    if (parts.length === 1) return parts.join('');
    return parts.map((part) => `(${part})`).join(dialect === 'all' ? ' and ' : ' or ');
  }
  const verb = VERBS[dialect] ?? dialect;
  return Object.entries(value as Record<string, string>)
    .map(([attribute, text]) => `with a ${attribute} that ${verb} ${shortType(text)}`)
    .join(' and ');
}

const VERBS: Readonly<Record<string, string>> = {
  exact: 'is',
  prefix: 'begins with',
  suffix: 'ends with',
};

function namesOf(value: unknown, one: string, many: string): string {
  const names = value as string[];
  return names.length === 1 ? `${one} ${names[0] ?? ''}`.trim() : `one of ${names.length} ${many}`;
}
