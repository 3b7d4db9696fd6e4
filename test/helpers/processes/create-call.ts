import type { SignedCredential } from '../../../service/issuance/sign';

/** An answer of the API. `code`: of X-Error-Code. */
export interface ApiAnswer<Body = Record<string, never>> {
  status: number;
  code: string | null;
  headers: Headers;
  body: Body;
  /** The error's message. */
  message: string;
}

/** Asks a service. A string is sent as it is, any other body as JSON. */
export async function callService<Body>(
  method: string,
  url: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<ApiAnswer<Body>> {
  const sent = new Headers(body === undefined ? {} : { 'Content-Type': 'application/json' });
  for (const [name, value] of Object.entries(headers)) sent.set(name, value);
  const isContent = body === undefined || typeof body === 'string' || body instanceof Uint8Array;
  const content = isContent ? (body as string | Uint8Array<ArrayBuffer> | undefined) : JSON.stringify(body);
  const response = await fetch(url, { method, headers: sent, body: content ?? null });
  const text = await response.text();
  const isJson = (response.headers.get('Content-Type') ?? '').includes('json');
  const answer =
    isJson && text !== '' ? (JSON.parse(text) as Body & { error?: { message?: string } }) : undefined;
  return {
    status: response.status,
    code: response.headers.get('X-Error-Code'),
    headers: response.headers,
    body: answer as Body,
    message: answer?.error?.message ?? '',
  };
}
/** The answer of POST /create. */
export interface CreateAnswer {
  status: number;
  requestId: string | null;
  /** The header X-Error-Code. */
  errorCode: string | null;
  headers: Headers;
  /** The body as text. */
  text: string;
  body: { signedW3CDocument: SignedCredential; txHash: string; error?: { message: string; stack?: string } };
}

/** POSTs to /create. A string is sent as it is, anything else as JSON. */
export async function create(
  serviceUrl: string,
  body: unknown,
  options: { documentId?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<CreateAnswer> {
  const response = await fetch(`${serviceUrl}/create/${options.documentId ?? 'BILL_OF_LADING'}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...options.headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal: options.signal ?? null,
  });
  const text = await response.text();
  return {
    status: response.status,
    requestId: response.headers.get('X-Request-Id'),
    errorCode: response.headers.get('X-Error-Code'),
    headers: response.headers,
    text,
    body: JSON.parse(text) as CreateAnswer['body'],
  };
}
