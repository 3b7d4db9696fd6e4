/** A name or an index as a step of a JSON pointer (RFC 6901, section 3). */
export function pointerStep(name: string | number): string {
  return `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The position of a value in a body: names of members, and indexes. */
export type Path = readonly PropertyKey[];

/** Characters shown of a name in a pointer. It may be as long as the body. */
const LONGEST_SHOWN = 256;

/** The JSON pointer of a path, for a message. Very long names are cut. */
export function pointerOf(path: Path): string {
  return path.map((step) => pointerStep(shown(String(step)))).join('');
}

function shown(name: string): string {
  return name.length > LONGEST_SHOWN ? `${name.slice(0, LONGEST_SHOWN)}…` : name;
}
