import * as z from 'zod';
import { KEY_REQUEST, PERMISSIONS } from '../../access/access-keys';
import { LOGIN_REQUEST } from '../../access/wallet-login';
import { component, TEXT, TIME } from '../../answers/views';
import EXAMPLES from './examples.json';
import { chapter, json } from './operation';

const TEXTS = z.array(TEXT).optional();

const KEY = component('AccessKey', {
  id: TEXT.describe('A UUID.'),
  name: TEXT,
  scope: z.strictObject({ registries: TEXTS, tokens: TEXTS, parties: TEXTS }),
  may: z.array(z.enum(PERMISSIONS)),
  createdAt: TIME,
  expiresAt: TIME,
  usedAt: TIME.nullable().describe('Its last use, to the hour.'),
  isLive: z.boolean().describe('Whether it has neither ended nor been revoked.'),
});

const NEW_KEY = json(
  'The key, which is shown this once.',
  KEY.extend({ key: TEXT.describe('`tdk_…`: send it as `Authorization: Bearer`.') }).meta({
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
      examples: {
        'of a bank': {
          name: 'Bank',
          scope: { parties: ['eip155:31337:0x70997970c51812dc3a010c7d01b50e0d17dc79c8'] },
          may: ['read', 'subscribe'],
          expiresAt: '2099-12-31T00:00:00Z',
        },
      },
    },
    answers: { 201: NEW_KEY },
    errors: { 400: ['KEY_INVALID'], 409: ['KEY_SCOPE_DIFFERS', 'KEYS_TOO_MANY'] },
  },
  listKeys: {
    request: 'GET /keys',
    summary: 'List the keys',
    description:
      'The newest first. Ended keys stay in the list for 30 days, or as long as a subscription is theirs.',
    answers: { 200: json('The keys.', component('AccessKeys', { keys: z.array(KEY) })) },
  },
  revokeKey: {
    request: 'DELETE /keys/{id}',
    summary: 'Revoke a key',
    description: 'If it is the last one of its name, the subscriptions of the name are paused.',
    pathParameters: {
      id: { description: 'The id of the key.', example: '3f0f6a6e-6d0b-4f0e-9a57-0f3c9a4f8a52' },
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
      409: ['KEY_SCOPE_DIFFERS'],
      429: ['LOGIN_ATTEMPTS'],
      503: ['LOGIN_UNDECIDED', 'BUSY'],
    },
  },
});
