import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Wallet } from 'ethers';
import * as fc from 'fast-check';
import { Pool } from 'undici';
import { ERROR_CODES, messageOf, type ErrorCode } from '../../../service/base/errors';
import { createLocalSetup } from '../chain/local-setup';
import { largeDocument } from '../credentials/large-document';
import { newState, type Engine } from '../database/engines';
import { undescribed } from '../described-answers';
import { eventually } from '../eventually';
import { collected } from '../evidence-files';
import { create, type CreateAnswer } from '../processes/create-call';
import { whileProbing } from '../processes/prober';
import {
  childrenOf,
  collectedMegabytes,
  forgetPeak,
  measuredProcess,
  peakMegabytes,
} from '../processes/process-memory';
import { rawRequest, textOf } from '../processes/raw-request';
import { startReceiverProcess, type ReceiverProcess } from '../processes/receiver-process';
import { startServiceProcess, type ServiceProcess } from '../processes/service-process';
import { startRawReceiver } from '../receiver/raw-receiver';
import { sampleEvent, sampleRetraction } from '../receiver/signed-delivery';
import { stopLater } from '../resources';
import { History, type Place } from '../scenario';
import { temporaryFolder } from '../temporary-folder';
import { commandsTo, INPUT, runCommand, type CommandSurroundings } from './commands';
import { giantsTo, requestsTo, type ChosenRequest, type Surroundings } from './requests';
import { CODES, problemOfLog, problemOfText } from './rules';
import { escapedRun, UNITS } from './values';

// A model test of bad input. The seed chooses requests from the description of the API, and commands of
// `tdoc` from their definitions: right ones, ones with one thing wrong, texts of every length and alphabet,
// rubbish, and bytes that are no HTTP, also for the reference receiver. Every answer must be one that is
// described, none may be an error without a code of its own, and nothing that people read may have control
// characters, a stack, or a long part of what was sent. Afterwards the service and the receiver are the same
// processes with the same memory, and a document is issued and delivered.

/** Requests of a seed. */
const REQUESTS = 100;
const COMMANDS = 15;
const RAW_REQUESTS = 10;
/** A seed of so many has bodies of up to 48 MB too, which take seconds. */
const GIANTS_EVERY = 8;
const GIANTS = 1;
/** Characters of an attachment. The answer of POST /create fits into a body, too. */
const LARGE_MEGABYTES = 46;
/** Long enough for a busy machine: it ends requests that hang. */
const ANSWER_WITHIN_MS = 120_000;
/**
 * The most memory of the service at any time: the heap of a signing thread, and the documents outside of it;
 * and that of a process that checks. No flag limits their heaps: it would replace the limits of the service.
 */
const MOST_MEGABYTES = 2_000;
const MOST_CHECKING_MEGABYTES = 2_500;
const RECEIVER_HEAP_MEGABYTES = 64;
/** Memory that a process may keep after a seed, such as caches and compiled code. */
const MOST_KEPT_MEGABYTES = 64;
/** A figure, not a rule: all processes share the processors of the machine. */
const SLOW_SECONDS = [0.2, 1, 5];
const LARGEST_CHECKED = 1_000_000;
const LONGEST_SHOWN = 400;
const API_KEY = 'key-of-the-requests';
const ADMIN_API_KEY = 'admin-key-of-the-requests-0123456789';
const OF_CREDENTIALS = ['verify-credential', 'derive', 'token', 'evidence', 'decrypt-remark', 'validate'];
const BILL_OF_LADING = { type: ['BillOfLading'], scac: 'SGPU', blNumber: 'SGCNM21566325' };

/** The answer's body. */
type Ask = (chosen: ChosenRequest) => Promise<Buffer>;
type Note = (answered: string, problem: string | undefined, asked: string) => void;

/** The processes that get the requests. */
interface Processes {
  service: ServiceProcess;
  receiver: ReceiverProcess;
  receiverUrl: string;
  pool: Pool;
  /** How each ended that did. */
  ended: string[];
  /** The memory of each before the first seed. */
  megabytes: [service: number, receiver: number];
}

/**
 * Starts a service and a receiver in processes of their own, to which seeds send requests one after the
 * other. Undefined if the engine is not installed.
 */
