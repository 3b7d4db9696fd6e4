const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** The characters that precede a value: the start of a list or an object, or a comma. */
const OPENERS = new Set(Buffer.from('[{,'));

/**
 * An upper bound for the number of values in a JSON text, without parsing it. The memory that parsing takes
 * depends on that number, not only on the length of the text. Characters inside strings are skipped.
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
 * Index of the quote that ends the string starting at `start`: the first with an even number of backslashes
 * before it.
 */
function endOfString(text: Buffer, start: number): number {
  for (let end = text.indexOf(QUOTE, start + 1); end !== -1; end = text.indexOf(QUOTE, end + 1)) {
    let before = end - 1;
    while (text[before] === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}
