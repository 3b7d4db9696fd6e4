/**
 * About how many characters the statements (N-Quads) about a subject have, the vocabulary's own left out.
 * Signing holds them several times over, and they can be far longer than the JSON: each statement names its
 * subject, and DEL, one character here, has six there.
 *
 * @param value a subject that findUnprotectedContent has seen, which is not too deep.
 * @param named the length of the id of what the value is said of.
 */
export function statementsLength(value: unknown, named = 0): number {
  if (typeof value === 'string') return named + value.length + 5 * countOf(value, '\u007f');
  if (typeof value !== 'object' || value === null) return named;
  const own = 'id' in value && typeof value.id === 'string' ? value.id.length : 0;
  const inside = Array.isArray(value) ? named : own;
  let length = named + own;
  for (const each of Object.values(value)) length += statementsLength(each, inside);
  return length;
}

function countOf(text: string, character: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) count += 1;
  return count;
}
