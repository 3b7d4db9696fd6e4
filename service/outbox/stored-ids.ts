import { parse, stringify } from 'uuid';

/** The 16 bytes of an event's id, as they are stored. */
export function bytesOfId(eventId: string): Buffer {
  return Buffer.from(parse(eventId));
}

/** An event's id from its stored bytes. */
export function idOfBytes(bytes: Uint8Array | ArrayBuffer): string {
  return stringify(new Uint8Array(bytes));
}

/** Whether a text is an event's id: only UUIDs are stored. */
export function isEventId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
