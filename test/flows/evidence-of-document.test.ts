import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { PROJECT_ROOT } from '../../service/base/project-root';
import type { EvidenceFile, EvidenceReport } from '../../evidence/evidence';
import full from '../fixtures/bill-of-lading-full.json';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { startRpcProxy } from '../helpers/chain/rpc-proxy';
import { liveThrough } from '../helpers/chain/token-life';
import type { CommandAnswer } from '../helpers/processes/command-answer';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { create } from '../helpers/processes/create-call';
import { startService } from '../helpers/processes/running-service';
import { tokenIdAsUint256 } from '../helpers/token-id';

/** Runs `tdoc` in a network namespace without interfaces: not even this machine can be reached. */
const ALONE = ['unshare', '-rn', process.execPath, join(PROJECT_ROOT, 'dist/cli/main.js')] as const;

describe('evidence of an issued document', () => {
  let local: LocalSetup;
  let answerFile: string;
  let evidenceFile: string;
  let page: string;

  before(async () => {
    const port = await freePort(0);
    local = await createLocalSetup({ domain: `localhost:${port}` });
    await using service = await startService({ ...local.settings, PORT: String(port) });
    answerFile = join(local.folder, 'answer.json');
    evidenceFile = join(local.folder, 'evidence.json');
    page = join(local.folder, 'evidence.html');
    const [, owner, holder] = local.accounts;
    const { body } = await create(service.url, {
      ...full,
      owner,
      holder,
      remarks: 'shipped <b>on board</b>',
    });
    writeFileSync(answerFile, JSON.stringify(body));
    const tokenId = tokenIdAsUint256(body.signedW3CDocument.credentialStatus.tokenId);
    await liveThrough(local, { tokenId, transactionHash: body.txHash });
    const options = ['--out', evidenceFile, '--html', page, '--deliveries'];
    const { code, stderr } = await run(['evidence', answerFile, ...options]);
    expect([code, stderr]).to.deep.equal([0, '']);
  });

  const run = (args: string[]): Promise<CommandAnswer> => askTdocInProcess(args, local.settings);
  const written = (): EvidenceFile => JSON.parse(readFileSync(evidenceFile, 'utf8')) as EvidenceFile;
  const unproven = ({ statements }: EvidenceReport): string[] =>
    statements.filter(({ status, isMinor }) => status !== 'proven' && !isMinor).map(({ says }) => says);

  it('proves everything but the block hashes where there is no network at all', function () {
    const [program, ...args] = ALONE;
    if (spawnSync(program, ['-rn', 'true']).status !== 0) this.skip();
    const { status, stdout } = spawnSync(program, [...args, 'check-evidence', evidenceFile, '--json'], {
      encoding: 'utf8',
    });
    expect(status).to.equal(2);
    const report = JSON.parse(stdout) as EvidenceReport;
    expect(unproven(report)).to.deep.equal([]);
    expect(report.condition).to.contain('no node was asked');
    expect(report.statements.map(({ says }) => says)).to.include(
      'The document is as it was signed with the key in the DID document of this file.',
    );
  });

  it('is VALID if a node confirms the hashes, which is all that it is asked', async () => {
    const { code, stdout } = await run(['check-evidence', evidenceFile, '--rpc-url', local.node.url]);
    expect(stdout).to.contain('VALID: a node confirmed the hashes');
    expect(code).to.equal(0);
  });

  it('is INVALID if the node has other blocks', async () => {
    await using other = await startRpcProxy(local.node.url, async (method, _params, forward) => {
      if (method !== 'eth_getBlockByNumber') return 'none';
      const { result } = (await forward()) as { result: object };
      return { result: { ...result, hash: `0x${'0'.repeat(64)}` } };
    });
    const { code, stdout } = await run(['check-evidence', evidenceFile, '--rpc-url', other.url, '--json']);
    expect(code).to.equal(1);
    expect((JSON.parse(stdout) as EvidenceReport).condition).to.match(/^REFUTED/);
  });

  it('has a page without scripts that names who held the document, and what it does not show', () => {
    const html = readFileSync(page, 'utf8');
    expect(html).not.to.match(/<script|javascript:|<b>on board|complian/i);
    expect(html).to.contain('shipped &lt;b&gt;on board&lt;/b&gt;');
    expect(html.replace(/\s+/g, ' ')).to.contain('Anybody can invent a chain');
    for (const part of [
      'The parties',
      'Control over time',
      'What you must still ask',
      'How to check it again',
    ])
      expect(html).to.contain(`<h2>${part}</h2>`);
  });

  it('has no secrets', () => {
    const { deliveries, ...rest } = written();
    expect(deliveries?.signingKeyIds).to.have.length(1);
    const text = JSON.stringify(rest);
    for (const secret of [local.settings.WALLET_PRIVATE_KEY ?? '', local.node.url])
      expect(text).not.to.contain(secret);
  });
});
