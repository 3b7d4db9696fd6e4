import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import { createVerifyCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import * as digitalBazaar from '@digitalbazaar/vc';
import { getDocumentLoader } from '@trustvc/w3c-context';
import * as trustVc from '@trustvc/w3c-vc';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { resolveDidWeb } from '../../service/did/resolve-did-web';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import type { SignedCredential } from '../../service/issuance/sign';
import { deriveCredential } from '../../service/verification/derive-credential';
import full from '../fixtures/bill-of-lading-full.json';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { trustVcLibrary } from '../helpers/credentials/trustvc-library';
import { create } from '../helpers/processes/create-call';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { askTdocInProcess, tdocInProcess } from '../helpers/processes/tdoc-in-process';

const API_KEY = 'a-key-of-the-issuer';

type TheirLoader = Awaited<ReturnType<typeof getDocumentLoader>>;
type TheirCredential = Parameters<typeof trustVc.verifyCredential>[0];

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
    const theirLoader = await loaderOfTheirs(document.base);
    const both = async (verify: (document: object) => Promise<boolean>): Promise<string> =>
      `${await verify(document.base)} + ${await verify(document.derived)}`;
    const copyOf = (credential: object): TheirCredential => structuredClone(credential) as TheirCredential;
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
        const options = { rpcProviderUrl: local.node.url, documentLoader: theirLoader };
        const fragments = await trustVcLibrary.verifyDocument(copyOf(credential), options);
        return fragments.every(({ status }) => status === 'VALID' || status === 'SKIPPED');
      }),
      // These two verify derived documents only.
      '@trustvc/w3c-vc': String(
        (await trustVc.verifyCredential(copyOf(document.derived), { documentLoader: theirLoader })).verified,
      ),
      '@digitalbazaar/vc': String(
        (
          await digitalBazaar.verifyCredential({
            credential: structuredClone(document.derived),
            suite: new DataIntegrityProof({ cryptosuite: createVerifyCryptosuite() }),
            documentLoader: theirLoader,
            checkStatus: async () => ({ verified: true }),
          })
        ).verified,
      ),
    };
  }

  /** The libraries load contexts and the DID over HTTPS; here both come from the service over HTTP. */
  async function loaderOfTheirs({ '@context': contexts, issuer }: SignedCredential): Promise<TheirLoader> {
    const contextUrl = contexts.at(-1) ?? '';
    const context: unknown = await (await fetch(`${service.url}${new URL(contextUrl).pathname}`)).json();
    const resolution = await resolveDidWeb(issuer);
    if (resolution.kind !== 'resolved') throw new Error(resolution.problem);
    const { document } = resolution;
    const others = await getDocumentLoader({ [contextUrl]: context } as Record<string, never>);
    return (async (url: string) => {
      if (url.split('#')[0] !== issuer) return others(url);
      const method = document.verificationMethod?.find(({ id }) => id === url);
      const found =
        url === issuer
          ? document
          : method && { '@context': 'https://w3id.org/security/multikey/v1', ...method };
      if (found === undefined) throw new Error(`${url} is not in the DID document`);
      return { contextUrl: undefined, documentUrl: url, document: found };
    }) as TheirLoader;
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
