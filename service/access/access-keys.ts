import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { Kysely, Selectable } from 'kysely';
import * as z from 'zod';
import { cut, RequestError, TooOftenError } from '../base/errors';
import { isWellFormed, members, must, shaped } from '../base/json';
import { timeAt, type Clock } from '../base/time';
import { inBatches } from '../database/batches';
import type { Database } from '../database/database';
import type { AccessKeysTable, Schema } from '../database/schema';
import type { Filter } from '../events/select-events';
import { holdChanges } from '../outbox/changes';
import { pauseOwnerless } from '../subscriptions/stored-subscriptions';
import { filtersOf, SCOPE, type Scope } from './scope';

/**
 * Terms of keys that see a part:
 *
 * - scope: the events and tokens that a key sees. All else is answered as if it did not exist.
 * - owner: the name of a key, or the account of a wallet. Keys of one owner have one scope, and the same
 *   subscriptions: a key that ends leaves them, paused, to the next one.
 */

/** `read`: events, tokens and their evidence. `subscribe`: subscriptions of its own, too. */
export const PERMISSIONS = ['read', 'subscribe'] as const;
export type Permission = (typeof PERMISSIONS)[number];

/** The caller with such a key. */
export interface Holder {
  /** Of the key. */
  readonly id: string;
  readonly name: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  readonly owner: string;
  readonly may: readonly Permission[];
  readonly scope: Scope;
  /** The scope as filters of events. */
  readonly filters: readonly Filter[];
}

/** A key as it is listed. */
interface AccessKey {
  id: string;
  name: string;
  scope: Scope;
  may: readonly Permission[];
  createdAt: string;
  expiresAt: string;
  /** To the hour. Null: never. */
  usedAt: string | null;
  isLive: boolean;
}

/** A key, which is shown once. */
export type NewKey = AccessKey & { key: string };

/** Whom a key is for, and what it sees. */
export interface KeyTerms {
  owner: string;
  name: string;
  scope: Scope;
  may: readonly Permission[];
  /** Epoch milliseconds. */
  expiresAt: number;
  /** The nonce of a wallet's log-in. One that has made a key makes no other. */
  nonce?: string;
}

/** The keys of those who see a part. */
export interface AccessKeys {
  /** The holder of a key that is live, by the key or its id. It notes the use. */
  find(key: string | { id: string }): Promise<Holder | undefined>;
  /** @throws RequestError KEY_INVALID, KEY_SCOPE_DIFFERS, KEYS_TOO_MANY. */
  add(body: unknown): Promise<NewKey>;
  /**
   * Undefined: the nonce was used.
   *
   * @throws RequestError KEY_SCOPE_DIFFERS, KEYS_TOO_MANY; TooOftenError LOGIN_ATTEMPTS for an account.
   */
  make(terms: KeyTerms): Promise<NewKey | undefined>;
  /** The newest first. Keys that ended are kept for thirty days. */
  list(): Promise<AccessKey[]>;
  /** Ends a key. @throws RequestError KEY_UNKNOWN */
  revoke(id: string): Promise<void>;
  /** Pauses the subscriptions of owners whose keys have all ended. */
  endOld(): Promise<void>;
}

const PREFIX = 'tdk_';
const KEY_BYTES = 32;
const HOUR_MS = 3_600_000;
const KEPT_MS = 30 * 24 * HOUR_MS;
const LONGEST_NAME = 100;
const MOST_KEYS = 10_000;
/** Log-ins of an account in an hour: a key is for a day. */
const MOST_LOGINS = 20;

const NAME = must('a text', 'Give the name of the holder.');
const WHEN = must('a time', 'Write it as 2030-01-31T12:00:00Z.');

