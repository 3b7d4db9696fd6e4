import * as z from 'zod';
import { json, type Answer, type AnswerHeader } from './operation';

// The parameters and the header of paths that list things page by page.

const LIMIT = { least: 1, most: 100, ifAbsent: 50 };

/** A parameter that is a whole number within bounds. */
export function wholeNumber({ least, most, ifAbsent }: typeof LIMIT) {
  const wrong = { error: `must be a whole number from ${least} to ${most}` };
  return z
    .preprocess(
      (text) => (typeof text === 'string' && /^\d{1,4}$/.test(text) ? Number(text) : text),
      z.int(wrong).min(least, wrong).max(most, wrong),
    )
    .default(ifAbsent);
}

/** The parameter `limit`. */
export const PAGE_LIMIT = wholeNumber(LIMIT).describe(
  `The largest number of entries on a page; ${LIMIT.ifAbsent} if absent.`,
);

/** The parameter `after`: the position that the page before was linked with. The router opens it. */
export function position<Position>() {
  return z
    .string()
    .transform((text) => JSON.parse(text) as Position)
    .optional()
    .describe('The place where the next page begins, from the header `Link` of the page before.');
}

/** The header of an answer that made something. */
export function located(example: string): Record<'Location', AnswerHeader> {
  return { Location: { description: 'Its path.', example } };
}

/** @param next the path of another page. */
export function page(description: string, schema: z.ZodType, next: string): Answer {
  const Link = {
    description: 'The path of the next page, with `rel="next"`. Absent on the last page.',
    example: `<${next}&limit=${LIMIT.ifAbsent}>; rel="next"`,
  };
  return json(description, schema, { headers: { Link } });
}
