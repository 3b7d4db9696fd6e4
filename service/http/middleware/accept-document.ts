import type { Middleware } from 'koa';
import type { AcceptDocument, IssueDocument } from '../../issuance/issue-document';

/** State that the middleware sets for the route. */
export interface AcceptedState {
  /** Issues documents of the type in the path. */
  issueDocument: IssueDocument;
}

/**
 * Checks first whether documents of this type are issued here. That error comes before any other error in the
 * request, and before the body is read.
 */
export function acceptDocument(
  accept: AcceptDocument,
): Middleware<AcceptedState, { params: Record<string, string> }> {
  return async (ctx, next) => {
    ctx.state.issueDocument = accept(ctx.params.documentId ?? '');
    await next();
  };
}
