import * as z from 'zod';
import { checksummed } from '../base/checksums';
import { members, must } from '../base/json';
import { registryName, type RegistryName } from '../base/registry-name';
import type { Filter } from '../events/select-events';
import { tokenIdHexOf, tokenIdOrUndefined } from '../registry/token-id-forms';

/**
 * The scope of a key: it sees the events and tokens that are in each of its lists. A party sees the events
 * that name its address, and all of a token that one of the token's kept events names the address for, also
 * after it has left.
 */
export interface Scope {
  /** `urn:service:<chain id>:<address>`. */
  readonly registries?: readonly string[] | undefined;
  /** `urn:service:<chain id>:<address>/<token id>`. */
  readonly tokens?: readonly string[] | undefined;
  /** `eip155:<chain id>:<address>`, an account id of CAIP-10. */
  readonly parties?: readonly string[] | undefined;
}

/** Entries of each list. */
const MOST_ENTRIES = 100;

const FORM = /^(urn:service|eip155):([1-9]\d{0,14}):(0x[0-9a-fA-F]{40})(?:\/([0-9a-zA-Z]{1,78}))?$/;

/** Brings entries of a form to one text. The function returns undefined for other forms. */
function normalised(prefix: 'urn:service' | 'eip155', hasToken = false) {
  return (text: string): string | undefined => {
    const [, given, chain, address = '', token] = FORM.exec(text) ?? [];
    if (given !== prefix || checksummed(address) === undefined) return undefined;
    const name = `${prefix}:${registryName(Number(chain), address)}`;
    const tokenId = tokenIdOrUndefined(token ?? '');
    if (hasToken) return tokenId === undefined ? undefined : `${name}/${tokenIdHexOf(tokenId)}`;
    return token === undefined ? name : undefined;
  };
}

/** A list whose entries become texts of one form: addresses in lower case, token ids with 64 digits. */
function list(description: string, form: string, written: (text: string) => string | undefined) {
  const entry = z.string().transform((text, context) => {
    const right = written(text);
    if (right === undefined) context.addIssue({ code: 'custom', message: `is not ${form}. Correct it.` });
    return right ?? '';
  });
  return z
    .array(entry, { error: must('an array', 'Put it in [ ].') })
    .min(1, 'is empty. Give at least one entry, or leave it out.')
    .max(MOST_ENTRIES, `has more than ${MOST_ENTRIES} entries. Make several keys.`)
    .transform((entries) => [...new Set(entries)].sort())
    .optional()
    .describe(description);
}

/** The account of an address on a chain, as a scope has it. */
export function partyOf(account: RegistryName): string {
  return `eip155:${account}`;
}

/** The member `scope` of a key. */
export const SCOPE = members('scope', {
  registries: list(
    'Registries: `urn:service:<chain id>:<address>`.',
    'the source of a registry',
    normalised('urn:service'),
  ),
  tokens: list(
    'Tokens: `urn:service:<chain id>:<address>/<token id>`.',
    'a token of a registry',
    normalised('urn:service', true),
  ),
  parties: list(
    'Accounts: `eip155:<chain id>:<address>`. An event is seen if its payload has one of these addresses.',
    'an account on a chain',
    normalised('eip155'),
  ),
}).refine(
  (scope) => Object.values(scope).some((entries) => entries !== undefined),
  'names nothing. Give registries, tokens or parties.',
);

/** The filters that are true for the events of a scope. */
export function filtersOf({ registries, tokens, parties }: Scope): Filter[] {
  const each = (entries: readonly string[] | undefined, filterOf: (entry: string) => Filter): Filter[] =>
    entries ? [{ any: entries.map(filterOf) }] : [];
  return [
    ...each(registries, (source) => ({ exact: { source } })),
    ...each(tokens, (token) => {
      const [source = '', tokenId = ''] = token.split('/');
      return { all: [{ exact: { source } }, { tokens: [tokenId] }] };
    }),
    ...each(parties, (party) => {
      const [, chainId, address = ''] = party.split(':');
      return { all: [{ prefix: { source: `urn:service:${chainId}:` } }, { parties: [address] }] };
    }),
  ];
}
