import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020';
import { openApi } from '../../client/description/openapi';
import { addViolation } from './violations';

/** Larger bodies are not read again. */
const MOST_BYTES = 1024 * 1024;

interface Described {
  $ref?: string;
  headers?: Record<string, { schema?: { enum?: string[] } }>;
  content?: Record<string, unknown>;
}

interface Api {
  paths: Record<string, Record<string, { responses: Record<string, Described> }>>;
  components: { responses: Record<string, Described> };
}

/** An answer of the service. */
export interface Arrived {
  method: string;
  path: string;
  status: number;
  headers: Pick<Headers, 'get'>;
  /** Undefined if it is not checked. */
  body: string | undefined;
}

/** Statuses of answers that no operation gives: to unknown paths and methods, and to malformed requests. */
const ELSEWHERE = [400, 404, 405, 408, 431];

const unchecked = new Set<string>();

/** The answers at this address come from parts that a test made up. */
export function leaveUnchecked(url: string): void {
  unchecked.add(new URL(url).origin);
}

/** Compares answers with `GET /openapi.json`. */
class Description {
  readonly #api = openApi() as unknown as Api;
  readonly #ajv = new Ajv2020({
    strict: false,
    validateFormats: false,
    validateSchema: false,
    code: { optimize: false },
  });
  readonly #validators = new Map<string, ValidateFunction>();

  constructor() {
    this.#ajv.addSchema(this.#api, 'api');
  }

  /** The difference between an answer and its description; undefined if there is none. */
  problemOf({ method, path, status, headers, body }: Arrived): string | undefined {
    const code = headers.get('X-Error-Code');
    // The refusals of a session are for the console's page: programs send a key.
    if (code?.startsWith('CONSOLE_')) return undefined;
    const asked = method === 'HEAD' ? 'get' : method.toLowerCase();
    const template = this.#templateOf(path);
    const answers = template === undefined ? undefined : this.#api.paths[template]?.[asked]?.responses;
    if (template === undefined || answers === undefined)
      return ELSEWHERE.includes(status) && code !== null ? undefined : 'it is not described';
    const given = answers[status];
    if (given === undefined) return 'the status is not described';
    const pointer = given.$ref?.slice(2).split('/') ?? ['paths', template, asked, 'responses', `${status}`];
    const answer = given.$ref === undefined ? given : this.#api.components.responses[pointer.at(-1) ?? ''];
    const codes = answer?.headers?.['X-Error-Code']?.schema?.enum;
    if (codes && !codes.includes(String(code))) return `the code ${code} is not described`;
    if (method === 'HEAD' || body === undefined) return undefined;
    if (answer?.content === undefined) return body === '' ? undefined : 'its body is not described';
    const mediaType = String(headers.get('Content-Type')).split(';')[0] ?? '';
    if (!(mediaType in answer.content)) return `the media type ${mediaType} is not described`;
    if (!mediaType.includes('json')) return undefined;
    const validate = this.#validatorOf([...pointer, 'content', mediaType, 'schema']);
    return validate(JSON.parse(body))
      ? undefined
      : this.#ajv.errorsText(validate.errors, { dataVar: 'body' });
  }

  #templateOf(path: string): string | undefined {
    return Object.keys(this.#api.paths).find((template) => {
      const pattern = template.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+');
      return new RegExp(`^${pattern}/?$`, 'i').test(path);
    });
  }

  #validatorOf(path: readonly string[]): ValidateFunction {
    const pointer = path.map((step) => step.replaceAll('~', '~0').replaceAll('/', '~1')).join('/');
    const known = this.#validators.get(pointer);
    if (known) return known;
    const made = this.#ajv.compile({ $ref: `api#/${encodeURI(pointer)}` });
    this.#validators.set(pointer, made);
    return made;
  }
}

/** Made when the first answer is checked. */
let description: Description | undefined;

/** The difference between an answer and its description; undefined if there is none. */
export function undescribed(answer: Arrived): string | undefined {
  description ??= new Description();
  return description.problemOf(answer);
}

/**
 * Checks every answer that this process gets from a service. A test fails at its end if an answer has a
 * status, a code or, if `fetch` gets it, a member that the description does not have.
 */
export function checkAnswers(): void {
  checkFetched();
  subscribe('undici:request:headers', (message) => {
    const { request, response } = message as UndiciMessage;
    const fields = response.headers.map(String);
    const headers = new Headers();
    for (let at = 0; at < fields.length; at += 2) headers.append(fields[at] ?? '', fields[at + 1] ?? '');
    const { method, path, origin } = request;
    check(origin, path, { method, status: response.statusCode, headers });
  });
  subscribe('http.client.response.finish', (message) => {
    const { request, response } = message as { request: ClientRequest; response: IncomingMessage };
    const headers = new Headers();
    for (const [name, value] of Object.entries(response.headers)) headers.set(name, String(value));
    const { method, path } = request;
    check(`http://${String(request.getHeader('host'))}`, path, {
      method,
      status: response.statusCode ?? 0,
      headers,
    });
  });
}

interface UndiciMessage {
  request: { method: string; path: string; origin: string };
  /** `headers`: names and values in turn. */
  response: { statusCode: number; headers: Buffer[] };
}

function checkFetched(): void {
  const original = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const response = await original(input, init);
    const url = new URL(input instanceof Request ? input.url : input);
    const method = (init?.method ?? (input instanceof Request ? input.method : 'GET')).toUpperCase();
    if (isOfService(response.headers))
      check(url.origin, url.pathname, {
        method,
        status: response.status,
        headers: response.headers,
        body: await bodyOf(response),
      });
    return response;
  };
}

/** @param target path and query as they were sent. */
function check(
  origin: string,
  target: string,
  answer: Pick<Arrived, 'method' | 'status'> & { headers: Headers; body?: string | undefined },
): void {
  const { method, status, headers, body } = answer;
  if (!isOfService(headers) || method === 'OPTIONS' || unchecked.has(origin)) return;
  const [path = ''] = target.split('?');
  const problem = undescribed({ method, path, status, headers, body });
  if (problem !== undefined) addViolation(`${method} ${path} answered ${status}: ${problem}`, body);
}

/** Undefined if the body is long, or does not arrive. */
async function bodyOf(response: Response): Promise<string | undefined> {
  if (Number(response.headers.get('Content-Length') ?? 0) > MOST_BYTES) return undefined;
  return response
    .clone()
    .text()
    .catch(() => undefined);
}

/** Only the service exposes this header. Answers of the console do not: they are for its page alone. */
function isOfService(headers: Headers): boolean {
  return headers.get('Access-Control-Expose-Headers')?.includes('X-Error-Code') === true;
}
