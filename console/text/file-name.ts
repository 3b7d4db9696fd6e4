/** Longest name without its ending. File systems allow 255 bytes, and a letter may take four. */
const LONGEST = 60;

/** Makes a stranger's text the name of a file: without folders, leading dots and special characters. */
export function jsonFileName(text: string): string {
  const safe = text
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}._-]+/gu, '_')
    .replace(/^[._-]+/, '');
  return `${[...safe].slice(0, LONGEST).join('') || 'document'}.json`;
}
