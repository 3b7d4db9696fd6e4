import { createClient } from '../../../client/create-client';

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
  const { response, data, error } = await createClient({ url: serviceUrl, apiKey: API_KEY }).GET(
    '/documents/{tokenId}',
    { params: { path: { tokenId } }, parseAs: 'text' },
  );
  return { status: response.status, text: data ?? JSON.stringify(error) };
}
