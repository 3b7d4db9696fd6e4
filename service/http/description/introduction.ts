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
subscriptions, registries, deliveries and events; either is for tokens and credentials. Both are settings of
the service. Without ADMIN_API_KEY its paths answer 404. Without API_KEY the paths under /documents answer
404, and POST /create needs no key. Without both, the paths of tokens and credentials answer 404.

**Errors.** Every answer with a status of 400 or above has the body \`{"error": {"message": …}}\` and a
stable code in \`X-Error-Code\`. \`GET /health\` has the code too, but keeps its own body. An unknown path
is 404 NOT_FOUND, and another method of a known path 405 METHOD_NOT_ALLOWED with the header \`Allow\`. HEAD
is allowed wherever GET is. OPTIONS is answered 204 everywhere.

**Limits.** A body has at most 50 MB (64 KB for subscriptions and registries) and 20,000 values, and is JSON
in UTF-8. A credential is longer than the body that it was made of, so checks take 54 MB and 100 values more.
A body has to deliver at least 64 KB in every ten seconds until it is complete. The headers have at
most 16 KB. Two bodies over 1 MB (LARGE_BODIES_AT_ONCE) are processed at once, and 32 over 64 KB. A compressed
body, and one without a length, counts as large. Others wait for up to 30 seconds; the answer is then 503 with
\`Retry-After\`, and at once if too many wait.

**Scripts of other origins** may send GET and POST with the headers \`Content-Type\` and \`Accept\`, and read
\`X-Error-Code\`, \`X-Request-Id\`, \`X-Token-Id\` and \`Retry-After\`. They can send no key, so they reach
only what needs none.`;

