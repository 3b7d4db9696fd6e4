import type { FileHandle } from 'node:fs/promises';
import { parseStored, type Received } from './received-event';

const NEWLINE = 0x0a;

/**
 * Reads a file of events, one JSON line each, and gives them to `onStored` in order. Returns the number of
 * bytes of whole lines.
 *
 * @throws Error that names a line that is neither an event nor marked as unknown. Skipping the line could let
 *   its event be processed twice.
 */
export async function readStoredEvents(
  file: FileHandle,
  path: string,
  onStored: (received: Received) => void,
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
      if (!event)
        throw new Error(`Line ${lineNumber} of ${path} is not an event. Correct it, or remove the line.`);
      onStored(event);
      rest = rest.subarray(end + 1);
      size += end + 1;
    }
  }
  return size;
}
