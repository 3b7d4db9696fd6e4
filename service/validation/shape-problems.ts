import { Ajv2020, type ErrorObject } from 'ajv/dist/2020';
import { BILL_OF_LADING_SCHEMA, readContextFile } from '../base/published-files';
import { pointerStep } from '../base/json-pointer';
import type { SubjectProblem } from './subject-problem';
import { SUBJECT_TERMS } from '../issuance/subject-terms';

const published = JSON.parse(readContextFile(BILL_OF_LADING_SCHEMA).toString('utf8')) as object;
// A subject that is not an object has no terms; only the published schema reports it.
const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false });
/**
 * The published schema accepts other terms, and other types of most terms; for an author they are most likely
 * mistakes. It says itself what `type`, `scac` and `blNumber` are.
 */
const TERMS_SCHEMA = {
  additionalProperties: false,
  properties: { ...SUBJECT_TERMS, type: true, scac: true, blNumber: true },
};
const checks = [ajv.compile(published), ajv.compile(TERMS_SCHEMA)];

/** Returns every violation of the published schema, every unknown term and every wrong type. */
export function shapeProblems(subject: unknown): SubjectProblem[] {
  return checks.flatMap((check) => (check(subject) ? [] : (check.errors ?? []).map(problemOf)));
}

function problemOf({ keyword, instancePath, params, message }: ErrorObject): SubjectProblem {
  const named = params as { additionalProperty?: string; missingProperty?: string; type?: string };
  if (named.additionalProperty !== undefined) {
    const name = named.additionalProperty;
    const text = `${JSON.stringify(name)} is not a term that a Bill of Lading has here`;
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

function withArticle(type: string): string {
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;
}
