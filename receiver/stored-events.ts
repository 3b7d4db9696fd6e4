import type { FileHandle } from 'node:fs/promises';
import { parseStored, type Received } from './received-event';

const NEWLINE = 0x0a;
/** `{`, with which each line begins. */
const BRACE = 0x7b;

/** What a file of events ends with. */
type End = 'whole line' | 'without newline' | 'incomplete line' | 'of no events file';

/**
 * Reads a file of events, one JSON line each, and gives them to `onStored` in order. A whole line that is
 * neither an event nor marked as unknown is skipped; `onDamaged` gets its number.
 *
 * @returns the number of bytes up to the last event or damaged line, and what the file ends with. It is of no
 *   events file if it has lines or text, and no event.
 */
export async function readStoredEvents(
  file: FileHandle,
  {
    onStored,
    onDamaged,
  }: { onStored: (received: Received) => void; onDamaged: (lineNumber: number) => void },
): Promise<{ size: number; end: End }> {
  let rest: Buffer = Buffer.alloc(0);
  let size = 0;
  let events = 0;
  let lineNumber = 0;
  const take = (line: Buffer): boolean => {
    const event = parseStored(line);
    if (event) onStored(event);
    if (event) events += 1;
    return event !== undefined;
  };
  const chunks = file.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>;
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      lineNumber += 1;
      if (!take(rest.subarray(0, end))) onDamaged(lineNumber);
      rest = rest.subarray(end + 1);
      size += end + 1;
    }
  }
  if (rest.length > 0 && take(rest)) return { size: size + rest.length, end: 'without newline' };
  const isForeign = lineNumber > 0 || (rest.length > 0 && rest[0] !== BRACE);
  if (events === 0 && isForeign) return { size, end: 'of no events file' };
  return { size, end: rest.length > 0 ? 'incomplete line' : 'whole line' };
}
