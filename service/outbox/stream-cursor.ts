import type { Kysely } from 'kysely';
import { orUndefined } from '../base/errors';
import { seal, unseal } from '../base/seal';
import type { Schema } from '../database/schema';

/** A place in the streams of all feeds. */
export interface StreamPlace {
  /**
   * The position of the last event that was looked at in each feed, by the feed's key and ascending by it. A
   * feed that is missing was not looked at.
   */
  readonly positions: ReadonlyMap<number, number>;
  /** Reading begins with the first feed from this key on: feeds take turns, so a busy one delays no other. */
  readonly turn: number;
}

/**
 * Writes places as texts, and reads them back. The texts say nothing to others, also not how many events of
 * others there are, and only those that were written here are read: the key is kept in the database.
 *
 * 1,000 feeds fit into 11 KB of text.
 */
export interface Cursors {
  write(place: StreamPlace): string;
  /** Undefined for a text that was not written here. */
  read(text: string): StreamPlace | undefined;
}

const CONTEXT = 'positions';
/** A feed's key and its position, 32 bits each. */
const ENTRY_BYTES = 8;
/** A cursor has a multiple of so many bytes: its length says little. */
const BLOCK_BYTES = 64;

/** The key of all that clients keep, and cannot read. All processes have it. */
export async function readCursorKey(db: Kysely<Schema>): Promise<Uint8Array> {
  const { bytes } = await db.selectFrom('cursor_keys').select('bytes').executeTakeFirstOrThrow();
  return new Uint8Array(bytes);
}

export async function readCursors(db: Kysely<Schema>): Promise<Cursors> {
  const key = await readCursorKey(db);
  return {
    write({ positions, turn }) {
      const entries = [[turn, 0] as const, ...positions];
      const blocks = Math.ceil((entries.length * ENTRY_BYTES) / BLOCK_BYTES);
      const content = Buffer.alloc(blocks * BLOCK_BYTES);
      for (const [index, [feed, position]] of entries.entries())
        content.writeUInt32BE(position, content.writeUInt32BE(feed, index * ENTRY_BYTES));
      return seal(key, content, CONTEXT);
    },
    read(text) {
      const content = orUndefined(() => unseal(key, text, CONTEXT));
      if (content === undefined) return undefined;
      const entries: [number, number][] = [];
      for (let at = 0; at < content.length; at += ENTRY_BYTES)
        entries.push([content.readUInt32BE(at), content.readUInt32BE(at + ENTRY_BYTES / 2)]);
      const [[turn] = [0], ...positions] = entries;
      // No feed has the key 0.
      return { positions: new Map(positions.filter(([feed]) => feed > 0)), turn };
    },
  };
}
