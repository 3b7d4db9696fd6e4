import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'chai';
import { publicJwkOf } from '../../service/base/signing-keys';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { eventually } from '../helpers/eventually';
import { serve } from '../helpers/http-server';
import { askHardhat, askTdoc } from '../helpers/processes/command-answer';
import { create } from '../helpers/processes/create-call';
import { startReceiverProcess } from '../helpers/processes/receiver-process';
import { startServiceProcess } from '../helpers/processes/service-process';
import { startRecordingReceiver } from '../helpers/receiver/recording-receiver';
import { newSender, post, sampleEvent } from '../helpers/receiver/signed-delivery';

/** Settings of a process for which `localhost` is distant, with an IPv6 address that cannot be reached. */
const DISTANT = { NODE_OPTIONS: `--require=${join(__dirname, '../helpers/processes/distant-host.cjs')}` };

const distant = (url: string): string => url.replace('127.0.0.1', 'localhost');

describe('hosts that are farther away than Node.js waits for one of several addresses', () => {
  let local: LocalSetup;

  before(async () => {
    local = await createLocalSetup();
  });

  for (const protocol of ['http', 'ws'])
    it(`are reached by the service: the node over ${protocol}, and the webhook at once`, async () => {
      await using receiver = await startRecordingReceiver(local.publicKeyFile);
      await using service = await startServiceProcess({
        ...local.settings,
        ...DISTANT,
        DATA_DIR: join(local.folder, protocol),
        RPC_URL: distant(local.node.url).replace('http', protocol),
        WEBHOOK_URL: distant(receiver.url),
      });
      const owner = await local.account(1);
      const { status, body, text } = await create(service.url, { ...minimal, owner, holder: owner });
      expect(status, text).to.equal(200);
      const ofMint = () =>
        receiver.deliveries.filter(({ event }) => event.data.transactionHash === body.txHash);
      await eventually('the events of the mint came', () => ofMint().length === 5);
      expect(service.output()).not.to.contain('delivery failed');
    });

  it('are reached by commands', async () => {
    const settings = { ...local.settings, ...DISTANT, RPC_URL: distant(local.node.url) };
    const { stdout } = await askTdoc(['check', '--json'], settings);
    expect(stdout).to.match(/chain id 31337, answers in/);
  });

  it('are reached by the deployment', async () => {
    const settings = { ...local.settings, ...DISTANT, RPC_URL: distant(local.node.url) };
    const { code, stdout, stderr } = await askHardhat(['deploy', '--network', 'localhost'], settings);
    expect(code, stdout + stderr).to.equal(0);
  });

  it('are reached by the receiver, which fetches the keys', async () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const host = await serve((_request, response) =>
      response.end(JSON.stringify({ keys: [publicJwkOf(privateKey)] })),
    );
    const receiver = startReceiverProcess(local.folder, {
      ...DISTANT,
      RECEIVER_JWKS_URL: distant(`${host.url}/jwks.json`),
    });
    const url = await receiver.listening();
    const { body, headers } = newSender().signed(JSON.stringify(sampleEvent(1)));
    // The key is another one: the keys were fetched.
    const answer = await post(url, { body, headers: { ...headers, 'x-service-key-id': 'another' } });
    expect(answer.status, receiver.errors()).to.equal(401);
  });
});
