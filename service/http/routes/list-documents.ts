import type { Middleware } from 'koa';
import type { z } from 'zod';
import type { Issuance } from '../../journal/issuance';
import type { Journal } from '../../journal/journal';
import type { DOCUMENTS_QUERY } from '../description/documents';
import { linkNextPage, noStore, type QueryState } from '../query';

/**
 * GET /documents: what was issued here, newest first, without the documents. For a caller that lost
 * an answer and sent no Idempotency-Key.
 */
export function listDocuments(
  documents: Pick<Journal, 'list'>,
): Middleware<QueryState<z.output<typeof DOCUMENTS_QUERY>>> {
  return async (ctx) => {
    noStore(ctx);
    const page = await documents.list(ctx.state.query);
    if (page.next) linkNextPage(ctx, `${page.next.position}.${page.next.tokenId}`);
    ctx.body = page.issuances.map(shown);
  };
}

function shown(issuance: Issuance): object {
  const { tokenId, credentialId, blNumber, beneficiary, holder, state, txHash, failure, createdAt } =
    issuance;
  return {
    tokenId,
    id: credentialId,
    ...(blNumber !== undefined && { blNumber }),
    owner: beneficiary,
    holder,
    state,
    createdAt: new Date(createdAt).toISOString(),
    ...(txHash !== undefined && { txHash }),
    ...(failure && { failure }),
  };
}
