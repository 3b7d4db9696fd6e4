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
 * A feed takes 2 to 10 bytes, and usually 4: 1,000 feeds fit into 14 KB of text, and usually into 6 KB.
 */
export interface Cursors {
  write(place: StreamPlace): string;
  /** Undefined for a text that was not written here. */
  read(text: string): StreamPlace | undefined;
}

const CONTEXT = 'events';
/** A cursor has a multiple of so many bytes: its length says little. */
const BLOCK_BYTES = 64;
/** A digit that more would follow: it belongs to no number. */
const PADDING = 0x80;

/** The key of all that clients keep, and cannot read. All processes have it. */
export async function readCursorKey(db: Kysely<Schema>): Promise<Uint8Array> {
  const { bytes } = await db.selectFrom('cursor_keys').select('bytes').executeTakeFirstOrThrow();
  return new Uint8Array(bytes);
}

export async function readCursors(db: Kysely<Schema>): Promise<Cursors> {
  const key = await readCursorKey(db);
  return {
    write({ positions, turn }) {
      const numbers = [turn];
      let before = 0;
      for (const [feed, position] of positions) {
        if (position === 0) continue;
        numbers.push(feed - before, position);
        before = feed;
      }
      const digits = numbers.flatMap(digitsOf);
      const blocks = Math.ceil(digits.length / BLOCK_BYTES);
      const content = new Uint8Array(blocks * BLOCK_BYTES).fill(PADDING);
      content.set(digits);
      return seal(key, content, CONTEXT);
    },
    read(text) {
      const content = orUndefined(() => unseal(key, text, CONTEXT));
      if (content === undefined) return undefined;
      const [turn = 0, ...numbers] = numbersIn(content);
      const positions = new Map<number, number>();
      let feed = 0;
      for (let index = 0; index < numbers.length; index += 2)
        positions.set((feed += numbers[index] ?? 0), numbers[index + 1] ?? 0);
      return { positions, turn };
    },
  };
}

/** The number in digits of seven bits, the lowest first. All but the last have the highest bit set. */
function digitsOf(number: number): number[] {
  const digits: number[] = [];
  for (; number >= 0x80; number = Math.floor(number / 0x80)) digits.push((number % 0x80) + 0x80);
  return [...digits, number];
}

function numbersIn(bytes: Uint8Array): number[] {
  const numbers: number[] = [];
  let [number, factor] = [0, 1];
  for (const digit of bytes) {
    number += (digit % 0x80) * factor;
    factor *= 0x80;
    if (digit >= 0x80) continue;
    numbers.push(number);
    [number, factor] = [0, 1];
  }
  return numbers;
}
