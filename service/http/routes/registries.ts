import { RequestError, ServiceError, UnavailableError } from '../../base/errors';
import { parseRegistry } from '../../followed-registries/parse-registry';
import type { Registries } from '../../followed-registries/registries';
import { REGISTRIES } from '../description/registries';
import { type OperationRouter } from '../operation-router';

/** When the node does not answer the check against the chain. */
const ASK_AGAIN_AFTER_MS = 10_000;

/** Answers the operations of registries. */
export function answerRegistries({ answer }: OperationRouter, registries: Registries): void {
  answer(REGISTRIES.listRegistries, async (ctx) => {
    ctx.body = { registries: await registries.list() };
  });

  answer(REGISTRIES.addRegistry, async (ctx) => {
    const requested = parseRegistry(ctx.state.body);
    const { registry, isNew } = await registries.add(requested).catch((error: unknown) => {
      if (!(error instanceof ServiceError) || !error.retryable) throw error;
      throw new UnavailableError(error.code, error.message, { retryAfterMs: ASK_AGAIN_AFTER_MS });
    });
    ctx.set('Location', `/registries/${registry.chainId}/${registry.address}`);
    ctx.status = isNew ? 201 : 200;
    ctx.body = registry;
  });

  answer(REGISTRIES.removeRegistry, async (ctx) => {
    const { chainId = '', address = '' } = ctx.params;
    const key = { chainId: Number(chainId), address: address.toLowerCase() };
    const { isGivenUp, undelivered } = await registries.giveUp(key, ctx.state.query.force === 'true');
    if (!isGivenUp) {
      const message =
        `${undelivered} undelivered events of this registry wait. They stay, but nothing sends them until ` +
        'it is added again. Delete it with ?force=true.';
      throw new RequestError('REGISTRY_HAS_UNDELIVERED', message);
    }
    ctx.body = { ...key, undelivered };
  });
}
