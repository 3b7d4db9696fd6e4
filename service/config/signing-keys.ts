import type { KeyObject } from 'node:crypto';
import { signingKeyOf, type SigningKey, type SigningKeys } from '../base/signing-keys';
import { wrong } from './setting-types';
import { settingOf, type Settings } from './settings';

/**
 * The keys of SIGNING_PRIVATE_KEY and SIGNING_PRIVATE_KEY_NEXT. Undefined if neither is set.
 *
 * @throws ConfigurationError if a setting is wrong, or one that belongs to another is missing.
 */
export function signingKeysOf(settings: Settings): SigningKeys | undefined {
  const privateKey = settingOf(settings, 'SIGNING_PRIVATE_KEY');
  const privateKeyNext = settingOf(settings, 'SIGNING_PRIVATE_KEY_NEXT');
  const from = settingOf(settings, 'SIGNING_KEY_SWITCH_AT');
  if (privateKeyNext === undefined && from === undefined) {
    return privateKey && { key: signingKeyOf(privateKey), next: undefined };
  }
  if (privateKeyNext === undefined) {
    const remedy = 'Set it to the key that signs from that time on, or unset SIGNING_KEY_SWITCH_AT.';
    throw wrong('SIGNING_PRIVATE_KEY_NEXT', 'is needed with SIGNING_KEY_SWITCH_AT', remedy);
  }
  if (from === undefined) {
    const remedy = 'Set it to the time in UTC from which the next key signs, such as 2027-01-31T12:00:00Z.';
    throw wrong('SIGNING_KEY_SWITCH_AT', 'is needed with SIGNING_PRIVATE_KEY_NEXT', remedy);
  }
  if (privateKey === undefined) {
    const remedy = 'Set it to the key that signs until SIGNING_KEY_SWITCH_AT; a first key needs no next one.';
    throw wrong('SIGNING_PRIVATE_KEY', 'is needed with SIGNING_PRIVATE_KEY_NEXT', remedy);
  }
  const key = signingKeyOf(privateKey);
  return { key, next: { key: nextKeyOf(privateKeyNext, key), from } };
}

function nextKeyOf(privateKey: KeyObject, current: SigningKey): SigningKey {
  const next = signingKeyOf(privateKey);
  if (next.id !== current.id) return next;
  const remedy = 'Set it to another key. If the change is over, unset it and SIGNING_KEY_SWITCH_AT instead.';
  throw wrong('SIGNING_PRIVATE_KEY_NEXT', 'is the same key as SIGNING_PRIVATE_KEY', remedy);
}
