import { expect } from 'chai';
import { makeError, ZeroHash } from 'ethers';
import type { RpcClient } from '../../service/chain/rpc-client';
import { createBlockSpan } from '../../service/chain/block-span';
import { watch } from '../../service/watcher/watch';

const ADDRESS = `0x${'1'.repeat(40)}`;

describe('watching a chain whose provider refuses ranges as too many requests', () => {
  it('pauses for the provider, and not as long as where nothing happens', async () => {
    const end = new AbortController();
    const done: string[] = [];
    const alarm = {
      wait: async () => (done.push('wait'), end.abort()),
      quicken: () => void done.push('quicken'),
      stop: () => undefined,
    };
    const sightings = watch({
      client: { send: answer } as unknown as RpcClient,
      contracts: {
        registry: ADDRESS,
        titleEscrowFactory: ADDRESS,
        titleEscrowImplementation: ADDRESS,
      },
      cursor: { nextBlock: 1, kept: [] },
      genesisHash: ZeroHash,
      confirmations: 0,
      finalityDepth: 1,
      span: createBlockSpan(100),
      alarm,
      signal: end.signal,
    });
    const kinds: string[] = [];
    await (async () => {
      for await (const { kind } of sightings) kinds.push(kind);
    })().catch((error: unknown) => expect(error).to.equal(end.signal.reason));
    expect(kinds).to.deep.equal(['unchanged']);
    expect(done).to.deep.equal(['quicken', 'wait']);
  });
});

async function answer(method: string, [number]: [string]): Promise<unknown> {
  if (method === 'eth_blockNumber') return '0x64';
  if (method === 'eth_getBlockByNumber')
    return { number, hash: ZeroHash, parentHash: ZeroHash, timestamp: '0x1' };
  throw makeError('could not coalesce error', 'UNKNOWN_ERROR', {
    error: { code: -32005, message: 'Too many requests' },
  });
}
