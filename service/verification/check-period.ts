import type { JsonObject } from '../issuance/credential';
import type { Check, Outcome } from './answer';

/** Tolerated difference between the issuer's clock and ours, as in other verifiers. */
const CLOCK_SKEW_MS = 5 * 60_000;

/**
 * XML Schema dateTimeStamp, which always has a time zone
 * (https://www.w3.org/TR/vc-data-model-2.0/#representing-time).
 */
const DATE_TIME_STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

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
export function checkPeriod(credential: JsonObject, now: number): Check[] {
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
  const result = (outcome: Outcome, found: string): Check => ({ check, outcome, found });
  if (value === undefined) return result('could not tell', 'no date: it is hidden, or there never was one');
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const time = DATE_TIME_STAMP.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(time)) return result('could not tell', `not a date and time with a time zone: ${text}`);
  return isRight(time) ? result('valid', text) : result('invalid', `${problem}: ${text}`);
}
