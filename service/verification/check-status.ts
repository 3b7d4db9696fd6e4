import { tokenIdHexOf } from '../registry/token-id-forms';
import { codeOf, messageOf, ServiceError } from '../base/errors';
import { isJsonObject, tokenIdOf, type JsonObject } from '../issuance/credential';
import type { TokenState } from '../registry/read-token-state';
import { tokenLocationOf, type TokenLocation } from '../token/token-location';
import { couldNotTell, invalid, valid, type Check } from './answer';

/** Reads a token from its chain; throws if it cannot be read. */
export type ReadToken = (location: TokenLocation) => Promise<TokenState>;

/**
 * Errors of reading a registry that say something about the document. Any other error says nothing about it.
 */
const SHOWN_BY_ERROR = new Map<string, string>([
  ['REGISTRY_MISSING', 'there is no contract at'],
  ['REGISTRY_INVALID', 'no token registry is at'],
]);

/**
 * Checks the state of the token that the credential names (docs/decisions/0007-what-makes-a-status-valid.md),
 * and the validity period.
 *
 * @param now epoch milliseconds.
 * @returns `token`: undefined if it could not be read.
 */
export async function checkStatus(
  credential: JsonObject,
  readToken: ReadToken,
  now: number,
): Promise<{ checks: Check[]; token: (TokenLocation & TokenState) | undefined }> {
  const period = checkPeriod(credential, now);
  const location = locate(credential);
  if ('outcome' in location) return { checks: [location, ...period], token: undefined };
  const { chainId, registry, tokenId } = location;
  const named = valid('credential status', `token ${tokenIdHexOf(tokenId)} on chain ${chainId}`);
  const ownership = checkOwnToken(credential, location);
  try {
    const state = await readToken(location);
    const found = valid('registry', `token registry found at ${registry}`);
    const checks = [named, ownership, found, ...checksOfState(state), ...period];
    return { checks, token: { ...location, ...state } };
  } catch (thrown) {
    return { checks: [named, ownership, registryNotRead(location, thrown), ...period], token: undefined };
  }
}

/** The token that the credential names, or the reason why it names none that can be read. */
function locate(credential: JsonObject): TokenLocation | Check {
  const check = 'credential status';
  const statuses: unknown[] = [credential.credentialStatus].flat();
  const [status] = statuses;
  if (status === undefined)
    return couldNotTell(check, 'no token is named: it is hidden, or there never was one');
  if (statuses.length > 1) return couldNotTell(check, `${statuses.length} are named; only one is supported`);
  const type = isJsonObject(status) ? status.type : undefined;
  if (typeof type === 'string' && type !== 'TransferableRecords')
    return couldNotTell(check, `it is of type ${type}; only TransferableRecords is supported`);
  try {
    return tokenLocationOf({ credentialStatus: status });
  } catch (thrown) {
    return invalid(check, messageOf(thrown));
  }
}

/**
 * A token's id is derived from the credential's id (docs/specification.md 2.6). Any other token may belong to
 * another document.
 */
function checkOwnToken({ id }: JsonObject, { tokenId }: TokenLocation): Check {
  const check = 'own token';
  if (typeof id !== 'string')
    return couldNotTell(check, "the credential has no id to compare the token's id with");
  if (BigInt(`0x${tokenIdOf(id)}`) === tokenId)
    return valid(check, "the token's id is the hash of the credential's");
  const found = "the token's id is not the hash of the credential's: the token may be another document's";
  return couldNotTell(check, found);
}

/** Shows only the error texts of this project: a library's text may contain the node's URL with its key. */
function registryNotRead({ registry, chainId }: TokenLocation, thrown: unknown): Check {
  const code = codeOf(thrown) ?? 'unexpected error';
  const shown = SHOWN_BY_ERROR.get(code);
  if (shown !== undefined) return invalid('registry', `${shown} ${registry} on chain ${chainId}`);
  const reason = thrown instanceof ServiceError ? thrown.message : `the node could not be asked (${code})`;
  return couldNotTell('registry', reason);
}

function checksOfState(state: TokenState): Check[] {
  const at = `at block ${state.block}`;
  if (state.state === 'not minted') return [invalid('token', `it was never minted (${at})`)];
  if (state.state === 'shredded')
    return [invalid('token', `shredded: taken out of circulation for good (${at})`)];
  const found =
    state.state === 'in escrow'
      ? `in its title escrow ${state.titleEscrow} (${at})`
      : `returned to the issuer, who may restore it or shred it: nobody can transfer it now (${at})`;
  const parties =
    `beneficiary ${state.beneficiary ?? 'nobody'}, holder ${state.holder ?? 'nobody'}, ` +
    `nominee ${state.nominee ?? 'nobody'}`;
  const checks = [valid('token', found), valid('parties', parties)];
  const pause = 'the registry is paused: nobody can act on the token until the issuer resumes it';
  return state.isPaused ? [...checks, valid('pause', pause)] : checks;
}

/** Tolerated difference between the issuer's clock and ours, as in other verifiers. */
const CLOCK_SKEW_MS = 5 * 60_000;

/**
 * XML Schema dateTimeStamp, which always has a time zone
 * (https://www.w3.org/TR/vc-data-model-2.0/#representing-time). Years after 9999 have more digits there;
 * ECMAScript writes them with a sign and six digits.
 */
const DATE_TIME_STAMP = /^\+?(\d{4,})(-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))$/;
/** The last whole year that ECMAScript knows. It stands for all later ones. */
const LAST_YEAR = 275_759;

/** A dateTimeStamp in epoch milliseconds; NaN if the text is none. */
export function timeOf(text: string): number {
  const [, year, rest] = DATE_TIME_STAMP.exec(text) ?? [];
  return Date.parse(`+${String(Math.min(Number(year), LAST_YEAR)).padStart(6, '0')}${rest}`);
}

/**
 * Checks the validity period (https://www.w3.org/TR/vc-data-model-2.0/#validity-period), also with the field
 * names of version 1.1 of the data model.
 *
 * A missing date may have been removed by the holder, even from a base proof: its list of signatures is not
 * itself signed. Fields that the issuer made mandatory, as this project does with the dates, cannot be
 * removed.
 *
 * @param now epoch milliseconds.
 */
function checkPeriod(credential: JsonObject, now: number): Check[] {
  const { validFrom = credential.issuanceDate, validUntil = credential.expirationDate } = credential;
  return [
    checkDate('valid from', validFrom, (time) => time <= now + CLOCK_SKEW_MS, 'not valid yet'),
    checkDate('valid until', validUntil, (time) => time >= now - CLOCK_SKEW_MS, 'expired'),
  ];
}

function checkDate(
  check: string,
  value: unknown,
  isRight: (time: number) => boolean,
  problem: string,
): Check {
  if (value === undefined) return couldNotTell(check, 'no date: it is hidden, or there never was one');
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const time = timeOf(text);
  if (Number.isNaN(time)) return couldNotTell(check, `not a date and time with a time zone: ${text}`);
  return isRight(time) ? valid(check, text) : invalid(check, `${problem}: ${text}`);
}
