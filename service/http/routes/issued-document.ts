import type { Middleware } from 'koa';
import { messageOf } from '../../base/errors';
import type { Journal } from '../../journal/journal';
import { parseTokenId, tokenIdHexOf } from '../../registry/token-id-forms';
import { HttpError } from '../middleware/errors';
import { noStore } from '../query';
import { sendIssued } from '../send-issued';

/** The journal methods that read issued documents. */
export type IssuedDocuments = Pick<Journal, 'find' | 'documentOf' | 'list'>;

/** Seconds after which to ask again for a document in progress. */
const ASK_AGAIN_S = '1';

/**
 * GET /documents/{tokenId}: the answer to the request that issued the document, for a caller whose connection
 * broke before it arrived. The header X-Document-State is `mined` while a reorganisation may still remove the
 * mint, and `final` after that.
 */
export function issuedDocument(
  documents: IssuedDocuments,
): Middleware<object, { params: Record<string, string> }> {
  return async (ctx) => {
    noStore(ctx);
    const tokenId = tokenIdIn(ctx.params.tokenId ?? '');
    const issuance = await documents.find(tokenId);
    const document = issuance && (await documents.documentOf(tokenId));
    if (issuance === undefined || document === undefined) throw documentUnknown();
    const { state, txHash, failure } = issuance;
    if (state === 'failed') {
      const { code, message } = failure ?? { code: 'INTERNAL', message: 'no reason is known' };
      throw new HttpError(410, code, `The token of this document was not made: ${message} [${code}]`);
    }
    if (txHash === undefined || (state !== 'mined' && state !== 'final')) {
      ctx.set('Retry-After', ASK_AGAIN_S);
      ctx.status = 202;
      ctx.body = { status: state };
      return;
    }
    ctx.set('X-Document-State', state);
    sendIssued(ctx, document, txHash);
  };
}

/** The token id in a path, as 64 digits. @throws HttpError TOKEN_ID_INVALID */
export function tokenIdIn(text: string): string {
  const tokenId = parsed(text);
  if (tokenId !== undefined) return tokenIdHexOf(tokenId);
  throw new HttpError(
    400,
    'TOKEN_ID_INVALID',
    'A token id has 64 hexadecimal digits, or is a decimal number.',
  );
}

function parsed(text: string): bigint | undefined {
  try {
    return parseTokenId(text);
  } catch (error) {
    throw new HttpError(400, 'TOKEN_ID_INVALID', messageOf(error));
  }
}

/** The error for a token id of no document. */
export function documentUnknown(): HttpError {
  const message = 'No document was issued here with this token id, or it was removed.';
  return new HttpError(404, 'DOCUMENT_UNKNOWN', message);
}
