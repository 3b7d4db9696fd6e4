import { emptinessOf, isJsonObject, type JsonObject } from '../issuance/credential';
import { unprotectedContentIn } from '../issuance/unprotected-content';
import { jsonLdProblems } from './json-ld-problems';
import { shapeProblems } from './shape-problems';
import { pointerStep } from '../base/json-pointer';
import type { SubjectProblem } from './subject-problem';

const REQUIRED_FIELDS = ['blNumber', 'scac'];

/**
 * Validates a Bill of Lading's credentialSubject strictly: the JSON Schema, the three code checks, the terms
 * and their types, and everything that signing would refuse. Returns all problems; without any, the subject
 * is complete and can be signed. It is meant for authors: the create endpoint only checks what signing needs.
 */
export async function validateBillOfLading(credentialSubject: unknown): Promise<SubjectProblem[]> {
  if (credentialSubject === undefined || credentialSubject === null)
    return [{ pointer: '', code: 'SUBJECT_MISSING', message: 'Missing credentialSubject' }];
  const shape = shapeProblems(credentialSubject);
  if (!isJsonObject(credentialSubject)) return shape;
  const checks = [...typeProblems(credentialSubject), ...fieldProblems(credentialSubject)];
  // Problems that a code check reports are left out of the schema's.
  const others = shape.filter(({ code, pointer }) => {
    return code !== 'REQUIRED_FIELD_MISSING' || !checks.some((check) => check.pointer === pointer);
  });
  const empty = emptinessOf(credentialSubject);
  const unprotected = [...unprotectedContentIn(credentialSubject)].filter(
    ({ pointer }) => !shape.some((told) => told.pointer === pointer),
  );
  const meaning = await jsonLdProblems(wellFormedPart(credentialSubject, shape));
  const ofSigning = [...(empty ? [{ ...empty, pointer: '' }] : []), ...unprotected];
  return [...checks, ...others, ...ofSigning.map(problemOf), ...meaning];
}

function typeProblems({ type }: JsonObject): SubjectProblem[] {
  const types: unknown[] = Array.isArray(type) ? type : [type];
  if (types.includes('BillOfLading')) return [];
  return [{ pointer: '/type', code: 'TYPE_NOT_BILL_OF_LADING', message: 'Missing type BillOfLading' }];
}

function fieldProblems(subject: JsonObject): SubjectProblem[] {
  return REQUIRED_FIELDS.filter((field) => !Object.hasOwn(subject, field) || !subject[field]).map(
    (field) => ({
      pointer: pointerStep(field),
      code: 'REQUIRED_FIELD_MISSING',
      message: 'Missing required BillOfLading fields',
    }),
  );
}

function problemOf({
  pointer,
  code,
  problem,
}: {
  pointer: string;
  code: SubjectProblem['code'];
  problem: string;
}): SubjectProblem {
  return { pointer, code, message: `${problem[0]?.toUpperCase() ?? ''}${problem.slice(1)}` };
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
