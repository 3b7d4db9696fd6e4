import type { Middleware } from 'koa';
import type { AcceptDocument, AcceptedType } from '../../issuance/issue-document';

/** State that the middleware sets for the route. */
export interface AcceptedState {
  /** The type in the path. */
  accepted: AcceptedType;
}

/**
 * Checks first whether documents of this type are issued here. That error comes before any other error in the
 * request, and before the body is read.
 */
export function acceptDocument(
  accept: AcceptDocument,
): Middleware<AcceptedState, { params: Record<string, string> }> {
  return async (ctx, next) => {
    ctx.state.accepted = accept(ctx.params.documentId ?? '');
    await next();
  };
}
