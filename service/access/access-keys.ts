import { createHash, randomBytes } from 'node:crypto';
import { sql, type Selectable, type SqlBool } from 'kysely';
import { v7 as uuidV7 } from 'uuid';
import * as z from 'zod';
import { component, TEXT, TIME } from '../answers/views';
import { cut, RequestError } from '../base/errors';
import { isWellFormed, members, must, shaped } from '../base/json';
import { timeAt, type Clock } from '../base/time';
import type { Database } from '../database/database';
import type { AccessKeysTable } from '../database/schema';
import type { Filter } from '../events/select-events';
import { pauseOwnerless } from '../subscriptions/stored-subscriptions';
import { filtersOf, SCOPE, type Scope } from './scope';

/**
 * Terms of keys that see a part:
 *
 * - scope: the events and tokens that a key sees. All else is answered as if it did not exist.
 * - owner: the name and the scope of a key, or the account of a wallet. Keys of one owner have the same
 *   subscriptions: a key that ends leaves them, paused, to the next one.
 */

/** `read`: events, tokens and their evidence. `subscribe`: subscriptions of its own, too. */
export const PERMISSIONS = ['read', 'subscribe'] as const;
export type Permission = (typeof PERMISSIONS)[number];

/** The caller with such a key. */
export interface Holder {
  /** That of the key. */
  readonly name: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  readonly owner: string;
  readonly may: readonly Permission[];
  /** The scope as filters of events. */
  readonly filters: readonly Filter[];
}

const TEXTS = z.array(TEXT).optional();

/** A key as it is listed. */
export const ACCESS_KEY = component('AccessKey', {
  id: TEXT.describe('A UUID.'),
  name: TEXT,
  scope: z.strictObject({ registries: TEXTS, tokens: TEXTS, parties: TEXTS }),
  may: z.array(z.enum(PERMISSIONS)),
  createdAt: TIME,
  expiresAt: TIME,
  usedAt: TIME.nullable().describe('Its last use, to the hour.'),
  isLive: z.boolean().describe('Whether it has neither ended nor been revoked.'),
});
type AccessKey = z.output<typeof ACCESS_KEY>;

/** A key, which is shown once. */
export type NewKey = AccessKey & { key: string };

/** Whom a key is for, and what it sees. */
interface KeyTerms {
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
  /** The holder of a key that is live. It notes the use. */
  find(key: string): Promise<Holder | undefined>;
  /** @throws RequestError KEY_INVALID. */
  add(body: unknown): Promise<NewKey>;
  /** Undefined: the nonce was used. */
  make(terms: KeyTerms): Promise<NewKey | undefined>;
  /** The newest first. Keys that ended are kept for thirty days. `next`: the `after` of the next page. */
  list(page: { after?: string | undefined; limit: number }): Promise<{ keys: AccessKey[]; next?: string }>;
  /** Ends a key. @throws RequestError KEY_UNKNOWN */
  revoke(id: string): Promise<void>;
  /** Pauses the subscriptions of owners whose keys have all ended. */
  endOld(): Promise<void>;
}

