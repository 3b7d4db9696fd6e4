import { Ajv2020, type ErrorObject } from 'ajv/dist/2020';
import { BILL_OF_LADING_SCHEMA, readContextFile } from '../base/published-files';
import { cut } from '../base/errors';
import { emptinessOf, isJsonObject, type JsonObject } from '../issuance/credential';
import { SUBJECT_TERMS } from '../issuance/create-request';
import { unprotectedContentIn } from '../issuance/unprotected-content';
import { pointerStep, sharedPairs } from '../base/json';
import { jsonLdProblems } from './json-ld-problems';
import { capitalised, type SubjectProblem } from './problems';

const REQUIRED_FIELDS = ['blNumber', 'scac'];
const NOT_BASE64 =
  'Must be base64 with its padding, without "data:…;base64," before it, line ends or spaces: ' +
  'the public portal shows no other attachment';

const published = JSON.parse(readContextFile(BILL_OF_LADING_SCHEMA).toString('utf8')) as object;
// A subject that is not an object has no terms; only the published schema reports it. `verbose`: an error has
// the schema, and so the terms.
const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false, verbose: true });
/**
 * The published schema accepts other terms, and other types of most terms; for an author they are most likely
 * mistakes. It says itself what `type`, `scac` and `blNumber` are.
 */
const TERMS_SCHEMA = {
  additionalProperties: false,
  properties: { ...SUBJECT_TERMS, type: true, scac: true, blNumber: true },
};
const ofPublished = ajv.compile(published);
const ofTerms = ajv.compile(TERMS_SCHEMA);

/**
 * Validates a Bill of Lading's credentialSubject strictly: the JSON Schema, the three code checks, the terms
 * and their types, and everything that signing would refuse. Returns all problems; without any, the subject
 * is complete and can be signed. It is meant for authors: the create endpoint only checks what signing needs.
 *
 * @param own the context of the issuer's own, which decides alone which terms there are.
 */
export async function validateBillOfLading(
  credentialSubject: unknown,
  own?: JsonObject,
): Promise<SubjectProblem[]> {
  if (credentialSubject === undefined || credentialSubject === null)
    return [{ pointer: '', code: 'SUBJECT_MISSING', message: 'Missing credentialSubject' }];
  const checks = own === undefined ? [ofPublished, ofTerms] : [ofPublished];
  const shape = checks.flatMap((check) =>
    check(credentialSubject) ? [] : (check.errors ?? []).map(shapeProblem),
  );
  if (!isJsonObject(credentialSubject)) return shape;
  const coded = codeProblems(credentialSubject);
  // Problems that a code check reports are left out of the schema's.
  const others = shape.filter(({ code, pointer }) => {
    return code !== 'REQUIRED_FIELD_MISSING' || !coded.some((told) => told.pointer === pointer);
  });
  const empty = emptinessOf(credentialSubject);
  const unprotected = [...unprotectedContentIn(credentialSubject, 'part')].filter(
    ({ pointer }) => !shape.some((told) => told.pointer === pointer),
  );
  const meaning = await jsonLdProblems(wellFormedPart(credentialSubject, shape), own);
  const ofSigning = [...(empty ? [{ ...empty, pointer: '' }] : []), ...unprotected].map(
    ({ pointer, code, problem }) => ({ pointer, code, message: capitalised(problem) }),
  );
  return [...coded, ...others, ...unreadableAttachments(credentialSubject), ...ofSigning, ...meaning];
}

/** The checks of docs/contexts.md that no schema states. */
function codeProblems(subject: JsonObject): SubjectProblem[] {
  const types: unknown[] = [subject.type].flat();
  const missing = REQUIRED_FIELDS.filter((field) => isBlank(subject[field]));
  const problems: SubjectProblem[] = missing.map((field) => ({
    pointer: pointerStep(field),
    code: 'REQUIRED_FIELD_MISSING',
    message: 'Missing required BillOfLading fields',
  }));
  if (types.includes('BillOfLading')) return problems;
  const type = { pointer: '/type', code: 'TYPE_NOT_BILL_OF_LADING' as const };
  return [{ ...type, message: 'Missing type BillOfLading' }, ...problems];
}

function isBlank(value: unknown): boolean {
  return typeof value === 'string' ? value.trim() === '' : !value;
}

/**
 * Attachments whose data is not base64 as encoders write it (RFC 4648, section 4). The public portal compares
 * the data with its own encoding. It shows no other attachment.
 */
function unreadableAttachments({ attachments }: JsonObject): SubjectProblem[] {
  const list: unknown[] = Array.isArray(attachments) ? attachments : [];
  return list.flatMap((attachment, index) => {
    const data = isJsonObject(attachment) ? attachment.data : undefined;
    if (typeof data !== 'string' || Buffer.from(data, 'base64').toString('base64') === data) return [];
    const pointer = `/attachments/${index}/data`;
    return [{ pointer, code: 'ATTACHMENT_NOT_BASE64', message: NOT_BASE64 }];
  });
}

function shapeProblem({ keyword, instancePath, params, message, parentSchema }: ErrorObject): SubjectProblem {
  const named = params as { additionalProperty?: string; missingProperty?: string; type?: string };
  if (named.additionalProperty !== undefined) {
    const name = named.additionalProperty;
    const near = nearTo(name, Object.keys((parentSchema as { properties: object }).properties));
    const hint = near.length === 0 ? '' : `; did you mean ${near.join(', ')}?`;
    const text = `${JSON.stringify(name)} is not a term that a Bill of Lading has here${hint}`;
    return { pointer: instancePath + pointerStep(name), code: 'TERM_UNKNOWN', message: text };
  }
  if (named.missingProperty !== undefined) {
    const pointer = instancePath + pointerStep(named.missingProperty);
    return { pointer, code: 'REQUIRED_FIELD_MISSING', message: `Missing ${named.missingProperty}` };
  }
  const text =
    keyword === 'type' ? `Must be ${withArticle(String(named.type))}` : `Schema: ${message ?? keyword}`;
  return { pointer: instancePath, code: 'VALUE_TYPE_WRONG', message: text };
}

/** The terms that have most pairs of letters of a name. */
function nearTo(name: string, terms: string[]): string[] {
  const wanted = cut(name, 40);
  return terms.filter((term) => sharedPairs(term, wanted) > 0.6 * wanted.length);
}

function withArticle(type: string): string {
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;
}

/**
 * Returns the subject without its faulty properties, and with the type that defines the terms. It has no
 * unknown terms and a limited depth, so JSON-LD repeats no problem and does not overflow the stack.
 */
function wellFormedPart(subject: JsonObject, problems: readonly SubjectProblem[]): JsonObject {
  const faulty = new Set(problems.map(({ pointer }) => pointer.split('/')[1] ?? ''));
  const sound = Object.fromEntries(
    Object.entries(subject).filter(([key]) => !faulty.has(pointerStep(key).slice(1))),
  );
  const types = (sound.type ?? []) as string[];
  return { ...sound, type: types.includes('BillOfLading') ? types : [...types, 'BillOfLading'] };
}
