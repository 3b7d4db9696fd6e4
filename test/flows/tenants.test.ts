import { existsSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { readSettings } from '../../service/config/config';
import type { CloudEvent } from '../../service/events/cloud-event';
import { PROJECT_ROOT } from '../../service/base/project-root';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { checkEvent } from '../helpers/receiver/schema-problems';
import { codeBlocks, readDocument } from '../helpers/pages/markdown';
import { giveChainBack, takeChain, type PreparedChain } from '../helpers/chain/prepared-chain';
import { askAsWritten, runAsWritten, startAsWritten, type PageProgram } from '../helpers/pages/page-commands';
import { postgresDatabase } from '../helpers/database/postgres';
import { startService } from '../helpers/processes/running-service';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';
import { DEPLOYER } from '../helpers/chain/local-setup';

const NAMES = ['a', 'b'] as const;
type Name = (typeof NAMES)[number];

const EVENTS_OF_A_MINT = 5;

/** Files of an installation without tenants, at the top of the project. The tests must not touch them. */
const OF_NOBODY = ['.env', '.data', 'did.json', 'service.config.json', 'webhook-public-key.pem', 'tenants'];

describe('docs/tenants.md', () => {
  const { section } = readDocument('docs/tenants.md');
  const folder = temporaryFolder();
  const tenants = join(folder.path, 'tenants');
  const ports: Record<string, number> = {};
  const programs: PageProgram[] = [];
  let chain: PreparedChain;
  let settings: Record<string, string>;
  let untouched: unknown;

  const [files = '', setup = '', build = '', starts = '', looking = ''] = codeBlocks(
    section('Two tenants on a local chain'),
    'sh',
  );
  const [backup = '', removal = ''] = codeBlocks(section('Backup, moving, removing'), 'sh');

  /** The page's commands with the folder of this test and with free ports. */
  const here = (text: string): string =>
    text
      .replace(/\btenants(?=\/|$)/gm, tenants)
      .replace(/\b[34]00[12]\b/g, (port) => String(ports[port] ?? port));
  const lines = (text: string): string[] => here(text).trimEnd().split('\n');
  const path = (name: Name, file: string): string => join(tenants, `${name}.${file}`);
  const text = (name: Name, file: string): string => readFileSync(path(name, file), 'utf8');
  const modeOf = (file: string): string => (statSync(file).mode & 0o777).toString(8);
  const urlOf = (name: Name): string => `http://127.0.0.1:${ports[name === 'a' ? '3001' : '3002']}`;
  const settingsOf = (name: Name) => readSettings({ ENV_FILE: path(name, 'env') }).settings;
  const registryOf = (name: Name): string => settingsOf(name).TOKEN_REGISTRY_ADDRESS ?? '';
  /** Runs a command that must exit with 0, and returns its standard output. */
  const run = async (command: string): Promise<string> => {
    const { code, stdout, stderr } = await askAsWritten(command, settings);
    expect(code, `${command}: ${stdout}${stderr}`).to.equal(0);
    return stdout;
  };
  const npx = (name: Name, command: string): Promise<string> =>
    run(`ENV_FILE=${path(name, 'env')} npx ${command}`);
  const stateOfNobody = (): unknown =>
    OF_NOBODY.map((file) => statSync(join(PROJECT_ROOT, file), { throwIfNoEntry: false })?.mtimeMs);

  /** The events that the receiver of a tenant verified and stored. */
  function receivedBy(name: Name): CloudEvent[] {
    const file = path(name, 'received.jsonl');
    if (!existsSync(file)) return [];
    const events = readFileSync(file, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as CloudEvent);
    events.forEach(checkEvent);
    return events;
  }

  /** Creates a document at a tenant's service and waits for the events of its mint. */
  async function issueAndReceive(name: Name, url = urlOf(name)): Promise<void> {
    const { status, body } = await create(url, { ...minimal, owner: DEPLOYER, holder: DEPLOYER });
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(body.signedW3CDocument.issuer).to.equal(`did:web:${settingsOf(name).DOMAIN?.replace(':', '%3A')}`);
    expect(body.signedW3CDocument.credentialStatus.tokenRegistry).to.equal(registryOf(name));
    await eventually(`the mint of ${name} is delivered`, () => {
      const sent = receivedBy(name).filter(({ data }) => data.transactionHash === body.txHash);
      return sent.length === EVENTS_OF_A_MINT;
    });
  }

  before(async () => {
    untouched = stateOfNobody();
    for (const port of ['3001', '3002', '4001', '4002']) ports[port] = await freePort(0);
    chain = await takeChain();
    stopLater('the chain of the tenants', () => giveChainBack(chain));
    // Each thread takes a second of processor time to start.
    settings = { RPC_URL: chain.node.url, SIGNING_THREADS: '1' };
  });

  it('sets up two tenants with separate private files, registries and keys', async () => {
    await runAsWritten(here(files));
    const outputs = new Map<string, string>();
    for (const line of lines(setup)) outputs.set(line, await run(line));
    for (const [line, output] of outputs) {
      const [own, other] = line.includes('/a.env') ? (['a', 'b'] as const) : (['b', 'a'] as const);
      expect(output, line).to.contain(path(own, 'env')).and.not.to.contain(path(other, ''));
    }
    expect([...outputs.values()][3]).to.match(/deployer +0x\w{40} +already there/);
    const made = ['did.json', 'env', 'webhook-public-key.pem'];
    expect(readdirSync(tenants)).to.have.members(
      NAMES.flatMap((name) => made.map((file) => `${name}.${file}`)),
    );
    expect(modeOf(tenants)).to.equal('700');
    for (const name of NAMES) expect(modeOf(path(name, 'env'))).to.equal('600');
    for (const name of ['TOKEN_REGISTRY_ADDRESS', 'DID_KEY_PAIRS', 'SIGNING_PRIVATE_KEY']) {
      expect(settingsOf('a')[name]).to.be.a('string').and.not.to.equal(settingsOf('b')[name]);
    }
  });

  it('runs both at once: each issues in its own registry and delivers to its own receiver', async () => {
    await runAsWritten(here(build));
    for (const line of lines(starts)) programs.push(await startAsWritten(line, settings));
    for (const name of NAMES) {
      const did = (await (await fetch(`${urlOf(name)}/.well-known/did.json`)).json()) as { id: string };
      expect(did).to.deep.equal(JSON.parse(text(name, 'did.json')));
      expect(did.id).to.equal(`did:web:localhost%3A${new URL(urlOf(name)).port}`);
    }
    await Promise.all(NAMES.map((name) => issueAndReceive(name)));
    for (const name of NAMES) {
      const registries = new Set(receivedBy(name).map(({ data }) => data.registryAddress));
      expect([...registries]).to.deep.equal([registryOf(name).toLowerCase()]);
      expect(modeOf(path(name, 'data'))).to.equal('700');
    }
    // A receiver logs the status of what it refuses, such as an event signed with another key.
    for (const program of programs) expect(program.output()).not.to.contain('"status":401');
  });

  it('checks and repairs one tenant without changing the other', async () => {
    for (const line of lines(looking)) {
      const told = line.includes('--check') ? 'all equal' : 'no deliveries are waiting';
      // The service notes a delivery shortly after the receiver has it.
      await eventually(`${line}: ${told}`, async () => (await run(line)).includes(told));
    }
    rmSync(path('b', 'did.json'));
    const hint = `ENV_FILE=${path('b', 'env')} npx tdoc …`;
    const check = `ENV_FILE=${path('b', 'env')} npx tdoc did --check`;
    const { stdout, stderr } = await askAsWritten(check, settings);
    expect(stdout).to.contain('`npx tdoc did`');
    expect(stderr).to.contain(hint);
    expect((await fetch(`${urlOf('b')}/.well-known/did.json`)).status).to.equal(500);
    expect(programs[3]?.output()).to.contain('`npx tdoc did`').and.to.contain(hint);
    const made = ['env', 'did.json', 'webhook-public-key.pem'];
    const filesOfA = made.map((file) => text('a', file));
    await npx('b', 'tdoc did --force');
    await npx('b', 'tdoc signing-key --force');
    await npx('b', 'hardhat deploy --new --network localhost');
    expect(made.map((file) => text('a', file))).to.deep.equal(filesOfA);
  });

  it('backs up a stopped tenant, which then continues from the copy', async () => {
    // The services are the last two; b has other keys by now.
    for (const program of programs.splice(2)) expect(await program.stop()).to.equal(0);
    await runAsWritten(here(backup));
    const received = receivedBy('a').length;
    for (const file of readdirSync(tenants).filter(
      (name) => name.startsWith('a.') && !name.includes('received'),
    ))
      rmSync(join(tenants, file), { recursive: true });
    await runAsWritten(`cp -a ${join(tenants, 'backup')}/a.* ${tenants}/`);
    const [start = ''] = lines(starts).slice(2);
    const service = await startAsWritten(start, settings);
    programs.push(service);
    await issueAndReceive('a');
    expect(receivedBy('a')).to.have.length(received + EVENTS_OF_A_MINT);
    // The service logs a delivery shortly after the receiver has it: stop it before counting.
    expect(await programs.pop()?.stop()).to.equal(0);
    // Events that were delivered before the backup are not sent again.
    const delivered = service.output().matchAll(/"eventIds":\[([^\]]*)\]/g);
    expect([...delivered].flatMap(([, ids = '']) => ids.split(','))).to.have.length(EVENTS_OF_A_MINT);
  });

  it('separates tenants in one PostgreSQL database, where a command sees both registries', async function () {
    const database = await postgresDatabase();
    if (database === undefined) return this.skip();
    const shared = { ...settings, DATABASE_URL: database.url };
    const services = await Promise.all(
      NAMES.map((name) => startService({ ...shared, ENV_FILE: path(name, 'env'), PORT: '0' })),
    );
    const [ofA, ofB] = services;
    // b's receiver still has the former key.
    await programs[1]?.stop();
    const receiver = lines(starts)[1] ?? '';
    programs[1] = await startAsWritten(receiver);
    const old = new Set(receivedBy('b').map(({ id }) => id));
    await issueAndReceive('a', ofA?.url);
    await issueAndReceive('b', ofB?.url);
    expect(new Set(receivedBy('a').map(({ data }) => data.registryAddress)).size).to.equal(1);
    const fresh = receivedBy('b').filter(({ id }) => !old.has(id));
    expect([...new Set(fresh.map(({ data }) => data.registryAddress))]).to.deep.equal([
      registryOf('b').toLowerCase(),
    ]);
    const env = { ...shared, ENV_FILE: path('a', 'env') };
    const { stderr } = await askAsWritten('npx tdoc redeliver --from-block 0', env);
    for (const name of NAMES) expect(stderr).to.contain(registryOf(name).toLowerCase());
  });

  it('removes one tenant without touching the other or files outside tenants', async () => {
    const kept = text('a', 'env');
    await programs.splice(1, 1)[0]?.stop();
    await runAsWritten(here(removal));
    expect(readdirSync(tenants).filter((name) => name.startsWith('b.'))).to.deep.equal([]);
    expect(text('a', 'env')).to.equal(kept);
    expect(stateOfNobody()).to.deep.equal(untouched);
  });
});