const PREFIX = 'tdk_';
const KEY_BYTES = 32;
const HOUR_MS = 3_600_000;
const KEPT_MS = 30 * 24 * HOUR_MS;
/** Nonces of log-ins are old by then, though clocks of processes differ. */
const KEPT_OF_WALLET_MS = HOUR_MS;
const LONGEST_NAME = 100;

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
    .describe('The holder. Keys of one name and one scope have the same subscriptions.'),
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

  async function make(terms: KeyTerms): Promise<NewKey | undefined> {
    const { owner, name, scope, may, expiresAt, nonce = null } = terms;
    const key = PREFIX + randomBytes(KEY_BYTES).toString('base64url');
    const now = clock.now();
    const row = {
      ...{ id: uuidV7({ msecs: now }), owner, name, digest: sha256(key), scope: JSON.stringify(scope) },
      ...{ may: may.join(), created_at: now, expires_at: expiresAt, nonce, ended_at: null, used_at: null },
    };
    const added = await db
      .insertInto('access_keys')
      .values(row)
      .onConflict((conflict) => conflict.column('nonce').doNothing())
      .returning('id')
      .executeTakeFirst();
    return added && { ...shown(row, now), key };
  }

  async function endOld(): Promise<void> {
    const now = clock.now();
    if (await pauseOwnerless(database, now)) await onEnded();
    const isOld = sql<SqlBool>`(expires_at < ${now - KEPT_MS} or ended_at < ${now - KEPT_MS}
      or (nonce is not null and expires_at < ${now - KEPT_OF_WALLET_MS}))`;
    // A statement that deletes nothing takes the lock of a writer, too.
    const [old] = await db.selectFrom('access_keys').select('id').where(isOld).limit(1).execute();
    if (old) await db.deleteFrom('access_keys').where(isOld).execute();
  }

  return {
    async find(key) {
      if (!isAccessKey(key)) return undefined;
      const now = clock.now();
      const found = db.selectFrom('access_keys').selectAll().where('digest', '=', sha256(key));
      const row = await found.where(isLive(now)).executeTakeFirst();
      if (row === undefined) return undefined;
      const hour = now - (now % HOUR_MS);
      const noting = db.updateTable('access_keys').set({ used_at: hour }).where('id', '=', row.id);
      // A database that cannot be written is still read.
      if ((row.used_at ?? 0) < hour) await noting.execute().catch(() => undefined);
      const { name, expires_at: expiresAt, owner, may, scope } = row;
      const filters = filtersOf(JSON.parse(scope) as Scope);
      return { name, expiresAt, owner, may: permissionsOf(may), filters };
    },
    async add(body) {
      const { expiresAt, ...request } = shaped(KEY_REQUEST, body, 'KEY_INVALID');
      const end = Date.parse(expiresAt);
      if (end <= clock.now())
        throw new RequestError('KEY_INVALID', '/expiresAt is over. Give a time in the future.');
      const owner = sha256(JSON.stringify([request.name, request.scope])).toString('hex');
      const made = await make({ ...request, owner: `name:${owner}`, expiresAt: end });
      if (made === undefined) throw new Error('A key without a nonce was taken for another.');
      return made;
    },
    make,
    async list({ after, limit }) {
      const rows = await db
        .selectFrom('access_keys')
        .selectAll()
        .$if(after !== undefined, (query) => query.where('id', '<', after ?? ''))
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute();
      const keys = rows.slice(0, limit).map((row) => shown(row, clock.now()));
      const last = rows.length > limit && keys.at(-1);
      return { keys, ...(last && { next: last.id }) };
    },
    async revoke(id) {
      const now = clock.now();
      const ending = db.updateTable('access_keys').set({ ended_at: now }).where('id', '=', id);
      if ((await ending.where(isLive(now)).returning('id').execute()).length === 0) {
        const message = `There is no key ${cut(id)}, or it has ended. List the keys with GET /keys.`;
        throw new RequestError('KEY_UNKNOWN', message);
      }
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

function isLive(now: number) {
  return sql<SqlBool>`expires_at > ${now} and ended_at is null`;
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function permissionsOf(may: string): Permission[] {
  return may.split(',') as Permission[];
}

function shown(row: Omit<Selectable<AccessKeysTable>, 'digest'>, now: number): AccessKey {
  return {
    id: row.id,
    name: row.name,
    scope: JSON.parse(row.scope) as AccessKey['scope'],
    may: permissionsOf(row.may),
    createdAt: timeAt(row.created_at),
    expiresAt: timeAt(row.expires_at),
    usedAt: row.used_at === null ? null : timeAt(row.used_at),
    isLive: row.ended_at === null && row.expires_at > now,
  };
}
