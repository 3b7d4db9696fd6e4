import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { accept, startRecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startRpcProxy, THROUGH, type Answerer, type RpcAnswer } from '../helpers/chain/rpc-proxy';
import { startServiceProcess } from '../helpers/processes/service-process';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

const TOKENS = 4;

const UNWELL: RpcAnswer = { error: { code: -32000, message: 'internal error' } };
const never = (): Promise<never> => new Promise(() => undefined);

/** How the node hangs when the service is stopped. */
const HANGING: Record<string, Answerer> = {
  'while the chain is read': never,
  'when reading begins anew after a failure': (_, [block]) => (block === 'latest' ? UNWELL : never()),
};

describe('the service, stopped while the node answers nothing', () => {
  const local = localSetupOfSuite();

  before(async () => {
    const webhook = { maxConcurrentDeliveries: 1 };
    writeFileSync(local.settings.SERVICE_CONFIG ?? '', JSON.stringify({ webhook }));
    for (let token = 0; token < TOKENS; token++) await mintDirectly(local, await local.account(1));
  });

  for (const [moment, hanging] of Object.entries(HANGING)) {
    it(`exits with 0 before its deadline, and begins no new delivery: ${moment}`, async () => {
      let finish: () => void = () => undefined;
      const finished = new Promise<void>((resolve) => (finish = resolve));
      const receiver = await startRecordingReceiver(local.publicKeyFile, async (delivery, response) => {
        if (receiver.deliveries.length > 1) await finished;
        await accept(delivery, response);
      });
      const node = await startRpcProxy(local.node.url, THROUGH);
      const DATA_DIR = join(local.folder, moment);
      const settings = { ...local.settings, DATA_DIR, RPC_URL: node.url, WEBHOOK_URL: receiver.url };
      const service = await startServiceProcess(settings);
      await eventually('a delivery is under way', () => receiver.deliveries.length === 2);
      let hung = 0;
      node.answer(async (...call) => {
        const answer = hanging(...call);
        if (!(answer instanceof Promise)) return answer;
        hung++;
        return answer;
      });
      await eventually('the node is asked', () => hung > 0);
      const ended = service.end('SIGTERM');
      await eventually('it stops', () => service.output().includes('"stopping"'));
      finish();
      expect(await ended, service.output()).to.equal(0);
      expect(receiver.deliveries).to.have.length(2);
      // At its deadline it would end without this line.
      expect(service.output()).to.contain('"msg":"stopped"');
    });
  }
});
