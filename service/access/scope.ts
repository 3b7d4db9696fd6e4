import * as z from 'zod';
import { checksummed } from '../base/checksums';
import { members, must } from '../base/json';
import { registryName, type RegistryName } from '../base/registry-name';
import type { Filter } from '../events/select-events';
import { tokenIdHexOf, tokenIdOrUndefined } from '../registry/token-id-forms';

/** Entries of each list. */
const MOST_ENTRIES = 100;

const ACCOUNT = '([1-9]\\d{0,14}):(0x[0-9a-fA-F]{40})';

/**
 * A list whose entries become texts of one form: addresses in lower case, token ids with 64 digits.
 *
 * @param form has groups for what precedes the account, chain, address, and token if there is one.
 */
function list(form: RegExp, what: string, description: string) {
  const entry = z.string().transform((text, context) => {
    const [, before, chain, address = '', token] = form.exec(text) ?? [];
    const tokenId = tokenIdOrUndefined(token ?? '');
    if (checksummed(address) === undefined || (token !== undefined && tokenId === undefined)) {
      context.addIssue(`is not ${what}. Correct it.`);
      return z.NEVER;
    }
    const name = `${before}:${registryName(Number(chain), address)}`;
    return tokenId === undefined ? name : `${name}/${tokenIdHexOf(tokenId)}`;
  });
  return z
    .array(entry, { error: must('an array', 'Put it in [ ].') })
    .min(1, 'is empty. Give at least one entry, or leave it out.')
    .max(MOST_ENTRIES, `has more than ${MOST_ENTRIES} entries. Make several keys.`)
    .transform((entries) => [...new Set(entries)].sort())
    .optional()
    .describe(description);
}

/**
 * The scope of a key: it sees the events and tokens that are in each of its lists. A party sees the events
 * that name its address, and all of a token that one of the token's kept events names the address for, also
 * after it has left.
 */
export const SCOPE = members('scope', {
  registries: list(
    new RegExp(`^(urn:service):${ACCOUNT}$`),
    'the source of a registry',
    'Registries: `urn:service:<chain id>:<address>`.',
  ),
  tokens: list(
    new RegExp(`^(urn:service):${ACCOUNT}/([0-9a-zA-Z]{1,78})$`),
    'a token of a registry',
    'Tokens: `urn:service:<chain id>:<address>/<token id>`.',
  ),
  parties: list(
    new RegExp(`^(eip155):${ACCOUNT}$`),
    'an account on a chain',
    'Accounts: `eip155:<chain id>:<address>`. An event is seen if its payload has one of these addresses.',
  ),
}).refine(
  (scope) => Object.values(scope).some((entries) => entries !== undefined),
  'names nothing. Give registries, tokens or parties.',
);

export type Scope = z.output<typeof SCOPE>;

/** The account of an address on a chain, as a scope has it: an account id of CAIP-10. */
export function partyOf(account: RegistryName): string {
  return `eip155:${account}`;
}

/** The filters that are true for the events of a scope. */
export function filtersOf({ registries, tokens, parties }: Scope): Filter[] {
  const oneOf = (filters: Filter[] | undefined): Filter[] => (filters ? [{ any: filters }] : []);
  return [
    ...oneOf(registries?.map((source) => ({ exact: { source } }))),
    ...oneOf(
      tokens?.map((token) => {
        const [source = '', tokenId = ''] = token.split('/');
        return { all: [{ exact: { source } }, { tokens: [tokenId] }] };
      }),
    ),
    ...oneOf(
      parties?.map((party) => {
        const [, chainId, address = ''] = party.split(':');
        return { all: [{ prefix: { source: `urn:service:${chainId}:` } }, { parties: [address] }] };
      }),
    ),
  ];
}