export async function createRequestPlace(engine: Engine): Promise<Place | undefined> {
  const state = await newState(engine);
  if (state === undefined) return undefined;
  const local = await createLocalSetup();
  const sink = await startRawReceiver();
  const folder = temporaryFolder().path;
  const settings = { ...local.settings, ...state.settings };
  let places = 0;

  async function start(): Promise<Processes> {
    const receiverFolder = join(folder, `receiver-${places++}`);
    mkdirSync(receiverFolder);
    const file = { WEBHOOK_PUBLIC_KEY_FILE: local.publicKeyFile };
    const receiver = startReceiverProcess(receiverFolder, {
      ...file,
      ...measuredProcess(RECEIVER_HEAP_MEGABYTES),
    });
    const receiverUrl = await receiver.listening();
    const keys = { API_KEY, ADMIN_API_KEY, SECRETS_KEY: randomBytes(32).toString('base64') };
    const service = await startServiceProcess({
      ...settings,
      ...keys,
      ...measuredProcess(),
      WEBHOOK_URL: receiverUrl,
    });
    // Without connections that are kept alive: the service may close one as this process, long busy, uses it.
    const times = { headersTimeout: ANSWER_WITHIN_MS, bodyTimeout: ANSWER_WITHIN_MS };
    const pool = new Pool(service.url, { ...times, pipelining: 0 });
    stopLater('the pool', () => pool.destroy());
    const ended: string[] = [];
    const tell = (name: string, code: number | null, output: string): void =>
      void ended.push(`the ${name} ended with ${code}: ${output.slice(-LONGEST_SHOWN)}`);
    void service.ended.then((code) => tell('service', code, service.output()));
    void receiver.ended.then((code) => tell('receiver', code, receiver.errors()));
    const started = { service, receiver, receiverUrl, pool, ended };
    await issue(started, local.accounts);
    return { ...started, megabytes: [await collectedMegabytes(service), await collectedMegabytes(receiver)] };
  }

  let processes = await start();
  const { body: issued } = await issue(processes, local.accounts);
  const credential = issued.signedW3CDocument;
  const surroundings: Surroundings = {
    apiKey: API_KEY,
    adminApiKey: ADMIN_API_KEY,
    sink: sink.url,
    registry: local.registryAddress,
    credential,
    tokenId: credential.credentialStatus.tokenId,
  };
  const requests = requestsTo(surroundings);
  const giants = giantsTo(surroundings);
  const ofCommands = await commandSurroundings();
  const commands = commandsTo(ofCommands);

  async function commandSurroundings(): Promise<CommandSurroundings> {
    const { pool } = processes;
    const derived = await askJson(pool, 'POST', '/credentials/derive', {
      verifiableCredential: credential,
      options: { selectivePointers: ['/credentialSubject/blNumber'] },
    });
    const parties = { owner: local.accounts[1], holder: local.accounts[1] };
    const registry = { network: '31337', address: local.registryAddress };
    const address = `0x${'aB'.repeat(20)}`;
    const evidence = await collected(local, BigInt(`0x${surroundings.tokenId}`), {
      credential: { ...credential },
    });
    const document = { url: 'https://x.invalid/', problem: `leads to ${address}` };
    const refuted = { ...evidence.credential, documents: [document] };
    return {
      folder: join(folder, 'commands'),
      // A wallet without rights: commands would pause the registry otherwise.
      settings: { ...settings, WALLET_PRIVATE_KEY: Wallet.createRandom().privateKey },
      formats: [
        ...[credential, issued, derived.verifiableCredential].map((value) => ({ value, of: OF_CREDENTIALS })),
        { value: evidence, of: ['check-evidence'] },
        { value: { ...evidence, credential: refuted }, of: ['check-evidence'] },
        {
          value: { ...parties, remarks: 'shipped on board', credentialSubject: BILL_OF_LADING },
          of: ['validate'],
        },
        { value: BILL_OF_LADING, of: ['validate'] },
        {
          value: { sink: sink.url, protocol: 'HTTP', types: ['com.service.etr.minted'] },
          of: ['create', 'update'],
        },
        { value: registry, of: [] },
        {
          value: [1, 2].flatMap((number) => [sampleEvent(number), sampleRetraction(number)]),
          of: ['states'],
          areLines: true,
        },
      ],
      did: JSON.parse(readFileSync(join(local.folder, 'did.json'), 'utf8')) as unknown,
      config: { webhook: { url: sink.url, headers: { 'X-Tenant': 'acme' } }, registries: [registry] },
      words: { token: surroundings.tokenId, address: local.registryAddress, id: 'default', name: '31337' },
    };
  }

  async function run(seed: number): Promise<History> {
    const history = new History(seed);
    const note: Note = (answered, problem, asked) => {
      history.count(answered);
      if (problem === undefined) history.note(`${asked} → ${answered}`);
      else history.violation(`${asked} → ${answered}: ${problem}`);
    };
    const ask: Ask = async (chosen) => {
      const asked = shown(chosen);
      return send(processes.pool, chosen).then(
        ({ answered, problem, body }) => {
          note(answered, problem, asked);
          return body;
        },
        (error: unknown) => {
          note('no answer', String(error), asked);
          return Buffer.alloc(0);
        },
      );
    };
    const logged = processes.service.output().length;
    const probed = await whileProbing(processes.service.url, () => sendAll(seed, ask, note));
    if (probed === undefined) history.violation('GET / is not answered any more');
    const times = probed?.times ?? [];
    for (const seconds of SLOW_SECONDS)
      history.count(
        `GET / beside others took more than ${seconds} s`,
        times.filter((ms) => ms > seconds * 1_000).length,
      );
    await history.of(isAsBefore(history, logged));
    return history;
  }

  async function sendAll(seed: number, ask: Ask, note: Note): Promise<void> {
    for (const chosen of fc.sample(requests, { seed, numRuns: REQUESTS })) await ask(chosen);
    for (const bytes of fc.sample(rawBytes(), { seed, numRuns: RAW_REQUESTS })) {
      for (const url of [processes.service.url, processes.receiverUrl]) {
        const answered = await sendRaw(url, bytes).catch(String);
        const isRight = /^(4\d\d|200|503|nothing)$/.test(answered);
        note(`raw ${answered}`, isRight ? undefined : 'unexpected', beginningOf(bytes));
      }
    }
    for (const chosen of fc.sample(commands, { seed, numRuns: COMMANDS })) {
      const args = chosen.args.map((text) => text.slice(0, LONGEST_SHOWN));
      const asked = `tdoc ${JSON.stringify(args)} ${beginningOf(chosen.files[INPUT])}`;
      await runCommand(chosen, ofCommands).then(
        ({ answered, problem }) => note(answered, problem, asked),
        (error: unknown) => note('tdoc rejected', String((error as Error).stack), asked),
      );
    }
    if (seed % GIANTS_EVERY === 0) {
      for (const chosen of fc.sample(giants, { seed, numRuns: GIANTS })) await ask(chosen);
      await askForLargeDocuments(ask, seed);
    }
  }

  /** Whatever POST /create accepts is verified and derived, whatever characters it has. */
  async function askForLargeDocuments(ask: Ask, seed: number) {
    const unit = UNITS[(seed / GIANTS_EVERY) % UNITS.length] ?? '';
    const headers = { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json' };
    const to = (target: string, body: Buffer) => ask({ method: 'POST', target, headers, body });
    const attached = largeDocument(local.accounts[1] ?? '', LARGE_MEGABYTES).toString();
    const without = attached.replace(/"attachments":\[.*?\],?/, '').replace(/,}/, '}');
    for (const [json, bytes] of [
      [attached, unit.length],
      [without, 45_000_000],
    ] as const) {
      const vessel = `"vessel":"${escapedRun(unit, bytes)}"`;
      const answer = (
        await to('/create/BILL_OF_LADING', Buffer.from(json.replace('"scac"', `${vessel},"scac"`)))
      ).toString();
      const begin = '{"signedW3CDocument":';
      if (!answer.startsWith(begin)) continue;
      const document = answer.slice(begin.length, answer.lastIndexOf(',"txHash"'));
      const options = '"options":{"selectivePointers":["/credentialSubject/blNumber"]}';
      await to('/credentials/verify', Buffer.from(`{"verifiableCredential":${document}}`));
      await to('/credentials/derive', Buffer.from(`{"verifiableCredential":${document},${options}}`));
    }
  }

  async function isAsBefore(history: History, logged: number): Promise<void> {
    const { service, receiver, pool, megabytes } = processes;
    // The end of a process is told later than the end of its connections.
    const isEnded = (): boolean => processes.ended.length > 0;
    await askJson(pool, 'GET', '/health').catch(() => eventually('the end of a process', isEnded));
    if (isEnded()) {
      for (const problem of processes.ended) history.violation(problem);
      await service.end('SIGKILL');
      receiver.kill('SIGKILL');
      processes = await start();
      return;
    }
    for (const pid of [service.pid, ...childrenOf(service.pid)]) {
      const peak = peakMegabytes(pid) ?? 0;
      const [name, most] =
        pid === service.pid ? ['service', MOST_MEGABYTES] : ['process that checks', MOST_CHECKING_MEGABYTES];
      history.note(`the ${name} took ${peak.toFixed(0)} MB`);
      if (peak > most) history.violation(`the ${name} took ${peak.toFixed(0)} MB`);
      forgetPeak(pid);
    }
    await restoreSubscriptions(pool);
    const problem = problemOfLog(service.output().slice(logged));
    if (problem !== undefined) history.violation(`the log has ${problem}`);
    await eventually('/health is as before', async () => {
      const { status, conditions } = (await askJson(pool, 'GET', '/health')) as {
        status: string;
        /** Undefined while the database is busy. */
        conditions?: [];
      };
      return status === 'ok' && conditions?.length === 0;
    });
    await issue(processes, local.accounts);
    // An answer of a large document is held until its connection has sent it.
    for (const [index, of] of [service, receiver].entries())
      await eventually('the memory of a process is as before', async () => {
        return (await collectedMegabytes(of)) - (megabytes[index] ?? NaN) <= MOST_KEPT_MEGABYTES;
      }).catch((error: unknown) => history.violation(messageOf(error)));
    if (
      !receiver
        .errors()
        .split('\n')
        .every((line) => line.length < 200)
    )
      history.violation(`the receiver prints ${receiver.errors().slice(-1_000)}`);
  }

  return { run };
}