/** The body of `POST /keys`. */
export const KEY_REQUEST = members('a key', {
  name: z
    .string({ error: NAME })
    .min(1, 'is empty. Give the name of the holder.')
    .max(LONGEST_NAME, `has more than ${LONGEST_NAME} characters. Shorten it.`)
    .refine(isWellFormed, 'contains half of a surrogate pair. Leave it out.')
    .refine((name) => !name.includes('\0'), 'contains the character NUL. Leave it out.')
    .describe('The holder. Keys of one name have the same subscriptions, and the same scope.'),
  scope: SCOPE,
  may: z
    .array(z.enum(PERMISSIONS, { error: must('`read` or `subscribe`', 'Correct it.') }), {
      error: must('an array', 'Put it in [ ].'),
    })
    .min(1, 'is empty. Give `read` or `subscribe`.')
    .default(['read'])
    .describe('`read`: events, tokens and evidence. `subscribe`: subscriptions of its own.'),
  expiresAt: z.iso
    .datetime({ offset: true, error: WHEN })
    .describe('The end of the key. Its subscriptions pause then.'),
});

/** @param onEnded is called after keys have ended, if subscriptions were paused. */
export function createAccessKeys(database: Database, clock: Clock, onEnded: () => Promise<void>): AccessKeys {
  const { db } = database;

  async function make({ owner, name, scope, may, expiresAt, nonce }: KeyTerms): Promise<NewKey | undefined> {
    const key = PREFIX + randomBytes(KEY_BYTES).toString('base64url');
    const now = clock.now();
    const row = {
      ...{ id: randomUUID(), owner, name, digest: digestOf(key), scope: JSON.stringify(scope) },
      ...{ may: may.join(), created_at: now, expires_at: expiresAt, nonce: nonce ?? null },
      ...{ ended_at: null, used_at: null },
    };
    return db.transaction().execute(async (transaction) => {
      // Two with one name are made one after the other.
      await holdChanges(transaction);
      const ofOwner = transaction.selectFrom('access_keys').select('scope').where('owner', '=', owner);
      if ((await ofOwner.execute()).some((other) => other.scope !== row.scope)) throw scopeDiffers();
      const { count } = await liveKeys(transaction, now)
        .select((eb) => eb.fn.countAll().as('count'))
        .where('nonce', 'is', null)
        .executeTakeFirstOrThrow();
      if (nonce === undefined && Number(count) >= MOST_KEYS)
        throw new RequestError('KEYS_TOO_MANY', `There are ${MOST_KEYS} keys already. Revoke some first.`);
      if (nonce !== undefined) await expectFewLogins(transaction, owner, now);
      const added = await transaction
        .insertInto('access_keys')
        .values(row)
        .onConflict((conflict) => conflict.column('nonce').doNothing())
        .returning('id')
        .executeTakeFirst();
      return added && { ...shown(row, now), key };
    });
  }

  async function endOld(): Promise<void> {
    const now = clock.now();
    if (await pauseOwnerless(database, now)) await onEnded();
    const old = await db
      .selectFrom('access_keys')
      .select('id')
      .where((eb) =>
        eb.or([
          eb('expires_at', '<', now - KEPT_MS),
          eb('ended_at', '<', now - KEPT_MS),
          // Log-ins of the last hour are counted, and clocks of processes differ.
          eb.and([eb('nonce', 'is not', null), eb('expires_at', '<', now - HOUR_MS)]),
        ]),
      )
      // Others say which scope the next key of the owner must have.
      .where((eb) =>
        eb.or([
          eb('nonce', 'is not', null),
          eb('owner', 'not in', (owners) =>
            owners
              .selectFrom('subscriptions')
              .select('subscriptions.owner')
              .where('subscriptions.owner', 'is not', null),
          ),
        ]),
      )
      .execute();
    const drop = (some: typeof old) =>
      db
        .deleteFrom('access_keys')
        .where(
          'id',
          'in',
          some.map(({ id }) => id),
        )
        .execute();
    await inBatches(old, drop);
  }

  return {
    async find(key) {
      const which = typeof key === 'string' ? { digest: digestOf(key) } : key;
      if (typeof key === 'string' && !isAccessKey(key)) return undefined;
      const now = clock.now();
      const live = liveKeys(db, now).where((eb) => eb.and(which));
      const row = await live.selectAll().executeTakeFirst();
      if (row === undefined) return undefined;
      const hour = now - (now % HOUR_MS);
      const noting = db.updateTable('access_keys').set({ used_at: hour }).where('id', '=', row.id);
      // A database that cannot be written is still read.
      if ((row.used_at ?? 0) < hour) await noting.execute().catch(() => undefined);
      const scope = JSON.parse(row.scope) as Scope;
      const { id, name, owner, expires_at: expiresAt } = row;
      return { id, name, owner, expiresAt, may: permissionsOf(row), scope, filters: filtersOf(scope) };
    },
    async add(body) {
      const { expiresAt, ...request } = shaped(KEY_REQUEST, body, 'KEY_INVALID');
      const end = Date.parse(expiresAt);
      if (end <= clock.now())
        throw new RequestError('KEY_INVALID', '/expiresAt is over. Give a time in the future.');
      const made = await make({ ...request, owner: `name:${request.name}`, expiresAt: end });
      if (made === undefined) throw new Error('A key without a nonce was taken for another.');
      return made;
    },
    make,
    async list() {
      const rows = await db.selectFrom('access_keys').selectAll().orderBy('created_at', 'desc').execute();
      return rows.map((row) => shown(row, clock.now()));
    },
    async revoke(id) {
      const row = await liveKeys(db, clock.now()).select('id').where('id', '=', id).executeTakeFirst();
      if (row === undefined) {
        const message = `There is no key ${cut(id)}, or it has ended. List the keys with GET /keys.`;
        throw new RequestError('KEY_UNKNOWN', message);
      }
      await db.updateTable('access_keys').set({ ended_at: clock.now() }).where('id', '=', id).execute();
      // If it fails, the next turn does it: the key has ended.
      await endOld().catch(() => undefined);
    },
    endOld,
  };
}

