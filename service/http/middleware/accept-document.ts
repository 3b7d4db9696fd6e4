import type { Middleware } from 'koa';
import type { AcceptDocument, IssueDocument } from '../../issuance/issue-document';

/** What the middleware leaves for the route. */
export interface AcceptedState {
  /** Issues documents of the type that the path names. */
  issueDocument: IssueDocument;
}

/**
 * Asks first whether documents of this type are issued here at all: no mistake in the request matters before
 * that, and nothing of its body is read.
 */
export function acceptDocument(
  accept: AcceptDocument,
): Middleware<AcceptedState, { params: Record<string, string> }> {
  return async (ctx, next) => {
    ctx.state.issueDocument = accept(ctx.params.documentId ?? '');
    await next();
  };
}
