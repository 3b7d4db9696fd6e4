import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { startChild } from '../../devnet/child-process';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { track } from '../helpers/resources';

const DEVNET = join(PROJECT_ROOT, 'dist/devnet/main.js');

describe('npm run devnet', () => {
  it('-- --once names ports in use, issues on others, verifies nine webhooks and exits with 0', async () => {
    const squatters: Server[] = [];
    for (const port of [8545, 3000, 4000]) {
      const squatter = createServer().on('error', () => undefined);
      squatter.listen(port, '127.0.0.1');
      squatters.push(squatter);
    }
    const lines: string[] = [];
    const child = startChild('devnet', DEVNET, ['--once'], {});
    const untrack = track('devnet');
    child.onLine((line) => lines.push(line));
    const code = await child.ended;
    untrack();
    for (const squatter of squatters) squatter.close();
    const output = lines.join('\n');
    for (const [port, name] of [
      [8545, 'node'],
      [3000, 'service'],
      [4000, 'receiver'],
    ] as const) {
      expect(output).to.match(new RegExp(`port ${port} is taken: the ${name} uses \\d+`));
    }
    expect(output).to.match(/Bill of Lading signed and minted: token [0-9a-f]{64}/);
    expect(output.match(/webhook verified: /g)).to.have.length(9);
    expect(output).to.match(/all 9 webhooks verified, in order/);
    expect(code).to.equal(0);
  });

  it('runs until it is interrupted, then stops everything and exits with 0', async () => {
    const child = startChild('devnet', DEVNET, [], {});
    const untrack = track('devnet');
    const [, serviceUrl = ''] = await child.lineMatching(/creator service at (http:\S+)/);
    await child.lineMatching(/all 9 webhooks verified, in order/);
    await child.lineMatching(/Ctrl-C stops everything/);
    expect((await fetch(serviceUrl)).status).to.equal(200);
    await child.stop();
    expect(await child.ended).to.equal(0);
    untrack();
    const stillThere = await fetch(serviceUrl).then(
      () => true,
      () => false,
    );
    expect(stillThere).to.equal(false);
  });
});
