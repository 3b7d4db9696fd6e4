import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../../service/base/project-root';

/** A part of a document: the text between a heading and the next one of any level. */
export interface Section {
  heading: string;
  text: string;
}

/** A document in Markdown. */
export interface MarkdownDocument {
  sections: readonly Section[];
  /** The section under this heading; throws when there is none. */
  section(this: void, heading: string): Section;
  /** The first code block of this language under this heading. */
  code(this: void, heading: string, language: string): string;
}

/** Reads a document of this project, by the path from its root. */
export function readDocument(path: string): MarkdownDocument {
  const sections = sectionsOf(readFileSync(join(PROJECT_ROOT, path), 'utf8'));
  const section = (heading: string): Section => {
    const found = sections.find((one) => one.heading === heading);
    if (!found) throw new Error(`${path} has no heading "${heading}"`);
    return found;
  };
  const code = (heading: string, language: string): string => {
    const [first] = codeBlocks(section(heading), language);
    if (first === undefined) throw new Error(`${path} has no ${language} under "${heading}"`);
    return first;
  };
  return { sections, section, code };
}

/** Lines in code that begin with # are no headings. */
function sectionsOf(text: string): Section[] {
  const sections: Section[] = [{ heading: '', text: '' }];
  let inCode = false;
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) inCode = !inCode;
    const heading = inCode ? undefined : /^#+ (.*)$/.exec(line)?.[1];
    if (heading !== undefined) sections.push({ heading, text: '' });
    else sections[sections.length - 1]!.text += `${line}\n`;
  }
  return sections;
}

/** The text of every code block of this language. */
export function codeBlocks({ text }: Section, language: string): string[] {
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].flatMap(([, name, code]) =>
    name === language && code !== undefined ? [code] : [],
  );
}

/** The rows of each table, cell by cell, without its head. */
export function tables({ text }: Section): string[][][] {
  return [...text.matchAll(/(?:^\|.*\n)+/gm)].map(([table]) =>
    table
      .trimEnd()
      .split('\n')
      .slice(2)
      .map((row) =>
        row
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      ),
  );
}

/** The texts in backticks. */
export function quoted(text: string): string[] {
  return [...text.matchAll(/`([^`]*)`/g)].map(([, word]) => word ?? '');
}

/** The rows of the tables of docs/error-codes.md, as lines. */
export function errorCodeRows(): string[] {
  const page = readFileSync(join(PROJECT_ROOT, 'docs/error-codes.md'), 'utf8');
  return page.split('\n').filter((line) => line.startsWith('| '));
}

/** The codes that docs/error-codes.md lists. */
export function listedCodes(): Set<string> {
  return new Set(
    errorCodeRows().flatMap((row) => (row.split('|')[1] ?? '').split(',').map((code) => code.trim())),
  );
}
