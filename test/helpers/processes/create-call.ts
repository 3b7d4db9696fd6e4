import type { SignedCredential } from '../../../service/issuance/sign';

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
