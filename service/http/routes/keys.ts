import type { AccessKeys } from '../../access/access-keys';
import type { WalletLogin } from '../../access/wallet-login';
import { KEYS } from '../description/keys';
import { linkNextPage, type OperationRouter } from '../operation-router';
import { networkOf } from '../wrong-keys';

/** Answers the operations of keys. */
export function answerKeys({ answer }: OperationRouter, keys: AccessKeys): void {
  answer(KEYS.createKey, async (ctx) => {
    ctx.body = await keys.add(ctx.state.body);
    ctx.status = 201;
  });

  answer(KEYS.listKeys, async (ctx) => {
    const { next, ...page } = await keys.list(ctx.state.query);
    if (next !== undefined) linkNextPage(ctx, next);
    ctx.body = page;
  });

  answer(KEYS.revokeKey, async (ctx) => {
    await keys.revoke(ctx.params.id ?? '');
    ctx.status = 204;
  });
}

/** Answers the log-ins of wallets. */
export function answerLogins({ answer }: OperationRouter, wallets: WalletLogin): void {
  answer(KEYS.makeNonce, (ctx) => {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { nonce: wallets.makeNonce() };
  });

  answer(KEYS.login, async (ctx) => {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = await wallets.login(ctx.state.body, networkOf(ctx.req), ctx.state.left);
    ctx.status = 201;
  });
}
