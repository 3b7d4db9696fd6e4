import { pointerOf, problemsOf } from '../base/json';
import { CREATE_REQUEST } from '../issuance/create-request';
import { isJsonObject, type JsonObject } from '../issuance/credential';
import { MOST_REMARK_BYTES } from '../issuance/remarks';
import { jsonLdProblems } from './json-ld-problems';
import { shownOf, type RequestProblem, type Validation } from './problems';
import { validateBillOfLading } from './validate-bill-of-lading';

const SUBJECT = '/credentialSubject';

/** Codes of a subject's problems for which POST /create refuses it. */
const REFUSED = [
  ...['SUBJECT_EMPTY', 'SUBJECT_TERM_UNDEFINED', 'TEXT_NOT_PROTECTED', 'SUBJECT_VALUE_INVALID'],
  'BODY_TOO_COMPLEX',
];

/** Checks a request as POST /create does, and its subject as strictly as an author may want. */
export async function validateRequest(body: JsonObject): Promise<Validation> {
  const { credentialSubject, remarks } = body;
  const problems = isJsonObject(credentialSubject) ? await subjectProblems(credentialSubject) : [];
  const remarkBytes = typeof remarks === 'string' ? Buffer.byteLength(remarks) : 0;
  if (remarkBytes > MOST_REMARK_BYTES) {
    const message = `Has ${remarkBytes} bytes in UTF-8. The contract takes at most ${MOST_REMARK_BYTES}.`;
    problems.push({ pointer: '/remarks', code: 'REMARK_TOO_LONG', message, isRefused: true });
  }
  const shown = shownOf([...shapeProblems(body), ...problems]);
  return { problems: shown, remarkBytes, mostRemarkBytes: MOST_REMARK_BYTES };
}

function shapeProblems(body: JsonObject): RequestProblem[] {
  const { error } = CREATE_REQUEST.safeParse(body);
  return (error ? problemsOf(error) : []).map(({ path, problem }) => ({
    pointer: pointerOf(path),
    code: 'REQUEST_FIELD_INVALID',
    message: `${problem.charAt(0).toUpperCase()}${problem.slice(1)}`,
    isRefused: true,
  }));
}

async function subjectProblems(subject: JsonObject): Promise<RequestProblem[]> {
  const problems = await validateBillOfLading(subject);
  // The strict validation leaves terms out that it has reported, so it does not say what signing thinks of
  // them.
  const refused = (await jsonLdProblems(subject)).map(({ pointer }) => pointer);
  return problems.map(({ code, pointer, message }) => {
    const isOfType = code === 'TYPE_NOT_BILL_OF_LADING' && refused.length > 0;
    const isRefused = REFUSED.includes(code) || isOfType || ['', pointer].some((at) => refused.includes(at));
    return { code, message, pointer: SUBJECT + pointer, isRefused };
  });
}
