import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { CORS_HEADERS } from '../../service/http/gate';
import { serve } from '../helpers/http-server';
import { startRawReceiver } from '../helpers/receiver/raw-receiver';
import { startRecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startReceiver } from '../helpers/receiver/running-receiver';
import {
  newSender,
  post,
  sampleEvent,
  sampleRetraction,
  sampleTest,
} from '../helpers/receiver/signed-delivery';
import { temporaryFolder } from '../helpers/temporary-folder';
import { everythingIsAsDescribed } from '../helpers/violations';

// Most tests look at few members of what they receive. That the others are as described is seen here only.
describe('what a test receives', () => {
  /** GET /registries of a server that gives this answer. */
  async function answer(status: number, headers: Record<string, string>, body: object): Promise<void> {
    await using server = await serve((_, response) =>
      response
        .writeHead(status, { ...CORS_HEADERS, 'Content-Type': 'application/json', ...headers })
        .end(JSON.stringify(body)),
    );
    await (await fetch(`${server.url}/registries`)).text();
  }

  it('may be an answer that is described', async () => {
    await answer(200, {}, { registries: [] });
    expect(everythingIsAsDescribed).not.to.throw();
  });

  const ERROR = { error: { message: 'no' } };
  for (const [what, status, headers, body, problem] of [
    ['member', 200, {}, { registries: [], more: 1 }, /must NOT have additional properties/],
    ['lack of a member', 200, {}, {}, /must have required property 'registries'/],
    ['status', 418, { 'X-Error-Code': 'NOT_FOUND' }, ERROR, /the status is not described/],
    ['code', 401, { 'X-Error-Code': 'NOT_FOUND' }, ERROR, /the code NOT_FOUND is not described/],
    ['lack of a code', 401, {}, ERROR, /the code null is not described/],
    ['media type', 200, { 'Content-Type': 'text/plain' }, {}, /the media type text\/plain is not/],
  ] as [string, number, Record<string, string>, object, RegExp][])
    it(`fails it if an answer has a ${what} that is not described`, async () => {
      await answer(status, headers, body);
      expect(everythingIsAsDescribed).to.throw(problem);
    });

  it('fails it if an event violates its schema, whichever receiver takes it', async () => {
    const sender = newSender();
    const { path } = temporaryFolder();
    const keyFile = join(path, 'key.pem');
    writeFileSync(keyFile, sender.publicKeyPem);
    const wrong = { ...sampleEvent(7), dataschema: 'x' };
    for (const start of [
      () => startRecordingReceiver(keyFile),
      () => startReceiver(path, keyFile),
      startRawReceiver,
    ]) {
      await using receiver = await start();
      const send = (event: object): ReturnType<typeof post> =>
        post(receiver.url, sender.signed(JSON.stringify(event)));
      for (const event of [sampleEvent(1), sampleRetraction(2), sampleTest(2)]) await send(event);
      everythingIsAsDescribed();
      await send(wrong);
      expect(everythingIsAsDescribed)
        .to.throw(/must NOT have additional properties/)
        .with.property('message')
        .that.contains(JSON.stringify(wrong));
    }
  });
});
