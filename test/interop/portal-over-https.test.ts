import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { inheritedEnvironment } from '../../service/config/config';
import type { JsonObject } from '../../service/issuance/credential';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { verifyCredential } from '../../service/verification/verify-credential';
import full from '../fixtures/bill-of-lading-full.json';
import { create } from '../helpers/processes/create-call';
import { tdoc } from '../helpers/processes/command-output';
import { forwardTo, hasOpenssl, startHttpsFront, type HttpsFront } from '../helpers/processes/https-front';
import { realSources } from '../helpers/credentials/real-sources';
import { startService, type RunningService } from '../helpers/processes/running-service';
import type { Fragment } from '../helpers/credentials/trustvc-library';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const run = promisify(execFile);

/** The portal's own verification; only the node is passed in. */
const PORTAL = `
  const [file, rpcProviderUrl] = process.argv.slice(1);
  const { verifyDocument } = require('@trustvc/trustvc');
  const credential = JSON.parse(require('node:fs').readFileSync(file, 'utf8'));
  verifyDocument(credential, { rpcProviderUrl }).then((fragments) => {
    console.log(JSON.stringify(fragments));
    process.exit();
  });`;

/**
 * The issuer's domain has HTTPS with a self-signed certificate, which is trusted only where it is configured.
 */
(hasOpenssl ? describe : describe.skip)('a credential of an issuer behind HTTPS', () => {
  let local: LocalSetup;
  let service: RunningService;
  let https: HttpsFront;
  let file: string;
  let credential: JsonObject;

  before(async () => {
    const port = await freePort(0);
    local = await createLocalSetup({ domain: `localhost:${port}` });
    service = await startService(local.settings);
    https = await startHttpsFront(local.folder, { localhost: forwardTo(() => service.url) }, port);

    const [owner, holder] = [await local.account(1), await local.account(2)];
    const { body } = await create(service.url, { ...full, owner, holder });
    credential = { ...body.signedW3CDocument };
    file = join(local.folder, 'credential.json');
    writeFileSync(file, JSON.stringify(credential));
  });

  it("is VALID in all three checks of the portal's library, which fetches DID and context", async () => {
    const env = { ...inheritedEnvironment(), ...https.trust };
    const { stdout } = await run(process.execPath, ['-e', PORTAL, file, local.node.url], {
      cwd: PROJECT_ROOT,
      env,
    });
    const fragments = (JSON.parse(stdout) as Fragment[]).filter(({ status }) => status !== 'SKIPPED');
    expect(fragments.map(({ type, status }) => [type, status])).to.deep.equal([
      ['DOCUMENT_INTEGRITY', 'VALID'],
      ['DOCUMENT_STATUS', 'VALID'],
      ['ISSUER_IDENTITY', 'VALID'],
    ]);
  });

  it('is VALID for our command over HTTPS', async () => {
    const { DOMAIN = '' } = local.settings;
    const settings = { NET: '31337', RPC_URL: local.node.url, ENV_FILE: join(local.folder, 'none.env') };
    const output = await tdoc(['verify-credential', file], {
      ...settings,
      ...https.trust,
    });
    expect(output)
      .to.contain('The credential is VALID.')
      .and.contain(`found at https://${DOMAIN}/.well-known/did.json`);
  });

  it('is reported as "could not tell", with the reason, when the certificate is not trusted', async () => {
    const { outcome, issuerIdentity } = await verifyCredential(credential, realSources(local));
    expect(outcome).to.equal('could not tell');
    expect(issuerIdentity.checks.at(-1)?.found).to.contain('self-signed certificate');
  });
});
