import { tokenIdHexOf } from '../registry/token-id-forms';
import { codeOf, messageOf, ServiceError } from '../base/errors';
import { isJsonObject, type JsonObject } from '../issuance/credential';
import { tokenIdOf } from '../issuance/token-id';
import type { TokenState } from '../registry/read-token-state';
import { tokenLocationOf, type TokenLocation } from '../token/token-location';
import type { Check, Outcome } from './answer';

/** Reads a token from its chain; throws if it cannot be read. */
export type ReadToken = (location: TokenLocation) => Promise<TokenState>;

/** Findings about a document's token. `token` is undefined if it could not be read. */
export interface FoundStatus {
  checks: Check[];
  token: (TokenLocation & TokenState) | undefined;
}

/**
 * Errors of reading a registry that say something about the document. Any other error says nothing about it.
 */
const SHOWN_BY_ERROR = new Map<string, string>([
  ['REGISTRY_MISSING', 'there is no contract at'],
  ['REGISTRY_INVALID', 'no token registry is at'],
]);

/**
 * Checks the state of the token that the credential names (docs/decisions/0007-what-makes-a-status-valid.md).
 */
export async function checkStatus(credential: JsonObject, readToken: ReadToken): Promise<FoundStatus> {
  const { location, check } = locate(credential);
  if (location === undefined) return { checks: [check], token: undefined };
  const ownership = checkOwnToken(credential, location);
  try {
    const state = await readToken(location);
    const checks = [check, ownership, registryFound(location), ...checksOfState(state)];
    return { checks, token: { ...location, ...state } };
  } catch (thrown) {
    return { checks: [check, ownership, registryNotRead(location, thrown)], token: undefined };
  }
}

function locate(credential: JsonObject): { location: TokenLocation | undefined; check: Check } {
  const problem = (outcome: Outcome, found: string) => ({
    location: undefined,
    check: { check: 'credential status', outcome, found },
  });
  const statuses: unknown[] = [credential.credentialStatus].flat();
  const [status] = statuses;
  if (status === undefined)
    return problem('could not tell', 'no token is named: it is hidden, or there never was one');
  if (statuses.length > 1)
    return problem('could not tell', `${statuses.length} are named; only one is supported`);
  const type = isJsonObject(status) ? status.type : undefined;
  if (typeof type === 'string' && type !== 'TransferableRecords')
    return problem('could not tell', `it is of type ${type}; only TransferableRecords is supported`);
  try {
    const location = tokenLocationOf({ credentialStatus: status });
    const found = `token ${tokenIdHexOf(location.tokenId)} on chain ${location.chainId}`;
    return { location, check: { check: 'credential status', outcome: 'valid', found } };
  } catch (thrown) {
    return problem('invalid', messageOf(thrown));
  }
}

/**
 * A token's id is derived from the credential's id (docs/specification.md 2.6). Any other token may belong to
 * another document.
 */
function checkOwnToken({ id }: JsonObject, { tokenId }: TokenLocation): Check {
  const check = 'own token';
  if (typeof id !== 'string')
    return {
      check,
      outcome: 'could not tell',
      found: "the credential has no id to compare the token's id with",
    };
  if (BigInt(`0x${tokenIdOf(id)}`) === tokenId)
    return { check, outcome: 'valid', found: "the token's id is the hash of the credential's" };
  const found = "the token's id is not the hash of the credential's: the token may be another document's";
  return { check, outcome: 'could not tell', found };
}

function registryFound({ registry }: TokenLocation): Check {
  return { check: 'registry', outcome: 'valid', found: `token registry found at ${registry}` };
}

/** Shows only the error texts of this project: a library's text may contain the node's URL with its key. */
function registryNotRead({ registry, chainId }: TokenLocation, thrown: unknown): Check {
  const code = codeOf(thrown) ?? 'unexpected error';
  const shown = SHOWN_BY_ERROR.get(code);
  if (shown !== undefined)
    return { check: 'registry', outcome: 'invalid', found: `${shown} ${registry} on chain ${chainId}` };
  const reason = thrown instanceof ServiceError ? thrown.message : `the node could not be asked (${code})`;
  return { check: 'registry', outcome: 'could not tell', found: reason };
}

function checksOfState(state: TokenState): Check[] {
  const at = `at block ${state.block}`;
  if (state.state === 'not minted')
    return [{ check: 'token', outcome: 'invalid', found: `it was never minted (${at})` }];
  if (state.state === 'shredded')
    return [
      { check: 'token', outcome: 'invalid', found: `shredded: taken out of circulation for good (${at})` },
    ];
  const found =
    state.state === 'in escrow'
      ? `in its title escrow ${state.titleEscrow} (${at})`
      : `returned to the issuer, who may restore it or shred it: nobody can transfer it now (${at})`;
  const parties =
    `beneficiary ${state.beneficiary ?? 'nobody'}, holder ${state.holder ?? 'nobody'}, ` +
    `nominee ${state.nominee ?? 'nobody'}`;
  const checks: Check[] = [
    { check: 'token', outcome: 'valid', found },
    { check: 'parties', outcome: 'valid', found: parties },
  ];
  const pause = 'the registry is paused: nobody can act on the token until the issuer resumes it';
  return state.isPaused ? [...checks, { check: 'pause', outcome: 'valid', found: pause }] : checks;
}
