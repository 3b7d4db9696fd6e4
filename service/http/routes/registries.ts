import type { Middleware } from 'koa';
import type { z } from 'zod';
import { ServiceError } from '../../base/errors';
import { parseRegistry } from '../../followed-registries/parse-registry';
import type { Registries } from '../../followed-registries/registries';
import type { FORCE_QUERY } from '../description/subscriptions';
import { HttpError } from '../middleware/errors';
import type { SmallJsonState } from '../middleware/json-body';
import { noStore, type QueryState } from '../query';

/** Seconds in `Retry-After` when the node does not answer the check against the chain. */
const ASK_AGAIN_S = '10';

/** GET /registries: every followed registry. */
export function listRegistries(registries: Registries): Middleware {
  return async (ctx) => {
    noStore(ctx);
    ctx.body = { registries: await registries.list() };
  };
}

/** POST /registries: 201 with the registry, or 200 if it is followed already. */
export function addRegistry(registries: Registries): Middleware<SmallJsonState> {
  return async (ctx) => {
    const requested = parseRegistry(ctx.state.body);
    const { registry, isNew } = await registries.add(requested).catch((error: unknown) => {
      if (!(error instanceof ServiceError) || !error.retryable) throw error;
      ctx.set('Retry-After', ASK_AGAIN_S);
      throw new HttpError(503, error.code, error.message);
    });
    ctx.set('Location', `/registries/${registry.chainId}/${registry.address}`);
    ctx.status = isNew ? 201 : 200;
    ctx.body = registry;
  };
}

/** DELETE /registries/{chainId}/{address}. Its undelivered events stay in the database. */
export function removeRegistry(
  registries: Registries,
): Middleware<QueryState<z.output<typeof FORCE_QUERY>>, { params: Record<string, string> }> {
  return async (ctx) => {
    const { chainId = '', address = '' } = ctx.params;
    const key = { chainId: Number(chainId), address: address.toLowerCase() };
    const { isGivenUp, undelivered } = await registries.giveUp(key, ctx.state.query.force === 'true');
    if (!isGivenUp) {
      const message =
        `${undelivered} undelivered events of this registry wait. They stay, but nothing sends them until ` +
        'it is added again. Delete it with ?force=true.';
      throw new HttpError(409, 'REGISTRY_HAS_UNDELIVERED', message);
    }
    ctx.body = { ...key, undelivered };
  };
}
