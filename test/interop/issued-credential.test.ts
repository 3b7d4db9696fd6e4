import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import { createDiscloseCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import * as digitalBazaar from '@digitalbazaar/vc';
import * as trustVc from '@trustvc/w3c-vc';
import { expect } from 'chai';
import type { ContractTransactionResponse } from 'ethers';
import { freePort } from '../../devnet/place';
import type { JsonObject } from '../../service/issuance/credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import type { SignedCredential } from '../../service/issuance/sign';
import { deriveCredential } from '../../service/verification/derive-credential';
import { verifyCredential, type Verification } from '../../service/verification/verify-credential';
import { TradeTrustTokenStandard__factory, type TradeTrustTokenStandard } from '../../typechain-types';
import full from '../fixtures/bill-of-lading-full.json';
import { askTdoc, type CommandAnswer } from '../helpers/processes/command-answer';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { escrowOf, mintDirectly } from '../helpers/chain/direct-mint';
import { readSettings } from '../../service/config/config';
import { parseDidKeyPair } from '../../service/base/did-key-pair';
import { realSources } from '../helpers/credentials/real-sources';
import { startService, type RunningService } from '../helpers/processes/running-service';
import {
  digitalBazaarVerifies,
  loaderOfTheirs,
  theirs,
  trustVcLibrary,
} from '../helpers/credentials/trustvc-library';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

describe('an issued credential', () => {
  let local: LocalSetup;
  let service: RunningService;
  let answer: CreateAnswer['body'];
  let credential: SignedCredential;
  let registry: TradeTrustTokenStandard;
  let documentLoader: Awaited<ReturnType<typeof loaderOfTheirs>>;

  before(async () => {
    const port = await freePort(0);
    local = await createLocalSetup({ domain: `localhost:${port}` });
    service = await startService({ ...local.settings, PORT: String(port) });
    const [owner, holder] = [await local.account(1), await local.account(2)];
    ({ body: answer } = await create(service.url, { ...full, owner, holder }));
    credential = answer.signedW3CDocument;
    registry = TradeTrustTokenStandard__factory.connect(
      local.registryAddress,
      await local.client.getSigner(0),
    );
    documentLoader = await loaderOfTheirs(service.url, credential);
  });

  const verifyOurs = async (value: unknown): Promise<Verification> =>
    verifyCredential(value as JsonObject, realSources(local));

  describe('@trustvc/w3c-vc', () => {
    const derive = async (pointers: string[]): Promise<unknown> => {
      const { derived, error } = await trustVc.deriveCredential(theirs(credential), pointers, {
        documentLoader,
      });
      expect(error).to.equal(undefined);
      return derived;
    };
    const verify = async (value: unknown) => trustVc.verifyCredential(theirs(value), { documentLoader });

    it('derives from our credential, in whole and in part; both sides verify the result', async () => {
      for (const pointers of [
        ['/credentialSubject', '/renderMethod'],
        ['/credentialSubject/blNumber', '/credentialSubject/packages/1/packagesWeight'],
      ]) {
        const derived = await derive([...pointers]);
        expect(await verify(derived)).to.deep.equal({ verified: true });
        expect((await verifyOurs(derived)).outcome).to.equal('valid');
      }
    });

    it('verifies credentials that we derive', async () => {
      const loader = createDocumentLoader(credential['@context'].at(-1) ?? '');
      for (const pointers of [[''], ['/credentialSubject/scac']]) {
        const derived = await deriveCredential({ ...credential }, pointers, loader);
        expect(await verify(derived)).to.deep.equal({ verified: true });
      }
    });

    it('signs credentials that we verify, base and derived, without fetching a context', async () => {
      const parsed = parseDidKeyPair(readSettings(local.settings).settings.DID_KEY_PAIRS ?? '');
      if ('problem' in parsed) throw new Error(parsed.problem);
      const { credentialStatus, renderMethod, issuer, validFrom, validUntil, ...rest } = credential;
      const { type, tokenNetwork, tokenRegistry } = credentialStatus;
      const unsigned = {
        '@context': [...rest['@context'].slice(0, -1), 'https://trustvc.io/context/bill-of-lading.json'],
        type: rest.type,
        credentialStatus: { type, tokenNetwork, tokenRegistry },
        renderMethod,
        credentialSubject: full.credentialSubject,
        issuer,
        validFrom,
        validUntil,
      };
      const { signed, error } = await trustVc.signCredential(
        unsigned,
        parsed.keyPair as unknown as Parameters<typeof trustVc.signCredential>[1],
        'ecdsa-sd-2023',
        { mandatoryPointers: ['/credentialStatus', '/validUntil'] },
      );
      expect(error).to.equal(undefined);
      const base = signed as unknown as SignedCredential;
      expect((await verifyOurs(base)).documentStatus.outcome).to.equal('invalid');

      const tokenId = BigInt(trustVcLibrary.getTokenId(base));
      await mintDirectly(local, await local.account(1), { tokenId });
      const { derived } = await trustVc.deriveCredential(theirs(base), ['/credentialSubject/blNumber']);
      for (const document of [base, derived]) {
        const { outcome, contextsFetched } = await verifyOurs(document);
        expect(outcome).to.equal('valid');
        expect(contextsFetched).to.deep.equal([]);
      }
    });
  });

  describe('@trustvc/trustvc, the library of the TrustVC portal', () => {
    async function verifyInPortal(document: unknown): Promise<Record<string, string>> {
      const options = { rpcProviderUrl: local.node.url, documentLoader };
      const fragments = await trustVcLibrary.verifyDocument(theirs(document), options);
      const spoken = fragments.filter(({ status }) => status !== 'SKIPPED');
      return Object.fromEntries(spoken.map(({ name, status }) => [name, status]));
    }

    const VALID = {
      EcdsaW3CSignatureIntegrity: 'VALID',
      TransferableRecords: 'VALID',
      W3CIssuerIdentity: 'VALID',
    };

    it('answers VALID in all three checks of our credential, as issued and as derived', async () => {
      expect(await verifyInPortal(credential)).to.deep.equal(VALID);
      const loader = createDocumentLoader(credential['@context'].at(-1) ?? '');
      const derived = await deriveCredential({ ...credential }, ['/credentialSubject/blNumber'], loader);
      expect(await verifyInPortal(derived)).to.deep.equal(VALID);
    });

    it('calls a returned or shredded token VALID; we call a shredded one INVALID', async () => {
      const one = await local.account(1);
      const { body } = await create(service.url, { ...full, owner: one, holder: one });
      const other = body.signedW3CDocument;
      const tokenId = BigInt(`0x${other.credentialStatus.tokenId}`);
      const escrow = await local.escrowAs(1, await escrowOf(local, tokenId));
      await (await escrow.returnToIssuer('0x')).wait();
      expect(await verifyInPortal(other)).to.deep.equal(VALID);
      await (await registry.burn(tokenId, '0x')).wait();
      expect(await verifyInPortal(other)).to.deep.equal(VALID);
      expect((await verifyOurs(other)).documentStatus.outcome).to.equal('invalid');
    });
  });

  it('is derived by @digitalbazaar/vc; both sides verify the result', async () => {
    const derive = (selectivePointers: string[]) =>
      digitalBazaar.derive<SignedCredential>({
        verifiableCredential: structuredClone(credential),
        suite: new DataIntegrityProof({ cryptosuite: createDiscloseCryptosuite({ selectivePointers }) }),
        documentLoader,
      });
    const derived = await derive(['/credentialSubject']);
    const { verified, error } = await digitalBazaarVerifies(derived, documentLoader);
    expect(error?.errors ?? error).to.equal(undefined);
    expect(verified).to.equal(true);
    expect((await verifyOurs(derived)).outcome).to.equal('valid');
    // docs/verification.md says that most verifiers want a part of the subject.
    const hidden = await derive(['/renderMethod']);
    expect(hidden).not.to.have.property('credentialSubject');
    const refused = await digitalBazaarVerifies(hidden, documentLoader);
    expect(refused.error?.message).to.contain('credentialSubject');
  });

  // The last: it shreds the token.
  describe('npx tdoc', () => {
    let file: string;
    let tokenId: bigint;

    before(() => {
      file = join(local.folder, 'answer.json');
      writeFileSync(file, JSON.stringify(answer));
      tokenId = BigInt(`0x${credential.credentialStatus.tokenId}`);
    });

    const run = (
      args: string[],
      settings: Record<string, string> = {},
      ask = askTdocInProcess,
    ): Promise<CommandAnswer> =>
      ask(args, {
        NET: '31337',
        RPC_URL: local.node.url,
        ENV_FILE: join(local.folder, 'none.env'),
        ...settings,
      });
    const sent = async (transaction: Promise<ContractTransactionResponse>): Promise<void> =>
      void (await (await transaction).wait());

    it('is VALID as POST /create returned it, without any settings of the issuer', async () => {
      const { code, stdout, stderr } = await run(['verify-credential', file], {}, askTdoc);
      expect(stderr).to.equal('');
      expect(code).to.equal(0);
      for (const line of ['document integrity: VALID', 'issuer identity: VALID', 'document status: VALID'])
        expect(stdout.split('\n')).to.include(line);
      expect(stdout).to.contain(`holder ${await local.account(2)}`);
      expect(stdout).to.contain(`context fetched: ${credential['@context'].at(-1)}`);
    });

    it('is VALID in a derived version that shows only the chosen values', async () => {
      const derived = join(local.folder, 'derived.json');
      const names = ['/credentialSubject/blNumber', '/credentialSubject/packages/0/packagesWeight'];
      await run(['derive', file, '--reveal', ...names, '--out', derived]);
      const shown = JSON.parse(readFileSync(derived, 'utf8')) as JsonObject;
      const { blNumber, packages } = full.credentialSubject;
      const [{ packagesWeight } = { packagesWeight: '' }] = packages;
      expect(shown.credentialSubject).to.deep.equal({
        type: ['BillOfLading'],
        blNumber,
        packages: [{ packagesWeight }],
      });

      const { code, stdout } = await run(['verify-credential', derived, '--json']);
      expect(code).to.equal(0);
      const report = JSON.parse(stdout) as JsonObject;
      expect(Object.keys(report)).to.deep.equal([
        'outcome',
        'documentIntegrity',
        'issuerIdentity',
        'documentStatus',
        'contextsFetched',
      ]);
      expect(report.outcome).to.equal('valid');
      expect(report).to.have.nested.property('documentStatus.token.tokenId', tokenId.toString());
      expect(report).to.have.nested.property('issuerIdentity.issuer', credential.issuer);
    });

    it('is derived as plain JSON to standard output; a wrong pointer is an error', async () => {
      const { stdout } = await run(['derive', file, '--reveal', '/credentialSubject/scac']);
      expect(JSON.parse(stdout)).to.have.nested.property(
        'credentialSubject.scac',
        full.credentialSubject.scac,
      );
      const wrong = await run(['derive', file, '--reveal', '/credentialSubject/scax']);
      expect(wrong.code).to.equal(2);
      expect(wrong.stderr).to.contain('/credentialSubject/scax').and.contain('POINTER_MATCHES_NOTHING');
      expect(wrong.stdout.trim()).to.equal('');
    });

    it('is COULD NOT TELL, with exit code 2, when the node cannot be reached', async () => {
      const nowhere = `http://127.0.0.1:${await freePort(0)}`;
      const { code, stdout } = await run(['verify-credential', file], { RPC_URL: nowhere });
      expect(code).to.equal(2);
      expect(stdout).to.contain('document integrity: VALID').and.contain('document status: COULD NOT TELL');
    });

    it('is INVALID, with exit code 1, once its token is shredded', async () => {
      const escrow = await escrowOf(local, tokenId);
      await sent((await local.escrowAs(2, escrow)).transferHolder(await local.account(1), '0x'));
      await sent((await local.escrowAs(1, escrow)).returnToIssuer('0x'));
      expect((await run(['verify-credential', file])).stdout).to.contain('returned to the issuer');
      await sent(registry.burn(tokenId, '0x'));
      const { code, stdout } = await run(['verify-credential', file]);
      expect(code).to.equal(1);
      expect(stdout).to.contain('document integrity: VALID').and.contain('document status: INVALID');
    });
  });
});
