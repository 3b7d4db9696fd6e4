import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { signingKeyOf } from '../../service/base/signing-keys';
import { inheritedEnvironment } from '../../service/config/config';
import { createWebhookClient, newWebhookSecret } from '../../service/delivery/attempt-delivery';
import { TEXTS } from '../../client/description/openapi';
import { eventually } from '../helpers/eventually';
import { webhookTo } from '../helpers/receiver/webhook-to';
import { codeBlocks, readDocument } from '../helpers/pages/markdown';
import { startHttpApp } from '../helpers/processes/http-app';
import { startRawReceiver } from '../helpers/receiver/raw-receiver';
import { post, sampleEvent, sampleTest, type Delivery } from '../helpers/receiver/signed-delivery';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';

/** Skips the test, and says why, if this command does not work. */
function needs(test: Mocha.Context, missing: string, command: string, args: string[]): void {
  if (spawnSync(command, args).status === 0) return;
  console.log(`      skipped: ${missing}`);
  test.skip();
}

describe('programs of docs/webhooks.md and of the API description', () => {
  const { section, code } = readDocument('docs/webhooks.md');
  const home = temporaryFolder();
  const event = sampleEvent(1);
  /** It has no `subject`. */
  const testEvent = sampleTest(1);
  const secret = newWebhookSecret();
  const { privateKey } = generateKeyPairSync('ed25519');
  let genuine: Delivery;
  let genuineTest: Delivery;
  /** One byte of the body is another. */
  let changed: Delivery;
  let folder: string;

  before(async () => {
    const receiver = await startRawReceiver();
    const signingKeys = { key: signingKeyOf(privateKey), next: undefined };
    const target = { ...webhookTo(receiver.url), signingKeys, standardWebhooks: { secret } };
    const client = createWebhookClient(target, systemTime);
    for (const sent of [event, testEvent]) await client.post(JSON.stringify(sent), sent.id);
    await client.close();
    await receiver.close();
    const [delivery, ofTest] = receiver.deliveries.map(({ body, headers }) => ({
      body,
      headers: sentHeaders(headers),
    }));
    if (!delivery || !ofTest) throw new Error('nothing was delivered');
    [genuine, genuineTest] = [delivery, ofTest];
    const body = Buffer.from(delivery.body);
    body[body.length - 3]! ^= 1;
    changed = { ...genuine, body };
  });
  beforeEach(() => {
    folder = mkdtempSync(join(home.path, 'program-'));
    const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' });
    writeFileSync(join(folder, 'webhook-public-key.pem'), publicKey);
  });

  it('in Python: the receiver accepts genuine deliveries and refuses changed ones', async function () {
    needs(this, 'Python 3 with the package cryptography is missing', 'python3', [
      '-c',
      'import cryptography',
    ]);
    writeFileSync(join(folder, 'verify.py'), code('With Python', 'python'));
    await expectToVerify('python3', ['verify.py']);
  });

  it('in Node.js: the receiver accepts genuine deliveries and refuses changed ones', async () => {
    writeFileSync(join(folder, 'verify.mjs'), code('With Node.js', 'js'));
    await expectToVerify(process.execPath, ['verify.mjs']);
  });

  it('in the API description: the receiver accepts genuine deliveries and refuses changed ones', async () => {
    const signingKeys = { key: signingKeyOf(privateKey), next: undefined };
    const service = await startHttpApp({ signingKeys });
    const [program = ''] = codeBlocks({ heading: 'Webhooks', text: TEXTS.Webhooks ?? '' }, 'js');
    writeFileSync(join(folder, 'receiver.mjs'), program);
    await expectToVerify(process.execPath, ['receiver.mjs'], { SERVICE_URL: service.url });
    await service.close();
  });

  it('for Standard Webhooks in Node.js: the receiver accepts genuine deliveries alone', async () => {
    symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'verify.mjs'), code('Standard Webhooks with Node.js', 'js'));
    await expectToVerify(process.execPath, ['verify.mjs']);
  });

  it('for Standard Webhooks in Python: the function accepts genuine deliveries alone', function () {
    needs(this, 'Python 3 is missing', 'python3', ['--version']);
    const call = `
import json, sys
given = json.load(sys.stdin)
print(is_genuine(given["secret"], given["headers"], given["body"].encode()))
`;
    const program = code('Standard Webhooks with Python', 'python') + call;
    const isGenuine = ({ headers, body }: Delivery, with_ = secret): string => {
      const input = JSON.stringify({ secret: with_, headers, body: body.toString() });
      return execFileSync('python3', ['-c', program], { input, cwd: folder }).toString().trim();
    };
    expect(isGenuine(genuine)).to.equal('True');
    expect(isGenuine(changed)).to.equal('False');
    expect(isGenuine(genuine, newWebhookSecret())).to.equal('False');
    expect(isGenuine({ ...genuine, headers: {} })).to.equal('False');
    const old = {
      ...genuine.headers,
      'webhook-timestamp': String(Math.floor(systemTime.now() / 1_000) - 301),
    };
    expect(isGenuine({ ...genuine, headers: old })).to.equal('False');
  });

  it('with openssl, also for Standard Webhooks: the commands accept genuine deliveries alone', function () {
    needs(this, 'openssl is missing', 'openssl', ['version']);
    const own = code('With openssl', 'sh');
    const [ofV1 = '', ofV1a = ''] = codeBlocks(section('Standard Webhooks with openssl'), 'sh');
    const run = (commands: string, { body, headers }: Delivery): string => {
      writeFileSync(join(folder, 'body.json'), body);
      const env = {
        ...inheritedEnvironment(),
        SIGNATURE: headers['x-service-signature'],
        WEBHOOK_ID: headers['webhook-id'],
        WEBHOOK_TIMESTAMP: headers['webhook-timestamp'],
        WEBHOOK_SIGNATURE: headers['webhook-signature'],
        WEBHOOK_SECRET: secret,
      };
      return spawnSync('sh', ['-c', commands], { cwd: folder, env }).stdout.toString();
    };
    for (const [delivery, answer, verified] of [
      [genuine, 'genuine\n', 'Signature Verified Successfully'],
      [changed, 'forged\n', 'Signature Verification Failure'],
    ] as const) {
      expect(run(ofV1, delivery)).to.equal(answer);
      for (const commands of [ofV1a, own]) expect(run(commands, delivery)).to.contain(verified);
    }
  });

  /** Starts a receiver, and expects it to accept the genuine deliveries only, and to print their events. */
  async function expectToVerify(command: string, args: string[], own = {}): Promise<void> {
    const env = { ...inheritedEnvironment(), PORT: '0', WEBHOOK_SECRET: secret, ...own };
    const program = spawn(command, args, { cwd: folder, env });
    stopLater(`${command} ${args.join(' ')} of the documentation`, () => program.kill());
    let output = '';
    for (const stream of [program.stdout, program.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    const port = await eventually('the program listens', () => {
      if (program.exitCode !== null) throw new Error(output);
      return /listening on (\d+)/.exec(output)?.[1];
    });
    const url = `http://127.0.0.1:${port}/`;
    expect(await post(url, genuine)).to.include({ status: 200 });
    expect(await post(url, genuineTest)).to.include({ status: 200 });
    expect(await post(url, changed)).to.deep.equal({ status: 401, text: 'Invalid signature' });
    expect(await post(url, { body: genuine.body, headers: {} })).to.include({ status: 401 });
    await eventually('the events are printed', () =>
      [event, testEvent].every(({ id }) => output.includes(id)),
    );
  }
});

/** The headers that belong to the delivery and not to its connection. */
function sentHeaders(headers: Record<string, string>): Record<string, string> {
  const own = Object.entries(headers).filter(([name]) => /^(content-type|x-service-|webhook-)/.test(name));
  return Object.fromEntries(own);
}
