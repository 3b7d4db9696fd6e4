import * as z from 'zod';
import { ACCESS_KEY, KEY_REQUEST } from '../../access/access-keys';
import { LOGIN_REQUEST } from '../../access/wallet-login';
import { component, TEXT } from '../../answers/views';
import EXAMPLES from './examples.json';
import { chapter, json } from './operation';
import { page, PAGE_LIMIT, position } from './values';

const NEW_KEY = json(
  'The key, which is shown this once.',
  ACCESS_KEY.extend({ key: TEXT.describe('`tdk_…`: send it as `Authorization: Bearer`.') }).meta({
    id: 'NewAccessKey',
  }),
);

/** Operations of keys. */
export const KEYS = chapter('Keys', 'admin', {
  createKey: {
    request: 'POST /keys',
    summary: 'Make a key that sees a part',
    body: {
      kind: 'small',
      schema: KEY_REQUEST.meta({ id: 'AccessKeyRequest' }),
      examples: { 'of a bank': EXAMPLES.key },
    },
    answers: { 201: NEW_KEY },
    errors: { 400: ['KEY_INVALID'] },
  },
  listKeys: {
    request: 'GET /keys',
    summary: 'List the keys',
    description:
      'The newest first. Keys that have ended stay in the list for 30 days, those of wallets until an hour ' +
      'after `expiresAt`.',
    query: z.object({ limit: PAGE_LIMIT, after: position<string>() }),
    answers: {
      200: page(
        'A page of keys.',
        component('AccessKeys', { keys: z.array(ACCESS_KEY) }),
        '/keys?after=2Zb…',
      ),
    },
  },
  revokeKey: {
    request: 'DELETE /keys/{id}',
    summary: 'Revoke a key',
    description: 'If it is the last one of its name and scope, their subscriptions are paused.',
    pathParameters: {
      id: { description: 'The id of the key.', example: '0192f3c8-5a00-7000-8000-000000000001' },
    },
    answers: { 204: { description: 'The key has ended.' } },
    errors: { 404: ['KEY_UNKNOWN'] },
  },
  makeNonce: {
    request: 'POST /login/nonce',
    access: 'anyone',
    isHarmless: true,
    summary: 'Get a nonce for a log-in',
    description: 'Exists only with WALLET_LOGIN.',
    answers: {
      200: json(
        'A nonce, which is valid for ten minutes, and once.',
        component('LoginNonce', { nonce: TEXT.describe('Letters and digits.') }),
      ),
    },
    errors: { 404: ['NOT_FOUND'] },
  },
  login: {
    request: 'POST /login',
    access: 'anyone',
    summary: 'Log in with a wallet',
    body: {
      kind: 'small',
      schema: LOGIN_REQUEST.meta({ id: 'LoginRequest' }),
      examples: { 'of an account': EXAMPLES.login },
    },
    answers: { 201: NEW_KEY },
    errors: {
      400: ['LOGIN_INVALID'],
      403: ['LOGIN_REFUSED'],
      404: ['NOT_FOUND'],
      429: ['LOGIN_ATTEMPTS'],
      503: ['LOGIN_UNDECIDED', 'BUSY'],
    },
  },
});
