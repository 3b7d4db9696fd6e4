import { z } from 'zod';
import { found } from './found';
import type { Path } from './json-pointer';

/** The message of a schema: what its value must be, what was found instead of its type, and the remedy. */
export const must =
  (be: string, remedy: string) =>
  ({ code, input }: { code?: string; input?: unknown }): string =>
    `must be ${be}${code === 'invalid_type' || input === undefined ? `, ${found(input)}` : ''}. ${remedy}`;

/**
 * Whether a text has no half of a surrogate pair. JSON can write one, but UTF-8 cannot: it would become
 * U+FFFD.
 */
export function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/** An object without other members. `refused`: reasons why members that callers may expect do not exist. */
export function members<Shape extends z.ZodRawShape>(
  name: string,
  shape: Shape,
  refused: Readonly<Record<string, string>> = {},
) {
  const names = Object.keys(shape).join(', ');
  const isNoObject = must('an object', `Its members are ${names}.`);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return isNoObject(issue);
      const reason = Object.entries(refused).find(([member]) => member === issue.keys[0])?.[1];
      return reason ?? `is not a member of ${name}. Leave it out, or write one of ${names}.`;
    },
  });
}

/** All problems of a body. An unknown name has a problem of its own. */
export function problemsOf({ issues }: z.ZodError): { path: Path; problem: string }[] {
  return issues.flatMap(({ path, message, ...issue }) => {
    const names = issue.code === 'unrecognized_keys' ? issue.keys : [undefined];
    return names.map((name) => ({ path: name === undefined ? path : [...path, name], problem: message }));
  });
}

/** The first problem of a body. Unknown names come first: a misspelt name explains why another is missing. */
export function firstProblemOf({ issues }: z.ZodError): { path: Path; problem: string } {
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  const member = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  return { path: [...(issue?.path ?? []), ...member], problem: issue?.message ?? 'is wrong.' };
}
