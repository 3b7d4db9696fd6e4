import { callService, type ApiAnswer } from '../processes/create-call';
import type { ModelRule, ModelScope } from './sight';

/** A key of the model, as those know it who hold it. */
export interface ModelKey {
  id: string;
  key: string;
  owner: string;
  scope: ModelScope;
  may: readonly string[];
  /** By the virtual clock. */
  endsAt: number;
}

/** A subscription that a key has made. */
export interface ModelSubscription {
  id: string;
  owner: string;
  scope: ModelScope;
  rule: ModelRule;
  hasRetractions: boolean;
  startFrom: 'now' | 'beginning';
  /** How many events were recorded when it was answered, by registry. */
  since: readonly number[];
  isDeleted: boolean;
  /** When the operator resumed it. */
  resumedAt: number;
}

export type Answer = ApiAnswer<unknown>;

export async function ask(
  url: string,
  key: string | undefined,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  return callService(method, `${url}${path}`, body, key ? { authorization: `Bearer ${key}` } : {});
}

const OF_EACH_ANSWER = ['date', 'x-request-id'];

/** All of an answer that may tell one thing from another. `ids`: those that the caller named. */
export function faceOf({ status, code, headers, body }: Answer, ...ids: string[]): string {
  const shown = [...headers].filter(([name]) => !OF_EACH_ANSWER.includes(name));
  let text = JSON.stringify([status, code, shown, body], withoutCursors);
  for (const id of ids) text = text.replaceAll(id, '<id>');
  return text;
}

/** Each has a new nonce. Their length stays. */
function withoutCursors(name: string, value: unknown): unknown {
  return name === 'cursor' ? String(value).length : value;
}

/** The position of the next page; undefined on the last one. */
export function nextOf({ headers }: Answer): string | undefined {
  return /<(.*)>/.exec(headers.get('link') ?? '')?.[1];
}
