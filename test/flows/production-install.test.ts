import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../../devnet/free-port';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { ask, type CommandAnswer } from '../helpers/processes/command-answer';
import { create } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { installProduction } from '../helpers/processes/production-install';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import { temporaryFolder } from '../helpers/temporary-folder';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

describe('an installation without development packages', () => {
  const folder = temporaryFolder();
  const root = folder.path;
  let local: LocalSetup;
  let service: ServiceProcess;
  let settings: Record<string, string>;

  before(async () => {
    installProduction(root);
    local = await createLocalSetup();
    // Nobody listens there, so deliveries wait.
    settings = { ...local.settings, WEBHOOK_URL: `http://127.0.0.1:${await freePort(0)}/` };
    service = await startServiceProcess(settings, { root });
  });

  after(async () => {
    await service?.end('SIGTERM');
    await local?.stop();
    folder.remove();
  });

  const tdoc = (...args: string[]): Promise<CommandAnswer> =>
    ask(join(root, 'node_modules/tdoc/tdoc.cjs'), args, settings, { cwd: root });

  it('has no Hardhat', () => {
    expect(existsSync(join(root, 'node_modules/ethers'))).to.equal(true);
    expect(existsSync(join(root, 'node_modules/hardhat'))).to.equal(false);
  });

  it('issues a document, and tdoc shows its token and its waiting deliveries', async () => {
    const account = await local.account(1);
    const { status, body } = await create(service.url, { ...minimal, owner: account, holder: account });
    expect(status).to.equal(200);
    const { tokenId } = body.signedW3CDocument.credentialStatus;
    const token = await tdoc('token', tokenId);
    expect(token.stdout, token.stderr).to.contain('issued: beneficiary');
    await eventually('its five events wait', async () => {
      const { code, stdout, stderr } = await tdoc('deliveries', '--json');
      expect(code, stderr).to.equal(0);
      return stdout.includes('"waiting":5');
    });
  });

  it('names Hardhat and how to install it if a devnet is to be started', async () => {
    const { code, stderr } = await tdoc('devnet', '--once');
    expect(code).to.equal(1);
    expect(stderr).to.contain('needs Hardhat 2, which is not installed. Install it').and.contain('hardhat@2');
  });

  it('shows the help of every tdoc command', async () => {
    const { stdout } = await tdoc('--help');
    const names = [...stdout.matchAll(/^ {2}([a-z][a-z-]+)(?= )/gm)].map(([, name]) => name ?? '');
    expect(names).to.include.members(['setup', 'service', 'token', 'redeliver', 'purge-events', 'role']);
    const answers = names.filter((name) => name !== 'help').map((name) => tdoc(name, '--help'));
    for (const { code, stdout: help, stderr } of await Promise.all(answers)) {
      expect(code, stderr).to.equal(0);
      expect(help).to.match(/Usage:/);
    }
  });
});
