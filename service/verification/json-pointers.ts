import { RequestError } from '../base/errors';
import { pointerStep } from '../base/json-pointer';

const MOST_SHOWN = 12;

/**
 * Checks the pointers (RFC 6901) that a holder wants to disclose: each must name a disclosable part of the
 * credential.
 *
 * The cryptosuite does not check this. It finds inherited members (`/constructor`), reads "20ft" as the index
 * 20, and fails at null without naming the pointer.
 *
 * @throws RequestError POINTER_INVALID, or POINTER_MATCHES_NOTHING with similar names.
 */
export function checkPointers(document: object, pointers: readonly string[]): void {
  for (const pointer of pointers) checkPointer(document, pointer);
}

function checkPointer(document: object, pointer: string): void {
  if (pointer !== '' && !pointer.startsWith('/')) throw invalid(pointer, 'it must begin with "/"');
  if (/~(?![01])/.test(pointer)) throw invalid(pointer, '"~" must be written "~0", and "/" in a name "~1"');
  const tokens = pointer.split('/').slice(1);
  if (tokens[0] === '@context' || tokens[0] === 'proof')
    throw invalid(pointer, 'the contexts and the proof are always there');
  let value: unknown = document;
  let parent = '';
  for (const token of tokens) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    const members = membersOf(value);
    if (!members.has(name)) throw matchesNothing(pointer, parent, [...members.keys()], token);
    if (!Array.isArray(value) && !Number.isNaN(parseInt(name, 10)))
      throw invalid(
        pointer,
        `a name that begins with a digit cannot be selected: disclose "${parent}" as a whole`,
      );
    value = members.get(name);
    parent = `${parent}/${token}`;
  }
  if (value === null) throw invalid(pointer, 'it is null, which is not signed');
}

/** Own members only. The members of an array are named by index. */
function membersOf(value: unknown): Map<string, unknown> {
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : []);
}

function matchesNothing(pointer: string, parent: string, names: string[], wanted: string): RequestError {
  const near = names.sort((a, b) => unlike(a, wanted) - unlike(b, wanted)).slice(0, MOST_SHOWN);
  const more = names.length > near.length ? `, and ${names.length - near.length} more` : '';
  const remedy =
    near.length === 0
      ? `There is nothing inside "${parent}".`
      : `Its members: ${near.map((name) => parent + pointerStep(name)).join(', ')}${more}.`;
  const message = `The pointer ${pointer} matches nothing in the credential. ${remedy}`;
  return new RequestError('POINTER_MATCHES_NOTHING', message, { remedy });
}

/** Distance between two names: the number of letter pairs that only one of them has. */
function unlike(a: string, b: string): number {
  const [of, other] = [pairsOf(a), pairsOf(b)];
  const common = [...of].filter((pair) => other.has(pair)).length;
  return of.size + other.size - 2 * common;
}

function pairsOf(name: string): Set<string> {
  const text = ` ${name.toLowerCase()}`;
  return new Set(Array.from({ length: text.length - 1 }, (_, index) => text.slice(index, index + 2)));
}

function invalid(pointer: string, problem: string): RequestError {
  return new RequestError('POINTER_INVALID', `The pointer "${pointer}" cannot be disclosed: ${problem}.`);
}