/** Whether a key has the form of a key with a scope. */
export function isAccessKey(key: string): boolean {
  return key.startsWith(PREFIX);
}

/** @throws TooOftenError LOGIN_ATTEMPTS */
async function expectFewLogins(db: Kysely<Schema>, owner: string, now: number): Promise<void> {
  const { logins, first } = await db
    .selectFrom('access_keys')
    .select(({ fn }) => [fn.countAll().as('logins'), fn.min('created_at').as('first')])
    .where('owner', '=', owner)
    .where('created_at', '>', now - HOUR_MS)
    .executeTakeFirstOrThrow();
  if (Number(logins) < MOST_LOGINS) return;
  const message = `The account logged in ${MOST_LOGINS} times within an hour. Use the key that it has.`;
  throw new TooOftenError('LOGIN_ATTEMPTS', message, { retryAfterMs: Number(first) + HOUR_MS - now });
}

function scopeDiffers(): RequestError {
  const message =
    'There is a key of this name with another scope, or there was one lately. Its subscriptions belong to ' +
    'the next key of the name, and keep what they were sent. Choose another name.';
  return new RequestError('KEY_SCOPE_DIFFERS', message);
}

function liveKeys(db: Kysely<Schema>, now: number) {
  return db.selectFrom('access_keys').where('expires_at', '>', now).where('ended_at', 'is', null);
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

function permissionsOf({ may }: { may: string }): Permission[] {
  return may.split(',') as Permission[];
}

type Row = Omit<Selectable<AccessKeysTable>, 'digest'>;

function shown(row: Row, now: number): AccessKey {
  return {
    id: row.id,
    name: row.name,
    scope: JSON.parse(row.scope) as Scope,
    may: permissionsOf(row),
    createdAt: timeAt(row.created_at),
    expiresAt: timeAt(row.expires_at),
    usedAt: row.used_at === null ? null : timeAt(row.used_at),
    isLive: row.ended_at === null && row.expires_at > now,
  };
}
