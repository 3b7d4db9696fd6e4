/** A request that was refused, or got no answer: then the code is CONNECTION_LOST and the status 0. */
export class RequestFailure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Ends requests that hang. Uploads and issuing may take longer. */
const TIMEOUT_MS = 60_000;
/** Only to requests with `If-None-Match`. */
const NOT_MODIFIED = 304;
const JSON_TYPE = { 'Content-Type': 'application/json' };

export interface RequestOptions {
  /** Sent as JSON. */
  body?: unknown;
  /** A body that is JSON already; its bytes are sent as they are. */
  json?: string;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
  timeoutMs?: number;
}

/** An answer with its headers. */
export interface Answer<T> {
  status: number;
  headers: Headers;
  body: T;
}

/** Sends requests to the service, and tells when one was refused because the session ended. */
export type Send = <T>(method: string, path: string, options?: RequestOptions) => Promise<Answer<T>>;

/** @param own headers of every request. */
export function sender(onSessionEnded: () => void, own: Readonly<Record<string, string>>): Send {
  return async <T>(method: string, path: string, options: RequestOptions = {}): Promise<Answer<T>> => {
    const { body, json = body === undefined ? undefined : JSON.stringify(body), signal } = options;
    const timeout = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
    try {
      const response = await fetch(path, {
        method,
        headers: { ...(json !== undefined && JSON_TYPE), ...own, ...options.headers },
        ...(json !== undefined && { body: json }),
        credentials: 'same-origin',
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      const text = await response.text();
      if (!response.ok && response.status !== NOT_MODIFIED) throw failureOf(response, text);
      const answer = (text === '' ? undefined : JSON.parse(text)) as T;
      return { status: response.status, headers: response.headers, body: answer };
    } catch (error) {
      if (signal?.aborted) throw error;
      if (!(error instanceof RequestFailure)) throw connectionLost();
      if (error.code === 'CONSOLE_SESSION_ENDED') onSessionEnded();
      throw error;
    }
  };
}

function failureOf({ status, headers }: Response, text: string): RequestFailure {
  const given = headers.get('X-Error-Code') ?? `HTTP_${status}`;
  // The browser drops the cookie of a session that is over. The service then asks for a key.
  const code = /^(ADMIN_)?API_KEY_WRONG$/.test(given) ? 'CONSOLE_SESSION_ENDED' : given;
  return new RequestFailure(status, code, messageIn(text) ?? `The service answered ${status}.`);
}

function messageIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: { message?: string } }).error?.message;
  } catch {
    return undefined;
  }
}

function connectionLost(): RequestFailure {
  const message = 'The service did not answer. Check that it runs and that the network works, and try again.';
  return new RequestFailure(0, 'CONNECTION_LOST', message);
}

/** Any failure, as one that can be shown. */
export function failureFrom(error: unknown): RequestFailure {
  if (error instanceof RequestFailure) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new RequestFailure(0, 'PAGE_FAILED', `The page failed: ${message}. Load it again.`);
}
