import type { FileHandle } from 'node:fs/promises';
import { parseStored, type Received } from './received-event';

const NEWLINE = 0x0a;

/**
 * Reads a file of events, one JSON line each, and gives them to `onStored` in order. A whole line that is
 * neither an event nor marked as unknown is skipped; `onDamaged` gets its number. Returns the number of bytes
 * of whole lines.
 */
export async function readStoredEvents(
  file: FileHandle,
  onStored: (received: Received) => void,
  onDamaged: (lineNumber: number) => void,
): Promise<number> {
  let rest: Buffer = Buffer.alloc(0);
  let size = 0;
  let lineNumber = 0;
  const chunks = file.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>;
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      lineNumber += 1;
      const event = parseStored(rest.subarray(0, end));
      if (event) onStored(event);
      else onDamaged(lineNumber);
      rest = rest.subarray(end + 1);
      size += end + 1;
    }
  }
  return size;
}
