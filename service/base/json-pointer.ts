/** A name or an index as a step of a JSON pointer (RFC 6901, section 3). */
export function pointerStep(name: string | number): string {
  return `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
