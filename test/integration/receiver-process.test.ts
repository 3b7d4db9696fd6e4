import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { SETTINGS } from '../../service/config/settings';
import { eventually } from '../helpers/eventually';
import { peakMegabytes } from '../helpers/processes/process-memory';
import { rawRequest, textOf } from '../helpers/processes/raw-request';
import { RECEIVER, startReceiverProcess, type ReceiverProcess } from '../helpers/processes/receiver-process';
import { startEventStream } from '../helpers/receiver/event-stream';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import {
  newSender,
  post,
  sampleEvent,
  sampleRetraction,
  sampleTest,
} from '../helpers/receiver/signed-delivery';
import { temporaryFolder } from '../helpers/temporary-folder';

const EVENTS_FILE = '.receiver/received-events.jsonl';
/** Large enough that a reader can see half of a line that is being written. */
const padding = 'x'.repeat(100_000);

describe('receiver as a process', () => {
  const sender = newSender();
  const delivery = sender.signed(JSON.stringify(sampleEvent(1)));
  let folder: string;

  const start = (settings: Record<string, string> = {}, command?: string[]): ReceiverProcess =>
    startReceiverProcess(folder, settings, command);
  const stored = (): string => readFileSync(join(folder, EVENTS_FILE), 'utf8');

  beforeEach(() => {
    folder = temporaryFolder().path;
    writeFileSync(join(folder, 'webhook-public-key.pem'), sender.publicKeyPem);
  });

  it('prints its address, each new event on a line, and refusals as errors; SIGTERM ends it', async () => {
    const receiver = start();
    const url = await receiver.listening();
    const [event, retraction, test] = [sampleEvent(1), sampleRetraction(1), sampleTest(1)];
    for (const one of [event, event, retraction, test])
      expect((await post(url, sender.signed(JSON.stringify(one)))).status).to.equal(200);
    await post(url, newSender().signed(delivery.body));
    await eventually('all are printed', () => receiver.lines().length > 3);
    const { transactionHash, logIndex } = event.data;
    const namesOf = ({ type, id, subject }: typeof event | typeof retraction) => ({ type, id, subject });
    expect(receiver.lines()).to.deep.equal([
      { listening: url },
      { verified: true, ...namesOf(event), transactionHash, logIndex },
      { verified: true, ...namesOf(retraction), retracts: event.id },
      { verified: true, type: test.type, id: test.id, test: true },
    ]);
    expect(JSON.parse(receiver.errors())).to.deep.equal({ status: 401, reason: 'Invalid signature' });
    receiver.kill('SIGTERM');
    expect(await receiver.ended).to.equal(0);
  });

  it('with --retractions keeps the events from which tdoc states computes the state', async () => {
    const [event, retraction] = [sampleEvent(1), sampleRetraction(1)];
    // An event that is announced again after its retraction has another id and the same content.
    const again = { ...event, id: '01a20301-e52c-7491-a676-000000000099' };
    const receiver = start({}, [...RECEIVER, '--retractions']);
    const url = await receiver.listening();
    const file = join(folder, EVENTS_FILE);
    const { source, data } = event;
    const empty = { state: 'not minted', escrow: null, beneficiary: null, holder: null, nominee: null };
    const before = { source, tokenId: data.tokenId, ...empty };
    const after = { ...before, holder: data.payload.toHolder };
    for (const [one, state] of [
      [event, after],
      [retraction, before],
      [again, after],
    ] as const) {
      const delivery = sender.signed(JSON.stringify(one));
      const answers = [await post(url, delivery), await post(url, delivery)];
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200]);
      const { stdout, code } = await askTdocInProcess(['states', file, '--json'], {});
      expect({ state: JSON.parse(stdout) as unknown, code }).to.deep.equal({ state, code: 0 });
    }
    const incomplete = { type: 'com.service.etr.escrow_created', data: { ...data, payload: undefined } };
    const lines = [{ type: 'com.service.etr.split' }, incomplete].map((other) =>
      JSON.stringify({ ...event, id: '1', ...other }),
    );
    // Deeper than a program that prints it again has stack.
    const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`;
    lines.push(JSON.stringify(event).replace(JSON.stringify(data.payload.toHolder), deep));
    appendFileSync(file, `rubbish\nnull\n${lines.join('\n')}\n`);
    const { stdout, stderr } = await askTdocInProcess(['states', file], {});
    const { toHolder } = data.payload;
    expect(stdout).to.equal(`${source}  token ${data.tokenId}  not minted  holder ${String(toHolder)}\n`);
    expect(stderr).to.match(/^Line 4 was left out: it is no event\.\nLine 5 .*: it is no event\.\n/);
    expect(stderr).to.match(/Line 6 .*: it is of no known type\.\nLine 7 .*: .* not as its schema says/);
    expect(stderr).to.match(/Line 8 .* not as its schema says: \/data\/payload\/toHolder must be string/);
    writeFileSync(file, 'rubbish');
    expect(await askTdocInProcess(['states', file], {})).to.include({ code: 2, stdout: '' });
  });

  it('fetches events, also after it was killed and without its cursor, and stores each once', async () => {
    const stream = await startEventStream();
    const command = [...RECEIVER, '--retractions', `--fetch=${stream.url}/events/stream?source=s`];
    const startFetching = (): ReceiverProcess => start({ RECEIVER_API_KEY: 'secret' }, command);
    const idsOf = ({ lines }: ReceiverProcess): unknown[] => lines().flatMap(({ id }) => id ?? []);
    const events = [1, 2, 3, 4].map((number) => sampleEvent(number));
    for (const event of events.slice(0, 3)) stream.record(event);

    const first = startFetching();
    await eventually('three are printed', () => idsOf(first).length === 3);
    await eventually('it waits', () => stream.requests.at(-1)?.query.after === 'c3');
    first.kill('SIGKILL');
    await first.ended;
    const [{ query, authorization } = {}] = stream.requests;
    expect(authorization).to.equal('Bearer secret');
    expect(query).to.deep.equal({ source: 's', retractions: 'true', wait: '30' });

    const second = startFetching();
    await eventually('it goes on', () => stream.requests.length > 3);
    expect(stream.requests.at(-1)?.query).to.include({ after: 'c3' });
    stream.record(events[3] ?? {});
    await eventually('the next is printed', () => idsOf(second).length > 0);
    expect(idsOf(second)).to.deep.equal([events[3]?.id]);
    second.kill('SIGTERM');
    expect([await second.ended, second.errors()]).to.deep.equal([0, '']);

    rmSync(join(folder, `${EVENTS_FILE}.cursor`));
    const third = startFetching();
    await eventually('it has fetched all', () => existsSync(join(folder, `${EVENTS_FILE}.cursor`)));
    await eventually('it waits again', () => stream.requests.at(-1)?.query.after === 'c4');
    expect([idsOf(third), stored()]).to.deep.equal([
      [],
      events.map((event) => `${JSON.stringify(event)}\n`).join(''),
    ]);
    third.kill('SIGINT');
    expect(await third.ended).to.equal(0);
  });

  it('asks for retractions only with --retractions, and tells of what is not an event', async () => {
    const stream = await startEventStream();
    stream.record({ specversion: '1.0' });
    const command = [...RECEIVER, `--fetch=${stream.url}/events/stream?subscription=s`];
    const receiver = start({ RECEIVER_API_KEY: 'secret' }, command);
    await eventually('it goes on', () => stream.requests.length > 1);
    const query = { subscription: 's', retractions: 'false', wait: '30' };
    expect(stream.requests.map((one) => one.query)).to.deep.equal([query, { ...query, after: 'c1' }]);
    receiver.kill('SIGTERM');
    expect([await receiver.ended, stored()]).to.deep.equal([0, '']);
    expect(receiver.errors()).to.equal('{"reason":"Not an event, left out. Its cursor is c1."}\n');
  });

  it('stops if the events after its cursor were removed, and says how to go on', async () => {
    const stream = await startEventStream();
    const error = JSON.stringify({ error: { message: 'They were removed.' }, cursor: 'c9' });
    stream.nextAnswers.push((response) =>
      response.writeHead(410, { 'X-Error-Code': 'CURSOR_EXPIRED' }).end(error),
    );
    const command = [...RECEIVER, `--fetch=${stream.url}/events/stream`];
    const receiver = start({ RECEIVER_API_KEY: 'secret' }, command);
    expect(await receiver.ended).to.equal(1);
    expect(receiver.errors()).to.match(
      /stopped\. They were removed\. Remove \.receiver\/.*\.jsonl\.cursor to/,
    );
  });

  it('takes settings from .env, but prefers the environment; SIGINT ends it', async () => {
    const own = "RECEIVER_HOST=::1\nRECEIVER_PORT=4000x\nRECEIVER_EVENTS_FILE='mine/events.jsonl' # …\n";
    writeFileSync(join(folder, '.env'), `WALLET_PRIVATE_KEY=0x12\n${own}`);
    const receiver = start();
    expect(await receiver.listening()).to.match(/^http:\/\/\[::1\]:\d+$/);
    expect(existsSync(join(folder, 'mine/events.jsonl'))).to.equal(true);
    receiver.kill('SIGINT');
    expect(await receiver.ended).to.equal(0);
  });

  it('takes settings from the file that ENV_FILE names instead', async () => {
    writeFileSync(join(folder, '.env'), 'RECEIVER_HOST=nowhere.invalid\n');
    writeFileSync(join(folder, 'tenant.env'), 'RECEIVER_EVENTS_FILE=tenant.jsonl\n');
    await start({ ENV_FILE: 'tenant.env' }).listening();
    expect(existsSync(join(folder, 'tenant.jsonl'))).to.equal(true);
  });

  it('loses nothing if others start on its port or its file and it is killed under load', async function () {
    // Node.js has no lock that macOS would free after SIGKILL.
    if (process.platform === 'darwin') this.skip();
    const first = start();
    const url = await first.listening();
    const sent = (number: number): string => JSON.stringify({ ...sampleEvent(number), padding });
    const acknowledged: number[] = [];
    let next = 0;
    let isKilled = false;
    const send = async (): Promise<void> => {
      while (!isKilled) {
        const number = next++;
        const status = await post(url, sender.signed(sent(number))).then(
          (answer) => answer.status,
          () => undefined,
        );
        if (status === 200) acknowledged.push(number);
        else if (!isKilled) throw new Error(`The answer to ${number} is ${status}.`);
      }
    };
    const load = Promise.all(Array.from({ length: 8 }, send));
    const others = ['0', new URL(url).port].map((RECEIVER_PORT) =>
      startReceiverProcess(folder, { RECEIVER_PORT }),
    );
    const outcomes = await Promise.race([load, Promise.all(others.map(outcomeOf))]);
    isKilled = true;
    for (const one of [first, ...others]) one.kill('SIGKILL');
    await Promise.all([load, ...[first, ...others].map(({ ended }) => ended)]);
    expect(outcomes[0]).to.match(/^1: .*Another receiver uses .* Stop it/);
    expect(outcomes[1]).to.match(/^1: .*EADDRINUSE.* Set RECEIVER_PORT to a free port/);

    const second = start();
    const restarted = await second.listening();
    const lines = new Set(stored().split('\n'));
    expect(acknowledged.length).to.be.above(0);
    expect(acknowledged.filter((number) => !lines.has(sent(number)))).to.deep.equal([]);
    for (const number of acknowledged.slice(-20))
      expect((await post(restarted, sender.signed(sent(number)))).status).to.equal(200);
    second.kill('SIGTERM');
    await second.ended;
    expect(second.errors()).to.equal('');
    expect(stored().trimEnd().split('\n')).to.have.length(lines.size - 1);
  });

  it('answers 500 to an event too big for the disk, keeps none of it, and takes the next', async function () {
    if (process.platform === 'win32') this.skip();
    // Files are limited to 512 bytes. The limit would truncate the coverage report too.
    const onSmallDisk = ['sh', '-c', 'ulimit -f 1; exec "$0" "$@"', ...RECEIVER];
    const url = await start({ NODE_V8_COVERAGE: '' }, onSmallDisk).listening();
    const { transactionHash, logIndex } = sampleEvent(2).data;
    const type = 'com.service.etr.shred';
    const small = { specversion: '1.0', id: 'small', source: 's', type, data: { transactionHash, logIndex } };
    const large = { ...sampleEvent(1), padding: 'x'.repeat(10_000) };
    expect((await post(url, sender.signed(JSON.stringify(large)))).status).to.equal(500);
    expect((await post(url, sender.signed(JSON.stringify(small)))).status).to.equal(200);
    expect(stored()).to.equal(`${JSON.stringify(small)}\n`);
  });
});

describe('receiver under unfinished requests', () => {
  let receiver: ReceiverProcess;
  let url: string;

  beforeEach(async () => {
    const folder = temporaryFolder().path;
    writeFileSync(join(folder, 'webhook-public-key.pem'), newSender().publicKeyPem);
    receiver = startReceiverProcess(folder, {});
    url = await receiver.listening();
  });

  it('keeps its memory, also if bodies come in single bytes, and prints a line for each', async function () {
    if (peakMegabytes(receiver.pid) === undefined) return this.skip();
    const heads = { whole: { 'Content-Length': 1_000_000 }, single: { 'Transfer-Encoding': 'chunked' } };
    const whole = textOf('POST /', heads.whole, 'x'.repeat(999_999));
    const single = textOf('POST /', heads.single, '1\r\nx\r\n'.repeat(100_000));
    const texts = Array.from({ length: 200 }, (_, index) => (index % 20 === 0 ? single : whole));
    const sent = await Promise.all(texts.map((text) => rawRequest(url, text)));
    await eventually('all is sent', () => sent.every(({ socket }) => socket.writableLength === 0));
    expect((await fetch(url)).status).to.equal(405);
    expect(peakMegabytes(receiver.pid)).to.be.below(250);
    for (const { socket } of sent) socket.destroy();
    await eventually('a line for each', () => receiver.errors().split('\n').length > sent.length);
    const lines = new Set(receiver.errors().trimEnd().split('\n'));
    expect([...lines].map((line) => JSON.parse(line) as unknown)).to.deep.equal([
      { status: 405, reason: 'Method not allowed' },
      { status: 400, reason: 'Body not complete' },
    ]);
  });
});

describe('a receiver that ends at once', () => {
  const wrong: [string, Record<string, string>, RegExp, string?][] = [
    ['no key', { WEBHOOK_PUBLIC_KEY_FILE: 'absent.pem' }, /WEBHOOK_PUBLIC_KEY_FILE.*npx tdoc signing-key/],
    ['a file that is not a key', { WEBHOOK_PUBLIC_KEY_FILE: 'text.pem' }, /not an Ed25519 public key/],
    ['a private key', { WEBHOOK_PUBLIC_KEY_FILE: 'private.pem' }, /private key, which must stay/],
    [
      'both a key and the URL of keys',
      { WEBHOOK_PUBLIC_KEY_FILE: 'text.pem', RECEIVER_JWKS_URL: 'https://trade.example/jwks.json' },
      /RECEIVER_JWKS_URL and WEBHOOK_PUBLIC_KEY_FILE are both set/,
    ],
    [
      'a URL of keys over http on another machine',
      { RECEIVER_JWKS_URL: 'http://trade.example/jwks.json' },
      /RECEIVER_JWKS_URL is not an https URL.*https:\/\/trade\.example\.com\/\.well-known\/jwks\.json/,
    ],
    [
      'a URL of keys that is no URL',
      { RECEIVER_JWKS_URL: 'trade.example' },
      /RECEIVER_JWKS_URL is not an https/,
    ],
    [
      'a URL of keys with a password',
      { RECEIVER_JWKS_URL: 'https://me:pass@trade.example/jwks.json' },
      /^(?!.*me:pass).*RECEIVER_JWKS_URL is not an https URL/,
    ],
    [
      'an events file that cannot be written',
      { RECEIVER_EVENTS_FILE: 'text.pem/events.jsonl' },
      /^The receiver stopped\. The events file text\.pem\/events\.jsonl cannot be.*set RECEIVER_EVENTS_FILE[^\n]*\n$/,
    ],
    ['a port that is no number', { RECEIVER_PORT: '4000x' }, /RECEIVER_PORT is "4000x"\. Set it to a number/],
    [
      '--port out of range, which wins over RECEIVER_PORT',
      { RECEIVER_PORT: '65535' },
      /RECEIVER_PORT is "65536"/,
      '--port=65536',
    ],
    [
      'an ENV_FILE that is absent',
      { ENV_FILE: 'absent.env' },
      /ENV_FILE: the file absent\.env cannot be read/,
    ],
    [
      '--fetch over http from another machine',
      {},
      /--fetch is not an https URL.*com\/events\/stream/,
      '--fetch=http://trade.example/events/stream',
    ],
    [
      '--fetch without a key',
      {},
      /RECEIVER_API_KEY is not set/,
      '--fetch=https://trade.example/events/stream',
    ],
    ['an unknown argument', {}, /Unknown option '--prot'.*--help/, '--prot=4000'],
  ];
  const folder = temporaryFolder();
  const start = (settings: Record<string, string>, argument: string[] = []): ReceiverProcess =>
    startReceiverProcess(folder.path, settings, [...RECEIVER, ...argument]);
  let refused: ReceiverProcess[];
  let helping: ReceiverProcess[];

  // Side by side: they wait for the disk more than for a processor.
  before(() => {
    writeFileSync(join(folder.path, 'webhook-public-key.pem'), newSender().publicKeyPem);
    writeFileSync(join(folder.path, 'text.pem'), 'not a key');
    writeFileSync(join(folder.path, 'private.pem'), '-----BEGIN PRIVATE KEY-----\n');
    refused = wrong.map(([, settings, , argument]) =>
      start(settings, argument === undefined ? [] : [argument]),
    );
    helping = ['--help', '-h'].map((argument) =>
      start({ WEBHOOK_PUBLIC_KEY_FILE: 'absent.pem' }, [argument]),
    );
  });

  for (const [index, [what, , message]] of wrong.entries())
    it(`does not start with ${what}, and explains the problem`, async () => {
      const receiver = refused[index];
      expect(await receiver?.ended).to.equal(1);
      expect(receiver?.errors()).to.match(message);
      expect(receiver?.output()).to.equal('');
    });

  it('prints its purpose and settings with --help and -h, and starts nothing', async () => {
    const codes = await Promise.all(helping.map(({ ended }) => ended));
    const [long, short] = helping.map((one, index) => [codes[index], one.errors(), one.output()] as const);
    expect(long?.slice(0, 2)).to.deep.equal([0, '']);
    for (const name of Object.keys(SETTINGS).filter((one) => /^RECEIVER_|^WEBHOOK_.*_FILE$/.test(one)))
      expect(long?.[2]).to.contain(name);
    expect(short).to.deep.equal(long);
  });
});

/** The exit code and the errors of a receiver that does not start; or that it listens. */
async function outcomeOf(receiver: ReceiverProcess): Promise<string> {
  const ended = receiver.ended.then((code) => `${code}: ${receiver.errors()}`);
  const listens = receiver.listening().then(() => 'listens');
  return Promise.race([ended, listens.catch(() => ended)]);
}
