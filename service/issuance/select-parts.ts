import type { JsonObject } from './credential';

/** The names and indexes of a JSON pointer (RFC 6901). */
export function tokensOf(pointer: string): string[] {
  const steps = pointer.split('/').slice(1);
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Whether a pointer matches a part of the document that is signed: null is not. */
export function isPart(document: JsonObject, pointer: string): boolean {
  let part: unknown = document;
  for (const name of tokensOf(pointer))
    part = typeof part === 'object' && part !== null ? new Map(Object.entries(part)).get(name) : undefined;
  return part !== undefined && part !== null;
}

/** The disclosed parts of a document, by names and indexes. */
type Selection = 'all' | Map<string, Selection>;

/**
 * Selects parts of a document by JSON pointers (RFC 6901), with the contexts, the ids and the types of each
 * object on the way. A pointer that matches nothing selects nothing.
 */
export function selectParts(document: JsonObject, pointers: readonly string[]): JsonObject {
  return select(document, selectionOf(pointers.map(tokensOf))) as JsonObject;
}

function selectionOf(paths: readonly (readonly string[])[]): Selection {
  if (paths.some((path) => path.length === 0)) return 'all';
  const names = new Set(paths.map(([name = '']) => name));
  const within = (name: string): string[][] =>
    paths.filter(([first]) => first === name).map((path) => path.slice(1));
  return new Map([...names].map((name) => [name, selectionOf(within(name))]));
}

/** The names that are kept, whole, of each object on the way to a selected part. */
const KEPT = ['@context', '@id', '@type', 'id', 'type'];

function select(value: unknown, selection: Selection): unknown {
  if (selection === 'all' || typeof value !== 'object' || value === null) return value;
  const isKept = (name: string): boolean => !Array.isArray(value) && KEPT.includes(name);
  const inner = ([name, member]: [string, unknown]): unknown =>
    select(member, isKept(name) ? 'all' : (selection.get(name) ?? 'all'));
  const selected = (Object.entries(value) as [string, unknown][]).filter(
    ([name]) => selection.has(name) || isKept(name),
  );
  if (Array.isArray(value)) return selected.map(inner);
  return Object.fromEntries(selected.map((member) => [member[0], inner(member)]));
}
