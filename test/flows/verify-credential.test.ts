import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { ContractTransactionResponse } from 'ethers';
import { freePort } from '../../devnet/place';
import type { JsonObject } from '../../service/issuance/credential';
import { tokenIdAsUint256 } from '../helpers/token-id';
import { TradeTrustTokenStandard__factory, type TradeTrustTokenStandard } from '../../typechain-types';
import full from '../fixtures/bill-of-lading-full.json';
import { create } from '../helpers/processes/create-call';
import { escrowOf } from '../helpers/chain/direct-mint';
import { askTdoc, type CommandAnswer } from '../helpers/processes/command-answer';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

describe('an issued credential', () => {
  let local: LocalSetup;
  let service: RunningService;
  let registry: TradeTrustTokenStandard;
  let credential: JsonObject;
  let tokenId: bigint;
  let file: string;

  before(async () => {
    const port = await freePort(0);
    local = await createLocalSetup({ domain: `localhost:${port}` });
    service = await startService({ ...local.settings, PORT: String(port) });
    registry = TradeTrustTokenStandard__factory.connect(
      local.registryAddress,
      await local.client.getSigner(0),
    );
    const [owner, holder] = [await local.account(1), await local.account(2)];
    const { body } = await create(service.url, { ...full, owner, holder });
    credential = { ...body.signedW3CDocument };
    tokenId = tokenIdAsUint256(body.signedW3CDocument.credentialStatus.tokenId);
    file = join(local.folder, 'answer.json');
    writeFileSync(file, JSON.stringify(body));
  });

  after(async () => {
    await service?.stop();
    await local?.stop();
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
    expect(stdout).to.contain(`context fetched: ${(credential['@context'] as string[]).at(-1)}`);
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

  it('is derived to standard output as plain JSON; a pointer that matches nothing is an error', async () => {
    const { stdout } = await run(['derive', file, '--reveal', '/credentialSubject/scac']);
    expect(JSON.parse(stdout)).to.have.nested.property('credentialSubject.scac', full.credentialSubject.scac);
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
