import type { Tag } from './operation';

/** The text before the operations. Markdown. */
export const INTRODUCTION = `This service issues transferable trade documents. It signs a Bill of Lading as
a W3C Verifiable Credential (did:web, ecdsa-sd-2023), mints its token in a TradeTrust token registry
(version 5), and sends every event of that token to subscribers as a signed CloudEvent.

**To issue a document,** send [POST /create/BILL_OF_LADING](#operation-createDocument) with the beneficiary
(\`owner\`), the holder and the subject. The answer has the signed credential and the hash of the mint. Keep
the whole answer: \`signedW3CDocument.credentialStatus.tokenId\` is the token, and \`signedW3CDocument.id\`
is the key that decrypts the remarks.

**To receive events,** answer the [webhooks](#webhooks). The operator sets one URL for all events
(WEBHOOK_URL), or makes [subscriptions](#tag-Subscriptions).

**Keys.** Requests carry \`Authorization: Bearer <key>\`. API_KEY is for documents, ADMIN_API_KEY for
subscriptions and registries. A path whose key the service does not have answers 404.

**Errors.** Every answer with a status of 400 or above has the body \`{"error": {"message": …}}\` and a
stable code in \`X-Error-Code\`. \`GET /health\` has the code too, but keeps its own body. An unknown path
is 404 NOT_FOUND, and another method of a known path 405 METHOD_NOT_ALLOWED with the header \`Allow\`. HEAD
is allowed wherever GET is. OPTIONS is answered 204 everywhere.

**Limits.** A body has at most 50 MB (64 KB for subscriptions and registries) and 20,000 values, and is JSON
in UTF-8. It has to deliver at least 64 KB in every ten seconds until it is complete. The headers have at
most 16 KB. Two bodies over 1 MB are processed at once, and 32 over 64 KB; others wait for up to 30 seconds.

**Other origins.** Scripts of any origin may call the service. They may send the headers \`Content-Type\` and
\`Accept\`, and read \`X-Error-Code\`, \`X-Request-Id\` and \`Retry-After\`.`;

/** The texts of the chapters. Markdown. */
export const TAGS: Readonly<Record<Tag, string>> = {
  Documents: 'Issue documents, and find them again.',
  Subscriptions: 'Who gets which events. ADMIN_API_KEY is needed.',
  Registries: 'The token registries whose events are read. ADMIN_API_KEY is needed.',
  Discovery: 'Public files: keys, contexts, schemas and this description.',
  Operation: 'For the operator: health and metrics.',
  Webhooks: `The service sends each event as an HTTP POST to the sink of a subscription. The body is one
CloudEvent 1.0 in structured mode.

1. **Check the signature.** \`X-Service-Signature\` is \`ed25519=\` and an Ed25519 signature over the bytes
   of the body, in base64url without padding. Check it over the bytes as they arrived, before parsing. If it
   is wrong, answer 401 with the text \`Invalid signature\`. The public keys are at
   [/.well-known/jwks.json](#operation-getWebhookKeys); \`X-Service-Key-Id\` is the \`kid\` of the right
   one. Fetch them again when a \`kid\` is new, at most once in ten seconds.
2. **Recognise repetitions.** Every event is sent until it got a 2xx, so it may come more than once. The
   pair \`data.transactionHash\` and \`data.logIndex\` identifies an event on its chain; \`id\` does too,
   and is the only one that distinguishes events after a retraction. Answer 200 to a known event.
3. **Store the event, then answer 200.** The service waits for 15 seconds (\`timeoutMs\`). Do the work
   afterwards. Answer 200 to types that you do not know, and ignore members that you do not know.

**Order.** The events of one token (\`subject\`) come in the order of the chain, one at a time. The next one
is sent after a 2xx, so an event that is not answered holds back the later ones of its token. Tokens do not
wait for each other. \`registry_paused\` and \`registry_unpaused\` concern no token: their \`subject\` is
\`0\`, and they have no \`data.tokenIdHex\`.

**Retries.** Any answer but a 2xx is tried again after 1, 2, 4, … seconds, at most 15 minutes, with up to
half of that taken off at random. \`Retry-After\` is honoured, up to a day. After 72 hours and at least 50
attempts the event becomes a dead letter, which the operator can [send again](#operation-redeliver). A
redirect is a failure. A 410 ends the deliveries of the subscription until the operator resumes it.

**Standard Webhooks.** A subscription with \`config.standardWebhooks\` gets the headers \`webhook-id\`,
\`webhook-timestamp\` and \`webhook-signature\` too: \`v1\` (HMAC-SHA256 with the subscription's secret) and
\`v1a\` (Ed25519) over \`<webhook-id>.<webhook-timestamp>.<body>\`.

This receiver for Node.js checks signatures:

\`\`\`js
import { createPublicKey, verify } from 'node:crypto';
import { createServer } from 'node:http';

const { keys } = await (await fetch(\`\${process.env.SERVICE_URL}/.well-known/jwks.json\`)).json();
const keyOf = new Map(keys.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]));

function isGenuine(headers, body) {
  const key = keyOf.get(headers['x-service-key-id']);
  const encoded = (headers['x-service-signature'] ?? '').replace(/^ed25519=/, '');
  const signature = Buffer.from(encoded, 'base64url');
  return key !== undefined && signature.length === 64 && verify(null, body, key, signature);
}

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  if (!isGenuine(request.headers, body)) return response.writeHead(401).end('Invalid signature');
  const event = JSON.parse(body);
  console.log(event.type, event.subject, event.id); // store it here, then answer
  response.writeHead(200).end();
}).listen(process.env.PORT ?? 4000, function () {
  console.log('listening on', this.address().port);
});
\`\`\`

**To test your receiver,** take the first example of [nomination](#webhook-com.service.etr.nomination): its
body, as one line without spaces between members, was signed with the key
\`{"kty":"OKP","crv":"Ed25519","x":"PGSUW9hce72cU1SUUH2fgFfVCntnkL_EbzOPeY1fAEU"}\`. Or ask the operator for
a [test event](#operation-testSubscription).`,
};
