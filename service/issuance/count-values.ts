const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** What stands before a value: the beginning of a list or an object, or a comma. */
const OPENERS = new Set(Buffer.from('[{,'));

/**
 * How many values a JSON text has at the most, without parsing it: what parsing it costs in memory depends on
 * their number, and not on the length of the text alone. Strings are passed over, whatever is in them.
 */
export function countValues(json: Uint8Array): number {
  const text = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] ?? 0;
    if (byte === QUOTE) at = endOfString(text, at);
    else if (OPENERS.has(byte)) values += 1;
  }
  return values;
}

/**
 * The quote that ends the string which begins at `start`: one with an even number of backslashes before it.
 */
function endOfString(text: Buffer, start: number): number {
  for (let end = text.indexOf(QUOTE, start + 1); end !== -1; end = text.indexOf(QUOTE, end + 1)) {
    let before = end - 1;
    while (text[before] === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}
