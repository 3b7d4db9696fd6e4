import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { Pool } from 'undici';
import { createLocalSetup } from '../chain/local-setup';
import { newState, type Engine } from '../database/engines';
import { undescribed } from '../described-answers';
import { residentMegabytes } from '../processes/process-memory';
import { rawRequest } from '../processes/raw-request';
import { startServiceProcess } from '../processes/service-process';
import { startRawReceiver } from '../receiver/raw-receiver';
import { stopLater } from '../resources';
import { History, type Place } from '../scenario';
import { requestsTo, type ChosenRequest } from './requests';

// A model test of bad input. The seed chooses requests from the description of the API: right ones, requests
// with one thing wrong, rubbish, and bytes that are no HTTP. Every answer must be one that is described, none
// may be an error without a code of its own, and the service must go on with bounded memory.

/** Requests of a seed. */
const REQUESTS = 100;
const RAW_REQUESTS = 10;
/** Long enough for a busy machine: it ends requests that hang. */
const ANSWER_WITHIN_MS = 60_000;
/** A service that was asked for nothing has about 150. */
const MOST_MEGABYTES = 500;
const API_KEY = 'key-of-the-requests';
const ADMIN_API_KEY = 'admin-key-of-the-requests-0123456789';

/**
 * Starts a service in a process of its own, to which seeds send requests one after the other. Undefined if
 * the engine is not installed.
 */
export async function createRequestPlace(engine: Engine): Promise<Place | undefined> {
  const state = await newState(engine);
  if (state === undefined) return undefined;
  const local = await createLocalSetup();
  const receiver = await startRawReceiver();
  const service = await startServiceProcess({
    ...local.settings,
    ...state.settings,
    API_KEY,
    ADMIN_API_KEY,
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_URL: receiver.url,
  });
  const pool = new Pool(service.url, { headersTimeout: ANSWER_WITHIN_MS, bodyTimeout: ANSWER_WITHIN_MS });
  stopLater('the pool', () => pool.close());
  const requests = requestsTo({
    apiKey: API_KEY,
    adminApiKey: ADMIN_API_KEY,
    sink: receiver.url,
    registry: local.registryAddress,
  });

  async function run(seed: number): Promise<History> {
    const history = new History(seed);
    const note = (answered: string, problem: string | undefined, asked: string): void => {
      history.count(answered);
      if (problem === undefined) history.note(`${asked} → ${answered}`);
      else history.violation(`${asked} → ${answered}: ${problem}`);
    };
    for (const chosen of fc.sample(requests, { seed, numRuns: REQUESTS })) {
      const asked = shown(chosen);
      await send(pool, chosen).then(
        ({ answered, problem }) => note(answered, problem, asked),
        (error: unknown) => note('no answer', String(error), asked),
      );
    }
    for (const bytes of fc.sample(rawBytes(), { seed, numRuns: RAW_REQUESTS })) {
      const answered = await sendRaw(service.url, bytes);
      note(`raw ${answered}`, /^(4\d\d|200|nothing)$/.test(answered) ? undefined : 'unexpected', bytes);
    }
    await removeSubscriptions(pool);
    const megabytes = residentMegabytes(service.pid) ?? 0;
    if (megabytes > MOST_MEGABYTES) history.violation(`the service has ${megabytes.toFixed(0)} MB`);
    return history;
  }

  return { run };
}

function shown({ method, target, headers, body }: ChosenRequest): string {
  return `${method} ${target} ${JSON.stringify(headers)} ${body?.toString('latin1').slice(0, 2_000) ?? ''}`;
}

async function send(
  pool: Pool,
  { method, target, headers, body }: ChosenRequest,
): Promise<{ answered: string; problem: string | undefined }> {
  const answer = await pool.request({
    path: target,
    method: method,
    headers,
    body: method === 'GET' || method === 'HEAD' ? null : (body ?? null),
  });
  const text = await answer.body.text();
  const { statusCode: status } = answer;
  const found = new Headers(
    Object.entries(answer.headers).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const code = found.get('X-Error-Code');
  const path = target.split('?')[0] ?? '';
  const problem =
    method === 'OPTIONS' ? undefined : undescribed({ method, path, status, headers: found, body: text });
  const answered = code === null ? String(status) : `${status} ${code}`;
  return { answered, problem: code === 'INTERNAL' ? 'an error without a code of its own' : problem };
}

/** Bytes on a connection: rubbish, and heads with rubbish in them. */
function rawBytes(): fc.Arbitrary<string> {
  const rubbish = fc.string({ unit: 'binary-ascii', maxLength: 200 });
  const line = fc.constantFrom(
    'Content-Length: 5',
    'Content-Length: x',
    'Transfer-Encoding: chunked',
    'Expect: y',
  );
  const head = fc
    .tuple(
      fc.constantFrom('GET / HTTP/1.1', 'POST /create/x HTTP/1.1', 'GET % HTTP/1.1', 'G / HTTP/9'),
      line,
      rubbish,
    )
    .map(([first, second, third]) => `${first}\r\nHost: x\r\n${second}\r\nX: ${third}\r\n\r\n${third}`);
  return fc.oneof(
    rubbish.map((text) => `${text}\r\n\r\n`),
    head,
  );
}

/** The status of the answer, or `nothing` if the connection ends without one. */
async function sendRaw(url: string, bytes: string): Promise<string> {
  const sent = await rawRequest(url, bytes);
  sent.socket.end();
  await sent.ended();
  const [, status = 'nothing'] = /^HTTP\/1\.1 (\d{3}) /.exec(sent.answer()) ?? [];
  return status;
}

/** Many subscriptions would make each later document slower. */
async function removeSubscriptions(pool: Pool): Promise<void> {
  const headers = { Authorization: `Bearer ${ADMIN_API_KEY}` };
  const { body } = await pool.request({ method: 'GET', path: '/subscriptions?limit=100', headers });
  for (const { id } of (await body.json()) as { id: string }[])
    if (id !== 'default') {
      const removed = await pool.request({
        method: 'DELETE',
        path: `/subscriptions/${id}?force=true`,
        headers,
      });
      await removed.body.dump();
    }
}
