import { BILL_OF_LADING } from '../../devnet/bill-of-lading';
import type { Facts, ValidateBody } from '../../service/console/views';
import type { RequestProblem } from '../../service/validation/problems';

export const EMPTY_PACKAGE = { packagesDescription: '', packagesWeight: '', packagesMeasurement: '' };

type Package = Readonly<typeof EMPTY_PACKAGE>;

export const PACKAGE_TERMS = Object.keys(EMPTY_PACKAGE) as (keyof Package)[];

/** A file in a document, its data in base64. */
export interface Attachment {
  filename: string;
  mimeType: string;
  data: string;
}

const EMPTY = {
  terms: {} as Readonly<Record<string, string>>,
  packages: [EMPTY_PACKAGE] as readonly Package[],
  attachments: [] as readonly Attachment[],
  owner: '',
  holder: '',
  remarks: '',
};

/** The content of the form. */
export type Draft = Readonly<typeof EMPTY>;

/** The limit of the service. */
export const MOST_BYTES = 50 * 1024 * 1024;

/** The content at first: on a local network a sample, so that a newcomer can issue at once. */
export function firstDraft({ network, accounts }: Facts): Draft {
  if (!network.isLocal) return EMPTY;
  const { packages, ...others } = BILL_OF_LADING;
  const terms = Object.entries(others).flatMap(([term, value]) =>
    typeof value === 'string' ? [[term, value] as const] : [],
  );
  // The first account deployed the registry, and issues.
  const owner = accounts[1] ?? '';
  return { ...EMPTY, terms: Object.fromEntries(terms), packages, owner, holder: owner };
}

/** The body of POST /create. Empty texts are left out. */
export function requestOf({ terms, packages, attachments, owner, holder, remarks }: Draft): ValidateBody {
  const rows = packages.map(filledIn).filter((row) => Object.keys(row).length > 0);
  return {
    credentialSubject: {
      type: ['BillOfLading'],
      ...filledIn(terms),
      ...(rows.length > 0 && { packages: rows }),
      ...(attachments.length > 0 && { attachments }),
    },
    owner: owner.trim(),
    holder: holder.trim(),
    remarks,
  };
}

/**
 * The same body for the check while somebody types, without the data of the files: each file has the number
 * of the first one with the same data instead, because a list may not have a value twice.
 */
export function checkedPart(draft: Draft): ValidateBody {
  const { attachments } = draft;
  const short = attachments.map(({ data, ...names }) => {
    const first = attachments.findIndex((other) => other.data === data);
    return { ...names, data: btoa(String(first)) };
  });
  return requestOf({ ...draft, attachments: short });
}

/** The bytes of the request. Base64 has one byte for each character. */
export function bytesOf(draft: Draft): number {
  const without = draft.attachments.map((attachment) => ({ ...attachment, data: '' }));
  const rest = new TextEncoder().encode(JSON.stringify(requestOf({ ...draft, attachments: without })));
  return draft.attachments.reduce((sum, { data }) => sum + data.length, rest.length);
}

/** The pointer of each row's package in the request; undefined if the row is empty, and so is left out. */
export function packagePointers(packages: readonly Package[]): (string | undefined)[] {
  let next = 0;
  return packages.map((row) =>
    Object.keys(filledIn(row)).length === 0 ? undefined : `/credentialSubject/packages/${next++}`,
  );
}

/** The pointers of all fields, beside which a problem can stand. */
export function fieldsOf(terms: readonly string[], packages: readonly Package[]): ReadonlySet<string> {
  const rows = packagePointers(packages).flatMap((pointer) =>
    pointer === undefined ? [] : PACKAGE_TERMS.map((term) => `${pointer}/${term}`),
  );
  return new Set([
    ...terms.map(pointerOfTerm),
    ...rows,
    ...['packages', 'attachments'].map(pointerOfTerm),
    ...['/owner', '/holder', '/remarks'],
  ]);
}

export function pointerOfTerm(term: string): string {
  return `/credentialSubject/${term}`;
}

function filledIn(texts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ''));
}

/** The place of problems that belong to no field of the form. */
export const WHOLE_FORM = '';

/**
 * Puts each problem beside its field. Fields are named by JSON pointers into the request. A problem belongs
 * to the field of its pointer, or to the nearest one around it.
 */
export function problemsByField(
  problems: readonly RequestProblem[],
  fields: ReadonlySet<string>,
): ReadonlyMap<string, readonly RequestProblem[]> {
  const found = new Map<string, RequestProblem[]>();
  for (const problem of problems) {
    const field = fieldOf(problem.pointer, fields);
    found.set(field, [...(found.get(field) ?? []), problem]);
  }
  return found;
}

function fieldOf(pointer: string, fields: ReadonlySet<string>): string {
  for (let around = pointer; around !== ''; around = around.slice(0, around.lastIndexOf('/')))
    if (fields.has(around)) return around;
  return WHOLE_FORM;
}

/** The service issues a document without these terms too. The form does not: nobody could use it. */
export function withRequired(problems: readonly RequestProblem[]): RequestProblem[] {
  return problems.map((problem) =>
    problem.code === 'REQUIRED_FIELD_MISSING'
      ? { ...problem, message: 'A Bill of Lading needs this.', isRefused: true }
      : problem,
  );
}

/**
 * The problem that a refusal names. Messages of the service begin with the pointer of what is wrong; others
 * concern the whole form.
 */
export function problemOfRefusal(code: string, message: string): RequestProblem {
  const pointer = /^\/\S*/.exec(message)?.[0] ?? WHOLE_FORM;
  return { pointer, code, message, isRefused: true };
}

/**
 * Codes with which the service refuses every request of the same bytes: nothing was issued, and the document
 * has to change. After any other failure, as of a proxy or of a session, an earlier request may have been
 * accepted, and the same is sent again.
 */
export const REFUSALS: ReadonlySet<string> = new Set([
  'BODY_NOT_JSON',
  'BODY_TOO_COMPLEX',
  'BODY_TOO_LARGE',
  'REMARK_TOO_LONG',
  'REQUEST_FIELD_INVALID',
  'SUBJECT_EMPTY',
  'SUBJECT_TERM_UNDEFINED',
  'SUBJECT_VALUE_INVALID',
  'TEXT_NOT_PROTECTED',
]);