/** Issues a document, and waits until its webhook has arrived. */
async function issue(
  { service, receiver }: Pick<Processes, 'service' | 'receiver'>,
  [, owner]: readonly string[],
): Promise<CreateAnswer> {
  const body = { owner, holder: owner, credentialSubject: BILL_OF_LADING };
  const answer = await create(service.url, body, { headers: { Authorization: `Bearer ${API_KEY}` } });
  if (answer.status !== 200) throw new Error(`POST /create answers ${answer.status} ${answer.errorCode}`);
  const { txHash } = answer.body;
  await eventually('its webhook arrives', () =>
    receiver.lines().some((line) => line.transactionHash === txHash && String(line.type).endsWith('.minted')),
  );
  return answer;
}

async function askJson(pool: Pool, method: 'GET' | 'POST' | 'PUT', path: string, body?: unknown) {
  const headers = { Authorization: `Bearer ${ADMIN_API_KEY}`, 'Content-Type': 'application/json' };
  const answer = await pool.request({
    method,
    path,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  return (await answer.body.json()) as Record<string, unknown>;
}

/** Long enough to see the kind of the request. The seed makes the whole again. */
function shown({ method, target, headers, body }: ChosenRequest): string {
  return `${method} ${target.slice(0, LONGEST_SHOWN)} ${JSON.stringify(headers)} ${beginningOf(body)}`;
}

function beginningOf(text: string | Buffer | undefined): string {
  return JSON.stringify(String(text?.slice(0, LONGEST_SHOWN) ?? ''));
}

async function send(
  pool: Pool,
  { method, target, headers, body }: ChosenRequest,
): Promise<{ answered: string; problem: string | undefined; body: Buffer }> {
  const answer = await pool.request({
    path: target,
    method: method,
    headers,
    body: method === 'GET' || method === 'HEAD' ? null : (body ?? null),
  });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  const { statusCode: status } = answer;
  const found = new Headers(
    Object.entries(answer.headers).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const code = found.get('X-Error-Code');
  const path = target.split('?')[0] ?? '';
  const text = bytes.length > LARGEST_CHECKED ? undefined : bytes.toString();
  const described =
    method === 'OPTIONS' ? undefined : undescribed({ method, path, status, headers: found, body: text });
  const answered = code === null ? String(status) : `${status} ${code}`;
  const problem = described ?? (code === null ? undefined : problemOfError(status, code, bytes.toString()));
  return { answered, problem, body: bytes };
}

/** The error's message is read by people; JSON hides its control characters. */
function problemOfError(status: number, code: string, body: string): string | undefined {
  // Nodes, database and keys are well, so every 500 is one that the caller has to correct.
  if (status === 500 && ERROR_CODES[code as ErrorCode].actor !== 'caller')
    return 'the caller did not cause it';
  if (!CODES.has(code)) return 'docs/error-codes.md does not have the code';
  if (body === '') return undefined;
  const { error } = JSON.parse(body) as { error: { message: string } };
  const problem = problemOfText(JSON.stringify(error)) ?? problemOfText(error.message);
  return problem && `${problem} in the message ${JSON.stringify(error.message.slice(0, 1_000))}`;
}

const CHUNKED = { Authorization: `Bearer ${API_KEY}`, 'Transfer-Encoding': 'chunked' };

/** Bytes on a connection: rubbish, heads with rubbish in them, unfinished bodies, and many requests. */
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
  const singleBytes = fc
    .constantFrom(1, 20_000)
    .map((count) => `${textOf('POST /create/BILL_OF_LADING', CHUNKED)}${'1\r\nx\r\n'.repeat(count)}`);
  const unfinished = fc
    .constantFrom(1, 60_000, 900_000)
    .map((length) =>
      textOf('POST /create/BILL_OF_LADING', { 'Content-Length': length + 1 }, 'x'.repeat(length)),
    );
  const pipelined = fc.constantFrom(2, 100).map((count) => textOf('GET /', {}).repeat(count));
  return fc.oneof(
    rubbish.map((text) => `${text}\r\n\r\n`),
    head,
    ...[singleBytes, unfinished, pipelined],
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

/** Many subscriptions would make each later document slower, and requests may pause that of the settings. */
async function restoreSubscriptions(pool: Pool): Promise<void> {
  await askJson(pool, 'PUT', '/subscriptions/default', { config: { state: 'active' } });
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
