/** The key of a service whose documents a test fetches. */
export const API_KEY = 'key-of-the-tests';

/** The headers of a caller with the key. */
export const AUTHORIZATION = { Authorization: `Bearer ${API_KEY}` };

/** An answer with its body as text. */
export interface TextAnswer {
  status: number;
  text: string;
}

/** GET /documents/{tokenId} with the key. */
export async function fetchDocument(serviceUrl: string, tokenId: string): Promise<TextAnswer> {
  const response = await fetch(`${serviceUrl}/documents/${tokenId}`, { headers: AUTHORIZATION });
  return { status: response.status, text: await response.text() };
}
