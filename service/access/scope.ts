import * as z from 'zod';
import { checksummed } from '../base/checksums';
import { members, must } from '../base/json';
import { registryName, type RegistryName } from '../base/registry-name';
import { sourceOf } from '../events/cloud-event';
import type { Filter } from '../events/select-events';
import { tokenIdHexOf, tokenIdOrUndefined } from '../registry/token-id-forms';

/**
 * What a key sees: the events and tokens that are in each of its lists. A party sees the events that name its
 * address, and all of a token that one of its kept events names the address for, also after it has left.
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

const PARTS = /^(urn:service|eip155):([1-9]\d{0,14}):(0x[0-9a-fA-F]{40})(?:\/([0-9a-zA-Z]{1,78}))?$/;

/** The parts of an entry; undefined for a text of another form. */
function partsOf(text: string) {
  const [, prefix, chain, address = '', token] = PARTS.exec(text) ?? [];
  if (checksummed(address) === undefined) return undefined;
  return { prefix, registry: registryName(Number(chain), address), token };
}

/** A list whose entries become texts of one form: addresses in lower case, token ids in decimals. */
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

function registryOf(text: string): string | undefined {
  const { prefix, registry, token } = partsOf(text) ?? {};
  return prefix === 'eip155' || token !== undefined ? undefined : registry && sourceOf(registry);
}

function tokenOf(text: string): string | undefined {
  const { prefix, registry, token } = partsOf(text) ?? {};
  const tokenId = token === undefined || prefix === 'eip155' ? undefined : tokenIdOrUndefined(token);
  return tokenId === undefined ? undefined : registry && `${sourceOf(registry)}/${tokenIdHexOf(tokenId)}`;
}

function accountOf(text: string): string | undefined {
  const { prefix, registry, token } = partsOf(text) ?? {};
  return prefix !== 'eip155' || token !== undefined ? undefined : registry && partyOf(registry);
}

/** The member `scope` of a key. */
export const SCOPE = members('scope', {
  registries: list('Registries: `urn:service:<chain id>:<address>`.', 'the source of a registry', registryOf),
  tokens: list('Tokens: `urn:service:<chain id>:<address>/<token id>`.', 'a token of a registry', tokenOf),
  parties: list(
    'Accounts: `eip155:<chain id>:<address>`. An event is seen if its payload has one of these addresses.',
    'an account on a chain',
    accountOf,
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
