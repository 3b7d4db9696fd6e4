import { expect } from 'chai';
import { isError } from 'ethers';
import { nothingLearned, RpcNode } from '../../service/chain/node';
import { createPatience } from '../../service/chain/throttling';
import { noAnswer } from '../../service/chain/node-errors';
import { VirtualTime } from '../helpers/virtual-time';

describe('a node that is closed', () => {
  for (const [what, failure] of [
    ['whose connection failed', new Error('it was cut')],
    ['that was throttled', noAnswer('too many requests', { message: 'slow down' }, 429)],
  ] as const)
    it(`is not asked again for a request ${what}`, async () => {
      const time = new VirtualTime();
      let sent = 0;
      const transport = {
        send() {
          sent++;
          node.close();
          return Promise.reject(failure);
        },
        onNewHead: () => () => undefined,
        close: () => undefined,
      };
      const node = new RpcNode('http://node', time, transport, createPatience(time), nothingLearned());
      const error: unknown = await time.settled(
        node.send('eth_chainId', []).catch((thrown: unknown) => thrown),
      );
      expect(isError(error, 'UNSUPPORTED_OPERATION'), String(error)).to.equal(true);
      expect(sent).to.equal(1);
    });
});
