import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { createGasStation, feesOf, type GasFees } from '../../service/chain/transactions';
import { serve } from '../helpers/http-server';

describe('gas station', () => {
  for (const [standard, maxFeePerGas, maxPriorityFeePerGas] of [
    [{ maxFee: 30.000000001, maxPriorityFee: 0.1 }, 30_000_000_001n, 100_000_000n],
    [{ maxFee: '30.000000001', maxPriorityFee: '25' }, 30_000_000_001n, 25_000_000_000n],
    // Numbers in text are read without loss, and rounded to the wei.
    [{ maxFee: '9007199254.740993001', maxPriorityFee: '0.00000000149999' }, 9_007_199_254_740_993_001n, 1n],
    [{ maxFee: '1.9999999995', maxPriorityFee: '0' }, 2_000_000_000n, 0n],
    [{ maxFee: null, maxPriorityFee: null }, 0n, 0n],
    [{}, 0n, 0n],
    [undefined, 0n, 0n],
  ] as const)
    it(`turns gwei into exact wei: ${JSON.stringify(standard)}`, () => {
      expect(feesOf({ standard })).to.deep.equal({ maxFeePerGas, maxPriorityFeePerGas });
    });

  const ask = async (handler: RequestListener, timeoutMs?: number): Promise<GasFees | Error> => {
    await using server = await serve(handler);
    return await createGasStation(server.url, systemTime, timeoutMs)().catch((error: Error) => error);
  };

  it('is read over HTTP, and may give no priority fee', async () => {
    for (const [standard, maxPriorityFeePerGas] of [
      [{ maxFee: 31.5 }, 0n],
      [{ maxFee: 31.5, maxPriorityFee: 30 }, 30_000_000_000n],
    ] as const) {
      const fees = await ask((_request, response) => response.end(JSON.stringify({ standard })));
      expect(fees).to.deep.equal({ maxFeePerGas: 31_500_000_000n, maxPriorityFeePerGas });
    }
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
      const failure = await ask((_request, response) => response.writeHead(status).end(text));
      expect(failure, text.trim()).to.be.instanceOf(Error);
    }
  });

  for (const [what, handler] of Object.entries<RequestListener>({
    nothing: () => undefined,
    'half of its answer': (_request, response) => void response.write('{"standard":'),
  }))
    it(`times out when it sends ${what}`, async () => {
      expect(await ask(handler, 100)).to.have.property('name', 'TimeoutError');
    });
});
