import { EVENT_SCHEMAS, OPERATIONAL_MEANINGS, type ChainEventSuffix } from '../event-schemas';
import { shortType } from '../../service/events/cloud-event';
import type { Json } from '../../service/http/description/operation';
import SIGNED from './signed-delivery.json';

/** Meanings of the event types that are not operational, without their prefix. */
const OTHER_MEANINGS: Readonly<Record<ChainEventSuffix | 'retracted' | 'test', string>> = {
  escrow_created: "The token's title escrow has been deployed. The first event of every token.",
  minted: 'The token has been minted. `owner` is its first beneficiary.',
  token_received: 'The title escrow has taken the token into custody, after a mint or a restore.',
  nomination: 'The beneficiary has nominated the next beneficiary, or a nomination has ended.',
  beneficiary_transfer: 'The beneficiary has changed; in a mint from nobody, in a burn to nobody.',
  holder_transfer: 'The holder has changed; in a mint from nobody, in a burn to nobody.',
  surrendered: 'The token has been surrendered: it is at the registry.',
  return_to_issuer: 'Beneficiary and holder have returned the token to the issuer; follows `surrendered`.',
  restored: 'The issuer has restored a surrendered token to its title escrow.',
  shred: 'The title escrow has ended. The token is destroyed for ever; `burned` follows.',
  burned: 'The token has been burned. The last event of a token.',
  reject_transfer_beneficiary: 'The new beneficiary has rejected the transfer.',
  reject_transfer_holder: 'The new holder has rejected the transfer.',
  reject_transfer_owners: 'The new beneficiary and holder, one account, has rejected both transfers.',
  registry_paused: 'The registry has been paused: no token of it can move.',
  registry_unpaused: 'The registry has been unpaused.',
  retracted:
    'A reorganisation of the chain removed an event that was sent: undo the event whose `id` is ' +
    '`data.retracts`. Only with `config.retractions`.',
  test: 'An event to try a subscription out. It is about nothing on the chain.',
};

const MEANINGS: Readonly<Record<string, string>> = {
  ...OTHER_MEANINGS,
  ...Object.fromEntries(
    OPERATIONAL_MEANINGS.map(([suffix, meaning]) => [
      `operations.${suffix}`,
      `${meaning} Only for subscriptions whose \`types\` name this type.`,
    ]),
  ),
};

function header(name: string, required: boolean, description: string, example: string): [string, Json] {
  return [name, { name, in: 'header', required, description, schema: { type: 'string' }, example }];
}

/** The headers of a delivery: parameters of the webhooks. The example was signed with a key made for it. */
export const WEBHOOK_HEADERS: Readonly<Record<string, Json>> = Object.fromEntries([
  header(
    'X-Service-Signature',
    true,
    '`ed25519=` and the Ed25519 signature of the bytes of the body, in base64url without padding.',
    SIGNED.signature,
  ),
  header('X-Service-Key-Id', true, 'The `kid` of the key in `/.well-known/jwks.json`.', SIGNED.keyId),
  header('User-Agent', true, 'Always `transferable-document-service`.', 'transferable-document-service'),
  header(
    'traceparent',
    false,
    'The place of the attempt in a W3C trace: each attempt has its ' +
      'own. The deliveries of a mint are in the trace of the POST /create that it comes from.',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  ),
  header('webhook-id', false, 'Only with `standardWebhooks`: the id of the event.', SIGNED.event.id),
  header(
    'webhook-timestamp',
    false,
    'Only with `standardWebhooks`: the time of the attempt, in seconds since 1970.',
    '1763713000',
  ),
  header('webhook-signature', false, 'Only with `standardWebhooks`.', 'v1,K5o… v1a,hnO…'),
]);

const RESPONSES = {
  200: { description: 'The event is stored, or known already. Any 2xx is a success; the body is ignored.' },
  401: { description: 'The signature is wrong. The event is sent again.' },
  410: { description: 'The subscription ends until the operator resumes it.' },
  default: { description: 'The event is sent again later. `Retry-After` is honoured.' },
};

/** The `webhooks` of the description: one for each type of event. */
export const WEBHOOKS: Readonly<Record<string, Json>> = Object.fromEntries(
  Object.keys(EVENT_SCHEMAS).map((type) => {
    const schema = { $ref: `#/components/schemas/${type}` };
    const examples = type === SIGNED.event.type ? { examples: { signed: { value: SIGNED.event } } } : {};
    const post = {
      operationId: `webhook-${type}`,
      tags: ['Webhooks'],
      summary: shortType(type),
      description: MEANINGS[shortType(type)],
      security: [],
      parameters: Object.keys(WEBHOOK_HEADERS).map((name) => ({ $ref: `#/components/parameters/${name}` })),
      requestBody: {
        required: true,
        description: 'About 1 kB of UTF-8, never compressed.',
        content: {
          'application/json': { schema, ...examples },
          // If the subscription has this `config.contentType`.
          'application/cloudevents+json': { schema },
        },
      },
      responses: RESPONSES,
    };
    return [type, { post }];
  }),
);
