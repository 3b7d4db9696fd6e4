import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { createGasStation, feesOf, type GasFees } from '../../service/chain/transactions';
import { listen } from '../../service/http/server';

describe('gas station', () => {
  it('turns decimals of gwei into exact wei', () => {
    expect(feesOf({ standard: { maxFee: 30.000000001, maxPriorityFee: 0.1 } })).to.deep.equal({
      maxFeePerGas: 30_000_000_001n,
      maxPriorityFeePerGas: 100_000_000n,
    });
  });

  it('reads numbers in text without loss, rounded to the wei', () => {
    const feesOfText = (maxFee: string, maxPriorityFee: string) =>
      feesOf({ standard: { maxFee, maxPriorityFee } });
    expect(feesOfText('30.000000001', '25')).to.deep.equal({
      maxFeePerGas: 30_000_000_001n,
      maxPriorityFeePerGas: 25_000_000_000n,
    });
    expect(feesOfText('9007199254.740993001', '0.00000000149999')).to.deep.equal({
      maxFeePerGas: 9_007_199_254_740_993_001n,
      maxPriorityFeePerGas: 1n,
    });
    expect(feesOfText('1.9999999995', '0')).to.have.property('maxFeePerGas', 2_000_000_000n);
  });

  it('gives 0 for fees that the answer lacks', () => {
    const none = { maxFeePerGas: 0n, maxPriorityFeePerGas: 0n };
    expect(feesOf({})).to.deep.equal(none);
    expect(feesOf({ standard: {} })).to.deep.equal(none);
    expect(feesOf({ standard: { maxFee: null, maxPriorityFee: null } })).to.deep.equal(none);
  });

  async function ask(handler: RequestListener): Promise<GasFees> {
    const server = await listen(handler, '127.0.0.1', 0);
    try {
      return await createGasStation(server.url)();
    } finally {
      await server.close();
    }
  }

  it('is read over HTTP', async () => {
    const fees = await ask((_request, response) => {
      response.end(JSON.stringify({ standard: { maxFee: 31.5, maxPriorityFee: 30 } }));
    });
    expect(fees).to.deep.equal({ maxFeePerGas: 31_500_000_000n, maxPriorityFeePerGas: 30_000_000_000n });
  });

  it('may give no priority fee', async () => {
    const fees = await ask((_request, response) => response.end('{"standard":{"maxFee":31.5}}'));
    expect(fees).to.deep.equal({ maxFeePerGas: 31_500_000_000n, maxPriorityFeePerGas: 0n });
  });

  it('rejects an error status, a malformed or too large answer, and fees that are impossible', async () => {
    for (const [status, text] of [
      [500, '{}'],
      [200, '<html>'],
      [200, '{"standard":{"maxFee":"a lot"}}'],
      [200, '{"standard":{"maxFee":"0x1e"}}'],
      [200, '{"standard":{"maxFee":-1}}'],
      // No transaction can offer these fees.
      [200, '{"standard":{"maxPriorityFee":30}}'],
      [200, '{"standard":{"maxFee":1e30}}'],
      // Every mint would fail.
      [200, '{}'],
      [200, '{"standard":{"maxFee":0,"maxPriorityFee":0}}'],
      [200, '{"standard":{"maxFee":31.5}}'.padStart(100_000)],
    ] as const) {
      const failure = await ask((_request, response) => response.writeHead(status).end(text)).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure, text.trim()).to.be.instanceOf(Error);
    }
  });

  for (const [what, handler] of Object.entries<RequestListener>({
    nothing: () => undefined,
    'half of its answer': (_request, response) => void response.write('{"standard":'),
  }))
    it(`times out when it sends ${what}`, async () => {
      const server = await listen(handler, '127.0.0.1', 0);
      const failure = await createGasStation(server.url, 100)().catch((error: unknown) => error);
      await server.close();
      expect(failure).to.have.property('name', 'TimeoutError');
    });
});
