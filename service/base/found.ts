/** The kind of a wrong value, for the end of a sentence: it may be missing, or too long to be shown. */
export function found(value: unknown): string {
  if (value === undefined) return 'but it is missing';
  if (value === null) return 'but it is null';
  if (Array.isArray(value)) return 'but it is an array';
  return `but it is ${typeof value === 'object' ? 'an object' : `a ${typeof value}`}`;
}
