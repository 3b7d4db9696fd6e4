/** The key of a service whose documents a test fetches. */
export const API_KEY = 'key-of-the-tests';

/** What a caller sends along who has it. */
export const AUTHORIZATION = { Authorization: `Bearer ${API_KEY}` };

/** An answer, as its bytes say it. */
export interface TextAnswer {
  status: number;
  text: string;
}

/** GET /documents/{tokenId}, as who has the key. */
export async function fetchDocument(serviceUrl: string, tokenId: string): Promise<TextAnswer> {
  const response = await fetch(`${serviceUrl}/documents/${tokenId}`, { headers: AUTHORIZATION });
  return { status: response.status, text: await response.text() };
}
