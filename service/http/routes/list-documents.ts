import type { Context, Middleware } from 'koa';
import type { Issuance } from '../../journal/issuance';
import type { Journal } from '../../journal/journal';
import type { IssuancesPlace } from '../../journal/list-issuances';
import { limitOf, link, noStore, textOf, wrongQuery } from '../query';

const STATES: readonly Issuance['state'][] = ['signed', 'submitted', 'mined', 'final', 'failed'];

/** RFC 3339, in whole or fractional seconds. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;

/**
 * GET /documents: what was issued here, newest first, without the documents. For a caller that lost
 * an answer and sent no Idempotency-Key. Parameters: `state`, `since`, `until`, `limit`, and `after` from the
 * header Link.
 */
export function listDocuments(documents: Pick<Journal, 'list'>): Middleware {
  return async (ctx) => {
    noStore(ctx);
    const [since, until] = [textOf(ctx, 'since'), textOf(ctx, 'until')];
    const [state, limit] = [stateOf(ctx), limitOf(ctx)];
    const page = await documents.list({
      state,
      since: timeOf('since', since),
      until: timeOf('until', until),
      after: placeOf(textOf(ctx, 'after')),
      limit,
    });
    if (page.next) {
      const after = `${page.next.position}.${page.next.tokenId}`;
      link(ctx, { ...(state && { state }), ...(since && { since }), ...(until && { until }), after, limit });
    }
    ctx.body = page.issuances.map(shown);
  };
}

function shown({ tokenId, credentialId, state, txHash, failure, createdAt }: Issuance): object {
  return {
    tokenId,
    id: credentialId,
    state,
    createdAt: new Date(createdAt).toISOString(),
    ...(txHash !== undefined && { txHash }),
    ...(failure && { failure }),
  };
}

function stateOf(ctx: Context): Issuance['state'] | undefined {
  const text = textOf(ctx, 'state');
  const state = STATES.find((known) => known === text);
  if (text === undefined || state !== undefined) return state;
  throw wrongQuery('state', `must be one of ${STATES.join(', ')}`);
}

function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const time = TIME.test(text) ? Date.parse(text) : NaN;
  if (!Number.isNaN(time)) return time;
  throw wrongQuery(name, 'must be a time such as 2026-05-01T12:00:00Z (in a URL, write + as %2B)');
}

function placeOf(text: string | undefined): IssuancesPlace | undefined {
  if (text === undefined) return undefined;
  const [, position, tokenId] = /^(\d{1,15})\.([0-9a-f]{64}|)$/.exec(text) ?? [];
  if (tokenId === undefined) throw wrongQuery('after', 'must be taken from the header Link of a page');
  return { position: Number(position), tokenId };
}
