import type { AccessKeys } from '../../access/access-keys';
import type { WalletLogin } from '../../access/wallet-login';
import { KEYS } from '../description/keys';
import type { OperationRouter } from '../operation-router';
import { createLoginLimit } from '../wrong-keys';

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

/** Answers the log-ins of wallets. */
export function answerLogins({ answer, time }: OperationRouter, wallets: WalletLogin): void {
  const limitLogin = createLoginLimit(time);
  answer(KEYS.makeNonce, (ctx) => {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { nonce: wallets.makeNonce() };
  });

  answer(KEYS.login, async (ctx) => {
    ctx.set('Cache-Control', 'no-store');
    const { body, left } = ctx.state;
    ctx.body = await wallets.login(body, { left, limit: () => limitLogin(ctx) });
    ctx.status = 201;
  });
}
