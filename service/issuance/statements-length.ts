/**
 * The approximate number of characters of the statements (N-Quads) about a subject, without the IRIs of the
 * vocabulary. Signing holds the statements several times, and they can be far longer than the JSON: each
 * repeats its subject's id, and DEL, one character in JSON, takes six.
 *
 * @param value a subject that findUnprotectedContent has checked, so it is not too deep.
 * @param named the length of the id of the object that has this value.
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
