import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as trustVc from '@trustvc/w3c-vc';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import type { SignedCredential } from '../../service/issuance/sign';
import { deriveCredential } from '../../service/verification/derive-credential';
import full from '../fixtures/bill-of-lading-full.json';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import {
  digitalBazaarVerifies,
  loaderOfTheirs,
  theirs,
  trustVcLibrary,
} from '../helpers/credentials/trustvc-library';
import { create } from '../helpers/processes/create-call';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { askTdocInProcess, tdocInProcess } from '../helpers/processes/tdoc-in-process';

const API_KEY = 'a-key-of-the-issuer';

/** A document as it was issued, and a version of it that a holder shows. */
interface Document {
  base: SignedCredential;
  derived: object;
}

describe('documents of an issuer whose key was rotated', () => {
  let local: LocalSetup;
  let service: RunningService;
  let settings: Record<string, string>;
  let first: Document;
  let second: Document;

  before(async () => {
    const port = await freePort(0);
    local = await createLocalSetup({ domain: `localhost:${port}` });
    settings = { ...local.settings, PORT: String(port), API_KEY };
    service = await startService(settings);
    first = await issue();
    await tdocInProcess(['did', '--rotate'], settings);
  });

  async function issue(): Promise<Document> {
    const [owner, holder] = [await local.account(1), await local.account(2)];
    const headers = { Authorization: `Bearer ${API_KEY}` };
    const { status, text, body } = await create(service.url, { ...full, owner, holder }, { headers });
    expect(status, text).to.equal(200);
    const base = body.signedW3CDocument;
    const loader = createDocumentLoader(base['@context'].at(-1) ?? '');
    return { base, derived: await deriveCredential({ ...base }, ['/credentialSubject'], loader) };
  }

  async function restart(): Promise<void> {
    await service.stop();
    service = await startService(settings);
  }

  const methodOf = ({ base }: Document): unknown =>
    (base.proof as { verificationMethod?: unknown }).verificationMethod;

  /** The answer of each verifier about the document as issued and, after a plus, as derived. */
  async function verdicts(document: Document): Promise<Record<string, string>> {
    const documentLoader = await loaderOfTheirs(service.url, document.base);
    const both = async (verify: (document: object) => Promise<boolean>): Promise<string> =>
      `${await verify(document.base)} + ${await verify(document.derived)}`;
    return {
      tdoc: await both(async (credential) => {
        const file = join(local.folder, 'credential.json');
        writeFileSync(file, JSON.stringify(credential));
        const { code, stdout } = await askTdocInProcess(['verify-credential', file], settings);
        expect(stdout).to.match(/document status: VALID/);
        return code === 0;
      }),
      'POST /credentials/verify': await both(async (verifiableCredential) => {
        const response = await fetch(`${service.url}/credentials/verify`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${API_KEY}` },
          body: JSON.stringify({ verifiableCredential }),
        });
        return ((await response.json()) as { verified: boolean }).verified;
      }),
      '@trustvc/trustvc': await both(async (credential) => {
        const options = { rpcProviderUrl: local.node.url, documentLoader };
        const fragments = await trustVcLibrary.verifyDocument(theirs(credential), options);
        return fragments.every(({ status }) => status === 'VALID' || status === 'SKIPPED');
      }),
      // These two verify derived documents only.
      '@trustvc/w3c-vc': String(
        (await trustVc.verifyCredential(theirs(document.derived), { documentLoader })).verified,
      ),
      '@digitalbazaar/vc': String((await digitalBazaarVerifies(document.derived, documentLoader)).verified),
    };
  }

  const ALL = {
    tdoc: 'true + true',
    'POST /credentials/verify': 'true + true',
    '@trustvc/trustvc': 'true + true',
    '@trustvc/w3c-vc': 'true',
    '@digitalbazaar/vc': 'true',
  };
  const NONE = Object.fromEntries(
    Object.entries(ALL).map(([name, verdict]) => [name, verdict.replaceAll('true', 'false')]),
  );

  it('are signed with the earlier key until the service is restarted, then with the next', async () => {
    expect(methodOf(await issue()))
      .to.equal(methodOf(first))
      .and.match(/#keys-1$/);
    await restart();
    second = await issue();
    expect(methodOf(second)).to.match(/#keys-2$/);
  });

  it('verify with every verifier, whichever key signed them', async () => {
    expect(await verdicts(first)).to.deep.equal(ALL);
    expect(await verdicts(second)).to.deep.equal(ALL);
    expect((await askTdocInProcess(['did', '--check'], settings)).stdout).to.match(/all equal\n$/);
  });

  it('verify with no verifier once the key that signed them is revoked; the others still do', async () => {
    await tdocInProcess(['did', '--revoke', 'keys-1', '--yes'], settings);
    expect(await verdicts(first)).to.deep.equal(NONE);
    expect(await verdicts(second)).to.deep.equal(ALL);
  });
});
