import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { serve, type TestServer } from '../helpers/http-server';
import { temporaryFolder } from '../helpers/temporary-folder';

const REGISTRY = `0x${'5b'.repeat(20)}`;

describe('tdoc operate', () => {
  // No devnet runs in it.
  const folder = temporaryFolder();
  const ask = (...args: string[]) =>
    askTdocInProcess(['operate', ...args], { ENV_FILE: `${folder.path}/none.env` }, { cwd: folder.path });
  let publicNode: TestServer;

  before(async () => {
    publicNode = await serve((request, response) => {
      void json(request).then((body) => {
        const { id, method } = body as { id: number; method: string };
        const outcome =
          method === 'eth_chainId'
            ? { result: '0x13882' }
            : { error: { code: -32601, message: `the method ${method} does not exist` } };
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }));
      });
    });
  });

  it('is refused with exit code 1 on a node of a public network', async () => {
    const { code, stdout } = await ask('pause', '--rpc', publicNode.url, '--registry', REGISTRY, '--json');
    expect(code).to.equal(1);
    expect(JSON.parse(stdout)).to.include({ outcome: 'refused', code: 'NODE_NOT_LOCAL' });
  });

  it('fails with exit code 2 and names what is missing', async () => {
    const nobody = `http://127.0.0.1:${await freePort(0)}`;
    for (const [args, problem] of [
      [['pause'], /DEVNET_UNKNOWN/],
      [['pauze'], /pauze is not an operation. Known: nominate, .*ARGUMENT_INVALID/],
      [['pause', '--rpc', nobody, '--registry', REGISTRY], /No node answers at .*RPC_UNREACHABLE/],
      [['pause', '--rpc', nobody], /--rpc and --registry together.*ARGUMENT_INVALID/],
      [['pause', '--token', '42'], /pause takes no --token.*ARGUMENT_INVALID/],
      [['burn', '--token', '42', '--to', '2'], /burn takes no --to.*ARGUMENT_INVALID/],
      [['pause', '--rpc', nobody, '--registry', '0x5b'], /--registry .*ARGUMENT_INVALID/],
    ] as const) {
      const { code, stderr } = await ask(...args);
      expect(code, stderr).to.equal(2);
      expect(stderr).to.match(problem);
    }
  });
});
