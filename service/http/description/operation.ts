import * as z from 'zod';
import type { Permission } from '../../access/access-keys';
import type { ErrorCode } from '../../base/errors';

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
  | 'Keys'
  | 'Discovery'
  | 'Health and metrics';

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
  /** Markdown. A text of several lines is in client/description/api.md, under the `operationId`. */
  description?: string;
  /**
   * The key that a request needs. `issuer if set`: API_KEY, if the service has one. `issuer` and `admin`:
   * API_KEY and ADMIN_API_KEY; without them the path does not exist. `any key`: one of both.
   */
  access: 'anyone' | 'issuer if set' | 'issuer' | 'admin' | 'any key';
  /** What a key with a scope needs for it. Absent: no such key opens it. */
  scope?: Permission;
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
   * need not be listed (`errorsOf` in client/description/openapi.ts).
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

/** Errors of a database that is read, and cannot be written now. */
export const OF_DATABASE = ['DATABASE_LOCKED', 'DATABASE_FULL', 'DATABASE_READ_ONLY'] as const;

/** Errors of an address at which no registry can be read. */
export const OF_REGISTRY = ['REGISTRY_MISSING', 'REGISTRY_INVALID', 'ESCROWS_UNSUPPORTED'] as const;

/** Whether an operation changes and stores nothing. */
export function onlyLooks({ method, isHarmless }: Pick<Operation, 'method' | 'isHarmless'>): boolean {
  return method === 'get' || isHarmless === true;
}
