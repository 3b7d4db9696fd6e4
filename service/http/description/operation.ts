import * as z from 'zod';
import explained from './explained-codes.json';

/** A code of the header X-Error-Code. */
export type ErrorCode = keyof typeof explained;

/**
 * The reason of each error of the API, and the remedy. Markdown, in half sentences. docs/error-codes.md has
 * the same, and the codes of the log and of the commands besides.
 */
export const ERROR_CODES = explained as Readonly<Record<ErrorCode, ExplainedCode>>;

interface ExplainedCode {
  readonly why: string;
  readonly remedy?: string;
  /** For a 500: the one who has to act. `nobody`: send the request again later. By default the operator. */
  readonly actor?: 'caller' | 'nobody';
}

/** A part of an OpenAPI document or a JSON Schema. */
export type Json = Readonly<Record<string, unknown>>;

/** Chapters of the description. */
export type Tag =
  | 'Documents'
  | 'Tokens'
  | 'Credentials'
  | 'Subscriptions'
  | 'Deliveries and events'
  | 'Registries'
  | 'Discovery'
  | 'Health and metrics'
  | 'Webhooks';

/** A header of an answer. */
export interface AnswerHeader {
  description: string;
  example: string;
}

/** An answer that is not an error. */
export interface Answer {
  description: string;
  /** Absent: no body. */
  content?: {
    /** Several: the answer has one of them. */
    mediaType: string | readonly string[];
    schema: z.ZodType;
    examples?: Readonly<Record<string, unknown>>;
  };
  headers?: Readonly<Record<string, AnswerHeader>>;
}

/** A JSON body. `small`: at most 64 KB, read before the route is called; `document`: up to 50 MB. */
export interface Body {
  kind: 'small' | 'document';
  schema: z.ZodType;
  /** By name. A test sends each of them. */
  examples: Readonly<Record<string, object>>;
}

/**
 * An operation of the HTTP API: one method of one path. The router checks requests by it, and
 * `GET /openapi.json` describes it, so that both say the same.
 */
export interface Operation {
  /** The `operationId`. */
  id: string;
  tag: Tag;
  method: 'get' | 'post' | 'put' | 'delete';
  /** As in OpenAPI: parameters are in braces. */
  path: string;
  summary: string;
  /** Markdown. */
  description?: string;
  /**
   * The key that a request needs. `issuer if set`: API_KEY, if the service has one. `issuer` and `admin`:
   * API_KEY and ADMIN_API_KEY; without them the path does not exist. `any key`: one of both.
   */
  access: 'anyone' | 'issuer if set' | 'issuer' | 'admin' | 'any key';
  /** Whether it changes and stores nothing although its method is not GET. */
  isHarmless?: true;
  pathParameters?: Readonly<Record<string, { description: string; example: string }>>;
  /** Object of text values. The router checks it, and answers 400 QUERY_INVALID. */
  query?: z.ZodObject;
  headers?: Readonly<Record<string, z.ZodType>>;
  body?: Body;
  answers: Readonly<Record<number, Answer>>;
  /**
   * The codes of errors by status. The errors of every request, and those of `access`, `query` and `body`,
   * need not be listed (`errorsOf`).
   */
  errors?: Readonly<Record<number, readonly ErrorCode[]>>;
}

/** An operation as its chapter describes it. `request`: its method and path. */
type Described = Omit<Operation, 'id' | 'tag' | 'access' | 'method' | 'path'> &
  Partial<Pick<Operation, 'tag' | 'access'>> & { request: `${Uppercase<Operation['method']>} /${string}` };

/**
 * The operations of a chapter, by their `operationId`.
 *
 * @param access the key that those need which name no other.
 */
export function chapter<const Operations extends Readonly<Record<string, Described>>>(
  tag: Tag,
  access: Operation['access'],
  operations: Operations,
) {
  const described = Object.entries(operations).map(([id, { request, ...one }]) => {
    const [method = '', path] = request.split(' ');
    return [id, { tag, access, ...one, method: method.toLowerCase(), path, id }];
  });
  return Object.fromEntries(described) as {
    readonly [Id in keyof Operations]: Pick<Operation, 'id' | 'tag' | 'access' | 'method' | 'path'> &
      Omit<Operations[Id], 'request'>;
  };
}

/** An answer with a body in JSON, by default any object. */
export function json(
  description: string,
  schema: z.ZodType = z.record(z.string(), z.unknown()),
  { headers, ...content }: Pick<Answer, 'headers'> & Partial<Answer['content']> = {},
): Answer {
  const body = { mediaType: 'application/json', schema, ...content };
  return { description, content: body, ...(headers && { headers }) };
}

type Errors = Readonly<Record<number, readonly ErrorCode[]>>;

/** Errors that any request may get: most of them from Node.js, before the service sees the request. */
const OF_EVERY_REQUEST: Errors = {
  400: ['PATH_MALFORMED', 'REQUEST_MALFORMED'],
  408: ['REQUEST_TIMEOUT'],
  431: ['HEADERS_TOO_LARGE'],
  500: ['INTERNAL'],
};

/** Errors of a database that is read, and cannot be written now. */
export const OF_DATABASE = ['DATABASE_LOCKED', 'DATABASE_FULL', 'DATABASE_READ_ONLY'] as const;

const OF_ACCESS: Readonly<Record<Operation['access'], Errors>> = {
  anyone: {},
  'issuer if set': { 401: ['API_KEY_WRONG'] },
  issuer: { 401: ['API_KEY_WRONG'], 404: ['NOT_FOUND'], 500: OF_DATABASE },
  admin: { 401: ['ADMIN_API_KEY_WRONG'], 404: ['NOT_FOUND'], 500: OF_DATABASE },
  'any key': { 401: ['API_KEY_WRONG'], 404: ['NOT_FOUND'] },
};

const OF_BODY: Errors = {
  400: ['BODY_NOT_JSON', 'BODY_ABORTED', 'BODY_AMBIGUOUS', 'BODY_TOO_COMPLEX'],
  408: ['BODY_TOO_SLOW'],
  413: ['BODY_TOO_LARGE'],
  415: ['CONTENT_TYPE_WRONG', 'CONTENT_ENCODING_UNSUPPORTED'],
};

/** Operations that only read are answered even then. */
const OF_STORING: Errors = { 503: ['DATABASE_REMOVED'] };

/** Whether an operation changes and stores nothing. */
export function onlyLooks({ method, isHarmless }: Pick<Operation, 'method' | 'isHarmless'>): boolean {
  return method === 'get' || isHarmless === true;
}

/** Every error of an operation: its codes, by status. */
export function errorsOf(operation: Operation): Map<number, ErrorCode[]> {
  const { access, query, body, errors = {} } = operation;
  const all = new Map<number, ErrorCode[]>();
  const sources = [
    OF_EVERY_REQUEST,
    OF_ACCESS[access],
    access === 'anyone' ? {} : { 429: ['KEY_ATTEMPTS'] as const },
    query ? { 400: ['QUERY_INVALID'] as const } : {},
    body ? OF_BODY : {},
    onlyLooks(operation) ? {} : OF_STORING,
    errors,
  ];
  for (const source of sources)
    for (const [status, codes] of Object.entries(source))
      all.set(Number(status), [...(all.get(Number(status)) ?? []), ...codes]);
  return all;
}
