import type { Middleware } from 'koa';
import type { IssueDocument } from '../../issuance/issue-document';
import { parseBody } from '../../issuance/parse-body';
import type { JsonBodyState } from '../middleware/json-body';
import type { RequestState } from '../middleware/request-log';

/** POST /create/{documentId}. */
export function createDocument(
  issueDocument: IssueDocument,
): Middleware<RequestState & JsonBodyState, { params: Record<string, string> }> {
  return async (ctx) => {
    const issued = await issueDocument(ctx.params.documentId ?? '', parseBody(ctx.state.body));
    const { id, credentialStatus } = issued.signedW3CDocument;
    ctx.state.log.info({ id, tokenId: credentialStatus.tokenId, txHash: issued.txHash }, 'document issued');
    ctx.body = issued;
  };
}
