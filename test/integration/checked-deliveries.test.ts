import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { startSharedReceiver } from '../helpers/live-change/receiver';
import { startRawReceiver } from '../helpers/receiver/raw-receiver';
import { startRecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startReceiver } from '../helpers/receiver/running-receiver';
import { everythingIsAsDescribed } from '../helpers/violations';
import {
  newSender,
  post,
  sampleEvent,
  sampleRetraction,
  sampleTest,
} from '../helpers/receiver/signed-delivery';
import { seededRandom } from '../helpers/seeded-random';
import { temporaryFolder } from '../helpers/temporary-folder';

describe('receivers of the tests', () => {
  const sender = newSender();
  let folder: ReturnType<typeof temporaryFolder>;
  let keyFile: string;

  before(() => {
    folder = temporaryFolder();
    keyFile = join(folder.path, 'key.pem');
    writeFileSync(keyFile, sender.publicKeyPem);
  });

  after(() => folder.remove());

  const receivers = {
    'the recording receiver': () => startRecordingReceiver(keyFile),
    'the reference receiver': () => startReceiver(folder.path, keyFile),
    'the raw receiver': startRawReceiver,
    'the receiver of live changes': () => startSharedReceiver(seededRandom(1)),
  };
  const wrong = { ...sampleEvent(7), dataschema: 'x' };
  for (const [name, start] of Object.entries(receivers))
    it(`${name} fails the test for an event that violates its schema, naming event and problem`, async () => {
      const receiver = await start();
      const send = (event: object): ReturnType<typeof post> =>
        post(receiver.url, sender.signed(JSON.stringify(event)));
      try {
        for (const event of [sampleEvent(1), sampleRetraction(2), sampleTest(2)]) await send(event);
        everythingIsAsDescribed();
        await send(wrong);
        expect(everythingIsAsDescribed)
          .to.throw(/must NOT have additional properties/)
          .with.property('message')
          .that.contains(JSON.stringify(wrong));
        everythingIsAsDescribed();
      } finally {
        await receiver.close();
      }
    });
});
