import { z } from 'zod';

// Values that several answers have.

/** Lower-case or checksummed address. */
export const ADDRESS = z.string().regex(/^0x[0-9a-fA-F]{40}$/);
/** Hash of a transaction. */
export const HASH = z.string().regex(/^0x[0-9a-f]{64}$/);
/** ISO 8601 in UTC, with milliseconds. */
export const TIME = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  .meta({ format: 'date-time' });
/** A token id in the form of `credentialStatus.tokenId`. */
export const TOKEN_ID_HEX = z.string().regex(/^[0-9a-f]{64}$/);
/** A number of blocks, events or other things. */
export const COUNT = z.int().nonnegative();
/** Chain id and lower-case address, such as `80002:0xd805…`. */
export const REGISTRY_NAME = z.string().regex(/^[1-9]\d*:0x[0-9a-f]{40}$/);

/** Text of no particular form. */
export const TEXT = z.string();

/** State of the reading of a registry's events. */
export const FEED_STATE = z.enum(['starting', 'following', 'standby', 'failing', 'stopped']).meta({
  description:
    '`starting`: the registry has not been found on the chain yet; `following`: its events are read; ' +
    '`standby`: another process reads them; `failing`: the node cannot be read now; `stopped`: an operator ' +
    'has to act.',
});
