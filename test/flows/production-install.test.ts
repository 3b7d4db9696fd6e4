import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import type { DidKeyPair } from '../../service/base/did-key-pair';
import { readSettings } from '../../service/config/config';
import { PROJECT_ROOT } from '../../service/base/project-root';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { ask, askTdoc, type CommandAnswer } from '../helpers/processes/command-answer';
import { create } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import { createPlainSign } from '../helpers/credentials/plain-signing';
import { withoutProof } from '../helpers/credentials/statements';
import { temporaryFolder } from '../helpers/temporary-folder';
import { readDocument } from '../helpers/pages/markdown';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const ADMIN_API_KEY = 'the-key-of-the-operator-0123456789';

/** The files that the Dockerfile copies beside the packages. */
const COPIED = ['package.json', 'cli', 'contexts', 'dist', 'evidence/evidence-page.html'];
const CONTEXTS_PAGE = readDocument('docs/contexts.md');
/** A context that the settings do not name, with a term that leaves content unsigned. */
const SEALS = 'contexts/seals-bill-of-lading-v1.json';

describe('an installation without development packages', () => {
  const folder = temporaryFolder();
  const root = folder.path;
  let local: LocalSetup;
  let service: ServiceProcess;
  let settings: Record<string, string>;

  before(async () => {
    installProduction(root);
    execFileSync('sh', ['-c', CONTEXTS_PAGE.code('Terms of your own', 'sh')], { cwd: root });
    const context = join(root, 'contexts/trade-bill-of-lading-v1.json');
    const terms = readFileSync(context, 'utf8');
    const ofScac = /"scac": "(.*)scac",/;
    const term = CONTEXTS_PAGE.code('Terms inside objects', 'json').replace(/^\{|\}\s*$/g, '');
    writeFileSync(context, terms.replace(ofScac, `$&\n"sealNo": "$1sealNo",\n${term},`));
    const seals = '"seals": { "@id": "$1seals", "@container": "@index" },';
    writeFileSync(join(root, SEALS), terms.replace(ofScac, `$&\n${seals}`));
    const PORT = String(await freePort(0));
    local = await createLocalSetup({ domain: `localhost:${PORT}` });
    settings = {
      ...local.settings,
      PORT,
      ADMIN_API_KEY,
      // Nobody listens there, so deliveries wait.
      WEBHOOK_URL: `http://127.0.0.1:${await freePort(0)}/`,
      BILL_OF_LADING_CONTEXT_URL: `https://localhost:${PORT}/contexts/trade-bill-of-lading-v1.json`,
    };
    service = await startServiceProcess(settings, { root });
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
      return stdout.match(/"state":"(waiting|failed)"/g)?.length === 5;
    });
  });

  it('issues under a context of its own that it publishes, as docs/contexts.md says', async () => {
    const url = settings.BILL_OF_LADING_CONTEXT_URL ?? '';
    expect(CONTEXTS_PAGE.code('Terms of your own', 'ini')).to.contain(new URL(url).pathname);
    const served = await fetch(url.replace('https:', 'http:'));
    expect(served.headers.get('Content-Type')).to.equal('application/ld+json');
    expect(await served.text())
      .to.contain('https://trade.example.com/terms#scac')
      .and.not.contain('/example.com');
    const account = await local.account(1);
    const inside = { partyName: 'Cedar Forwarding', address: { city: 'Singapore' } };
    const credentialSubject = { ...minimal.credentialSubject, sealNo: 'S 1', notifyParty: inside };
    const bill = { ...minimal, owner: account, holder: account, credentialSubject };
    const { body } = await create(service.url, bill);
    expect(body.signedW3CDocument['@context']).to.include(url);

    // The checkout does not have the file.
    const stranger = { NET: '31337', RPC_URL: local.node.url, ENV_FILE: join(root, 'none.env') };
    const [answer, shown] = ['answer.json', 'shown.json'].map((name) => join(root, name)) as [string, string];
    writeFileSync(answer, JSON.stringify(body));
    const pointer = '/credentialSubject/notifyParty/address';
    const derived = await askTdoc(['derive', answer, '--reveal', pointer, '--out', shown], stranger);
    expect(derived.code, derived.stderr).to.equal(0);
    expect(readFileSync(shown, 'utf8')).to.contain('Singapore').and.not.contain('S 1');
    for (const file of [answer, shown]) {
      const verified = await askTdoc(['verify-credential', file], stranger);
      expect(verified.code, verified.stdout + verified.stderr).to.equal(0);
      expect(verified.stdout).to.contain('document integrity: VALID');
    }
  });

  it('neither starts with a context that leaves content unsigned, nor calls it protected', async () => {
    const url = (settings.BILL_OF_LADING_CONTEXT_URL ?? '').replace(/contexts.*/, SEALS);
    const fault = '/@context/BillOfLading/@context/seals has the container @index of JSON-LD';
    const checked = await tdoc('check');
    expect(checked.stdout).to.contain(`warning  context ${SEALS}: ${fault}`);
    expect(checked.stdout).to.match(/^ok {7}context contexts\/trade-bill-of-lading-v1\.json: .* serves it$/m);
    const named = { ...settings, PORT: '0', BILL_OF_LADING_CONTEXT_URL: url };
    const tdocFile = join(root, 'node_modules/tdoc/tdoc.cjs');
    expect((await ask(tdocFile, ['check'], named, { cwd: root })).stdout).to.contain(
      `fault    context ${SEALS}`,
    );
    const refusal = await startServiceProcess({ ...named, DATA_DIR: join(root, 'other') }, { root }).catch(
      String,
    );
    expect(refusal).to.contain('CONTEXT_UNUSABLE').and.contain(`under ${SEALS}: ${fault}`);

    const account = await local.account(1);
    const { body } = await create(service.url, { ...minimal, owner: account, holder: account });
    const seals = { 'SEAL-111': { vessel: 'Ever Given' } };
    const reason = `/credentialSubject/seals uses the container @index of JSON-LD (context ${url})`;

    // Another program of the issuer signs it, and somebody changes it.
    const { '@context': contexts, ...issued } = withoutProof(body.signedW3CDocument);
    const context = JSON.parse(readFileSync(join(root, SEALS), 'utf8')) as object;
    const known = createDocumentLoader('https://known.example/contexts/bill-of-lading-v1.json');
    const { DID_KEY_PAIRS = '' } = readSettings({ ENV_FILE: local.settings.ENV_FILE ?? '' }).settings;
    const keyPair = JSON.parse(DID_KEY_PAIRS) as DidKeyPair;
    const sign = await createPlainSign(keyPair, async (asked) =>
      asked === url ? { contextUrl: null, document: context, documentUrl: url, tag: 'static' } : known(asked),
    );
    const credential = {
      ...issued,
      '@context': [...(contexts as string[]).slice(0, -1), url],
      credentialSubject: { ...minimal.credentialSubject, seals },
    };
    const signed = JSON.stringify(await sign(credential, new Date().toISOString()));
    const forged = signed.replace('SEAL-111', 'SEAL-999');
    const file = join(root, 'forged.json');
    writeFileSync(file, forged);
    const answers = {
      command: (await tdoc('verify-credential', file)).stdout,
      api: await (
        await fetch(`${service.url}/credentials/verify`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${ADMIN_API_KEY}` },
          body: `{"verifiableCredential":${forged}}`,
        })
      ).text(),
      package: await ask(
        '-e',
        [
          `require('./dist/client/credentials.js').verifyCredential(${forged})
            .then((found) => console.log(JSON.stringify(found.documentIntegrity)));`,
        ],
        settings,
        { cwd: root },
      ).then(({ stdout }) => stdout),
      evidence: await tdoc('evidence', file, '--out', join(root, 'e.json')).then(
        async () => (await tdoc('check-evidence', join(root, 'e.json'), '--all')).stdout,
      ),
    };
    for (const [who, answer] of Object.entries(answers)) {
      expect(answer, who).to.contain(reason);
      expect(answer, who).not.to.match(
        /document integrity: VALID|"verified":true|"outcome":"valid","checks":\[\],/,
      );
    }
    expect(answers.command).to.contain('document integrity: COULD NOT TELL');
    expect(answers.api).to.contain('"verified":false');
    expect(answers.evidence).not.to.contain('PROVEN  The signature covers all');
    const derived = await tdoc('derive', file, '--reveal', '/credentialSubject/scac');
    expect(derived.code).to.equal(2);
    expect(derived.stderr).to.contain(reason);
  });

  it('gives one verdict about a name that occurs twice', async () => {
    const account = await local.account(1);
    const { text } = await create(service.url, { ...minimal, owner: account, holder: account });
    const forged = text.replace('"blNumber":', '"blNumber":"FORGED","blNumber":');
    const file = join(root, 'twice.json');
    writeFileSync(file, forged);
    const { code, stderr } = await tdoc('verify-credential', file);
    expect(code).to.equal(2);
    expect(stderr)
      .to.contain('/signedW3CDocument/credentialSubject/blNumber" occurs twice')
      .and.contain('FILE_AMBIGUOUS');
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${ADMIN_API_KEY}` };
    const body = `{"verifiableCredential":${forged}}`;
    const answer = await fetch(`${service.url}/credentials/verify`, { method: 'POST', headers, body });
    expect([answer.status, answer.headers.get('X-Error-Code')]).to.deep.equal([400, 'BODY_AMBIGUOUS']);
  });

  it('names Hardhat and how to install it if a devnet is to be started', async () => {
    const { code, stderr } = await tdoc('devnet', '--once');
    expect(code).to.equal(1);
    expect(stderr).to.contain('needs Hardhat 2, which is not installed. Install it').and.contain('hardhat@2');
  });
});

/**
 * Fills a folder like `npm ci --omit=dev` and the Dockerfile: it copies the build from the checkout, and the
 * packages that package-lock.json does not mark as development packages.
 */
function installProduction(folder: string): void {
  for (const name of COPIED) cpSync(join(PROJECT_ROOT, name), join(folder, name), { recursive: true });
  const lock = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true; devOptional?: true; link?: true }>;
  };
  for (const [path, { dev, devOptional, link }] of Object.entries(lock.packages)) {
    if (!path.startsWith('node_modules/') || dev || devOptional) continue;
    if (link) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      symlinkSync('../cli', join(folder, path));
      continue;
    }
    const from = join(PROJECT_ROOT, path);
    // Optional packages for other systems are not installed; packages inside it have entries of their own.
    const isOwn = (name: string): boolean => !name.slice(from.length).includes('/node_modules');
    if (statSync(from, { throwIfNoEntry: false }))
      cpSync(from, join(folder, path), { recursive: true, filter: isOwn });
  }
}