/** The texts of the chapters. Markdown. */
export const TAGS: Readonly<Record<Tag, string>> = {
  Documents: `**To hand a document on,** give its holder \`signedW3CDocument\` as it is. It has a base proof
(ecdsa-sd-2023), from which the holder derives the version that others see, with all of the subject or parts
of it. Issuer, dates and \`credentialStatus\` are mandatory pointers, so nobody can hide them. Verifiers check
three things: the proof of the derived version, with the key in
[/.well-known/did.json](#operation-getDidDocument); the issuer; and the token, in the registry on the chain.
TradeTrust's portal does so, and so do the commands \`tdoc derive\` and \`tdoc verify-credential\` of this
project. After \`validUntil\` the credential has expired.

**To read remarks,** take the \`remark\` of an event or of the log on the chain, and decrypt it with ChaCha20
(RFC 8439, counter 0). The key is the 32 ASCII characters of hex(SHAKE256(\`id\`, 128 bits)), of the whole
\`id\` with \`urn:uuid:\`; the nonce is the 12 ASCII characters of hex(SHAKE256("", 48 bits)). The portal and
\`tdoc decrypt-remark\` do it. Whoever has the credential can read its remarks.`,
  Tokens: 'The state and the history of a token, read from its chain.',
  Credentials: `For holders and verifiers, in the forms of W3C's VC API. The service signs nothing that a
caller made up: there is no \`/credentials/issue\`. A credential that is sent is neither stored nor logged.`,
  Subscriptions: 'Each subscription selects events, and names the sink that gets them.',
  'Deliveries and events': 'What was sent, each attempt and its answer, and what is still to be sent.',
  Registries: 'The token registries whose events are read.',
  Discovery: 'Public files: keys, contexts, schemas and this description.',
  'Health and metrics': 'For the operator of the service.',
  Webhooks: `The service sends each event as an HTTP POST to the sink of a subscription. The body is one
CloudEvent 1.0 in structured mode.

1. **Check the signature.** \`X-Service-Signature\` is \`ed25519=\` and an Ed25519 signature over the bytes
   of the body, in base64url without padding. Check it over the bytes as they arrived, before parsing. If it
   is wrong, answer 401 with the text \`Invalid signature\`. The public keys are at
   [/.well-known/jwks.json](#operation-getWebhookKeys); \`X-Service-Key-Id\` is the \`kid\` of the right
   one. Accept every published key, whatever its \`nbf\` and \`exp\` say. Fetch the keys from the address
   that the operator gave you, and again when a \`kid\` is new, at most once in ten seconds.
2. **Recognise repetitions by \`id\`.** Every event is sent until it got a 2xx, so it may come more than
   once, also while you still handle it. Keep the ids for ever: the operator can send any event again. Answer
   200 to a known event. The pair \`data.transactionHash\` and \`data.logIndex\` names the log on the chain;
   test events have none.
3. **Store the event, then answer 200.** An event that got a 2xx is not sent again. The service waits for 15
   seconds (\`timeoutMs\`). Do the work afterwards. Answer 200 to types that you do not know, and ignore
   members that you do not know.

**Which token.** \`source\` (chain and registry) and \`subject\` (the id in decimal digits) name a token.
\`data.tokenIdHex\` is \`credentialStatus.tokenId\` of its credential. Compare addresses without regard to
case, because those of credentials have a checksum. \`registry_paused\` and \`registry_unpaused\` concern no
token: their \`subject\` is \`0\`, and they have no \`data.tokenIdHex\`.

**Order.** The events of one token come in the order of the chain, one at a time; numbers of logs in between
may be missing. The next one is sent after a 2xx, so an event that is not answered holds back the later ones
of its token, and no others. At most 16 deliveries are under way at once (\`maxConcurrentDeliveries\`). A dead
letter that is sent again comes after later events of its token.

**Finality.** An event is sent when its block has the operator's number of confirmations on top, or when
the chain itself calls the block final, so a usual reorganisation changes nothing that was sent. After a
deeper one, a subscription with \`config.retractions\` gets a
[retraction](#webhook-com.service.etr.retracted) of each event that is not on the chain any more. If its
transaction is mined again, the event comes again with another \`id\`. Without \`config.retractions\`
nothing is sent about it; ask the operator.

**Retries.** After any answer but a 2xx the event is sent again: by default after 1, 2, 4, … seconds, at
most 15 minutes, with up to half of that taken off at random (\`config.retry\`). \`Retry-After\` (seconds,
or a date) is honoured for the token, up to a day. After 72 hours and at least 50 attempts the event becomes
a dead letter, which the operator can [send again](#operation-redeliver). A redirect is a failure. After a
410 the events of the subscription are kept, and sent when the operator resumes it.

**Standard Webhooks.** A subscription with \`config.standardWebhooks\` gets the headers \`webhook-id\`,
\`webhook-timestamp\` and \`webhook-signature\` too. The latter has two signatures, with a space between them,
over \`<webhook-id>.<webhook-timestamp>.<body>\`; check one of them. \`v1,\` is an HMAC-SHA256 in base64; its
key is the decoded base64 after \`whsec_\` of \`config.secret\`, which is shown once, when the subscription is
made. \`v1a,\` is an Ed25519 signature in base64, under the same key as \`X-Service-Signature\`. Refuse a
timestamp that is more than five minutes off.

**Words.** The *registry* is the contract that has the tokens. A token belongs to its *title escrow*, a
contract that knows its *beneficiary*, who owns the goods, and its *holder*, who has the document. The
*nominee* is the next beneficiary that the beneficiary proposes. After \`minted\` a token is in escrow,
after \`surrendered\` it is at the registry, after \`restored\` in escrow again, and after \`shred\` and
\`burned\` it has ended. The zero address means nobody. A \`remark\` is hex of the bytes that the sender
attached, \`0x\` if there are none; that of a mint is [encrypted](#tag-Documents). \`time\` is that of the
block.

This receiver for Node.js checks signatures, and keeps each delivery in a file. Run it with
\`SERVICE_URL=https://carrier.example PORT=4000 node receiver.mjs\`:

\`\`\`js
import { createPublicKey, verify } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

const jwks = \`\${process.env.SERVICE_URL}/.well-known/jwks.json\`;
let keys = new Map();
let fetchedAt = -Infinity;
let fetching;

async function fetchKeys() {
  const answer = await fetch(jwks, { signal: AbortSignal.timeout(5_000) });
  if (!answer.ok) throw new Error(\`\${jwks} answered \${answer.status}\`);
  const published = (await answer.json()).keys;
  keys = new Map(published.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]));
  fetchedAt = performance.now();
}

async function keyOf(kid) {
  const age = performance.now() - fetchedAt;
  // Keys may be withdrawn, and new ones published.
  if (age > 60_000 || (age > 10_000 && !keys.has(kid)))
    await (fetching ??= fetchKeys().finally(() => (fetching = undefined)));
  return keys.get(kid);
}

async function isGenuine(headers, body) {
  const key = await keyOf(headers['x-service-key-id']);
  const encoded = (headers['x-service-signature'] ?? '').replace(/^ed25519=/, '');
  const signature = Buffer.from(encoded, 'base64url');
  return key !== undefined && signature.length === 64 && verify(null, body, key, signature);
}

async function receive(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  if (!(await isGenuine(request.headers, body))) return response.writeHead(401).end('Invalid signature');
  const event = JSON.parse(body);
  appendFileSync('events.jsonl', JSON.stringify(event) + '\\n');
  console.log(event.type, event.subject, event.id);
  response.writeHead(200).end();
}

createServer((request, response) => {
  // Without a 2xx, the service sends the event again.
  receive(request, response).catch((error) => {
    console.error(error);
    response.destroy();
  });
}).listen(process.env.PORT ?? 4000, function () {
  console.log('listening on', this.address().port);
});
\`\`\`

**To test your receiver,** take the first example of [nomination](#webhook-com.service.etr.nomination). Its
body, as one line without spaces between members and without a line feed at its end, has the signature and the
\`kid\` that are the examples of \`X-Service-Signature\` and \`X-Service-Key-Id\`. Its key is
\`{"kty":"OKP","crv":"Ed25519","x":"PGSUW9hce72cU1SUUH2fgFfVCntnkL_EbzOPeY1fAEU"}\`. Or ask the operator for
a [test event](#operation-testSubscription).`,
};
