import type { AccessKeys } from '../../access/access-keys';
import { KEYS } from '../description/keys';
import type { OperationRouter } from '../operation-router';

/** Answers the operations of keys. */
export function answerKeys({ answer }: OperationRouter, keys: AccessKeys): void {
  answer(KEYS.createKey, async (ctx) => {
    ctx.body = await keys.add(ctx.state.body);
    ctx.status = 201;
  });

  answer(KEYS.listKeys, async (ctx) => {
    ctx.body = { keys: await keys.list() };
  });

  answer(KEYS.revokeKey, async (ctx) => {
    await keys.revoke(ctx.params.id ?? '');
    ctx.status = 204;
  });
}
