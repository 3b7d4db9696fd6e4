import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { sha256, toUtf8Bytes } from 'ethers';
import { freePort } from '../../devnet/place';
import { operate, type Operated } from '../../devnet/operations';
import { check, evidencePage, type EvidenceFile, type Statement } from '../../evidence/evidence';
import { codeOf, messageOf } from '../../service/base/errors';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import {
  collected,
  hostile,
  mutated,
  MUTATIONS,
  WRONG_CHECKSUM,
  type TrueFiles,
} from '../helpers/evidence-files';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { temporaryFolder } from '../helpers/temporary-folder';
import { create } from '../helpers/processes/create-call';
import { startService } from '../helpers/processes/running-service';
import { tokenIdAsUint256 } from '../helpers/token-id';

const SEEDS = [1, 2];
const HOSTILE_SEEDS = 300;
const OF_THE_PROGRAM = /call stack|is not a function|Cannot read|not iterable/;
const ACTING_IN_A_PAGE = /(?!\n)[\p{Cc}\p{Bidi_Control}]|<img/u;
const ACTING_IN_A_TERMINAL = /(?!\n)[\p{Cc}\p{Bidi_Control}]/u;

function nestedLists(levels: number): unknown {
  return JSON.parse('['.repeat(levels) + ']'.repeat(levels));
}

describe('evidence that somebody changed', () => {
  const path = join(temporaryFolder().path, 'evidence.json');
  let local: LocalSetup;
  let other: LocalSetup;
  let files: TrueFiles;
  /** The statements that the true files prove. */
  const truths = new Set<string>();
  const trueBlocks = new Map<string, number>();

  before(async () => {
    const port = await freePort(0);
    local = await createLocalSetup({ domain: `localhost:${port}` });
    other = await createLocalSetup({ program: 'anvil' });
    const service = await startService({ ...local.settings, PORT: String(port) });
    const [, owner = ''] = local.accounts;
    const { body } = await create(service.url, { ...minimal, owner, holder: owner });
    const credential: Record<string, unknown> = { ...body.signedW3CDocument };
    const tokenId = tokenIdAsUint256(body.signedW3CDocument.credentialStatus.tokenId);
    const transfer = (to: number): Promise<Operated> => operate(local, 'transferHolder', { tokenId, to });
    const pair = [await transfer(2), await transfer(1)];
    await transfer(3);
    const { blockNumber } = await operate(local, 'nominate', { tokenId, to: 2, remark: 'to the bank' });
    const second = await mintDirectly(local, owner);
    await operate(local, 'transferHolder', { tokenId: second.tokenId, to: 4 });
    const own = await collected(local, tokenId, { credential, stateAt: [blockNumber] });
    await service.stop();
    const another = await collected(local, second.tokenId);
    await mineBlocks(other, 7);
    await mintDirectly(other, other.accounts[5] ?? '', { tokenId });
    await operate(other, 'transferHolder', { tokenId, to: 6 });
    const invented = await collected(other, tokenId);
    // A node that is behind would have no other block.
    await mineBlocks(local, 20);
    const returningPair = own.blocks.filter(({ number }) => pair.some((one) => one.blockNumber === number));
    files = { own, another, invented, returningPair: returningPair.map(({ hash }) => hash) };
    for (const file of [own, another]) {
      for (const statement of (await check(file)).report.statements)
        if (statement.status === 'proven') truths.add(keyOf(statement));
      for (const { hash, number } of file.blocks) trueBlocks.set(hash, number);
    }
  });

  /** The contracts are the same at each block, and the document is checked as of the time in the file. */
  function keyOf({ topic, says, given }: Statement): string {
    if (topic === 'contracts') return says;
    if (topic === 'document') return says.replace(/expired at \S+$/, 'expired');
    return `${says} given ${[...given].sort().join()}`;
  }

  /** Statements about the lists of the file: a shorter file makes them of fewer events. */
  const OF_LISTS = /^(The \d+ events of the token|The events (listed are all|up to block)|The blocks listed)/;

  /** Whether a statement that is called proven is not true, given the hashes of the blocks that it names. */
  function isFalse(statement: Statement, file: EvidenceFile): boolean {
    if (statement.status !== 'proven' || truths.has(keyOf(statement))) return false;
    // Another premise: a node is asked for it.
    if (statement.given.some((hash) => !trueBlocks.has(hash))) return false;
    if (!OF_LISTS.test(statement.says)) return true;
    if (statement.says.startsWith('The blocks listed')) {
      const numbers = file.blocks.map(({ hash }) => trueBlocks.get(hash) ?? 0);
      return numbers.some((number, index) => index > 0 && number !== (numbers[index - 1] ?? 0) + 1);
    }
    // True of the events that are listed, if these are true events in their order.
    const place = (event: EvidenceFile['events'][number]): number =>
      files.own.events.findIndex((one) => JSON.stringify(one) === JSON.stringify(event));
    const places = file.events.map(place);
    if (places.some((one, index) => one < 0 || one <= (places[index - 1] ?? -1))) return true;
    if (!statement.says.startsWith('The events listed are all')) return false;
    const inReceipts = files.own.events.filter(({ blockHash, transactionHash }) =>
      file.blocks.some(
        ({ hash, transactions }) =>
          hash === blockHash && transactions.some((one) => one.hash === transactionHash),
      ),
    );
    return inReceipts.length !== file.events.length;
  }

  for (const kind of Object.keys(MUTATIONS))
    it(`is nowhere called proven where it is false: ${kind}`, async () => {
      for (const seed of SEEDS) {
        const file = mutated(files, kind, seed);
        const read = await check(JSON.parse(JSON.stringify(file))).catch((thrown: unknown) => {
          expect(codeOf(thrown), `seed ${seed}`).to.equal('EVIDENCE_INVALID');
        });
        if (read === undefined) continue;
        const wrong = read.report.statements.filter((one) => isFalse(one, read.file));
        expect(wrong, `seed ${seed}`).to.deep.equal([]);
      }
    });

  it('is refused where it has another form, with the member and the remedy', async () => {
    const [block] = files.own.blocks;
    const changes: [change: object, problem: RegExp][] = [
      [
        { blocks: [{ ...block, number: '8' }] },
        /: \/blocks\/0\/number must be a number, but it is a string\./,
      ],
      [
        { blocks: [{ ...block, hash: undefined }] },
        /: \/blocks\/0\/hash must be a text, but it is missing\./,
      ],
      [{ blocks: [] }, /: \/blocks must not be empty\./],
      [{ blocks: files.own.blocks.toReversed() }, /: \/blocks is not in the order of the numbers\./],
      [
        { states: files.own.states.slice(0, 1) },
        /: \/states does not end with the state at the last block\./,
      ],
      [{ chainId: 0.5 }, /: \/chainId must be a whole number\./],
      [{ collectedAt: 'then' }, /: \/collectedAt must be a time in UTC/],
      [{ version: 2 }, /: \/version 2 is not known\./],
      [{ version: { toString: 1 } }, /: \/version must be 1\./],
      [{ version: nestedLists(200_000) }, /: \/version is nested deeper than 110 levels\./],
      [{ software: 'x'.repeat(65_000_000) }, /: \/software is too large: .* at most 64000000 characters\./],
      [{ events: Array(300_000).fill(0) }, /: \/events is too large: .* at most 300000 values\./],
      [{ blocks: Array(5_001).fill(block) }, /: \/blocks must not be longer than 5000\./],
      [{ states: Array(2_000).fill(files.own.states.at(-1)) }, /: \/states must not be longer than 100\./],
      [{ states: [...files.own.states, files.own.states.at(-1)] }, /: \/states has a block twice\./],
      [{ events: [...files.own.events, files.own.events[0]] }, /: \/events has a log twice\./],
      [{ codes: [...files.own.codes, files.own.codes[0]] }, /: \/codes has an address twice\./],
      [
        { codes: [{ address: files.own.registry, code: `0x${'00'.repeat(17_000_000)}` }] },
        /: \/codes\/0\/code must not be longer than 1000000\./,
      ],
      [
        {
          credential: {
            ...files.own.credential,
            credential: { '@context': Array(30_000).fill('https://x.example') },
          },
        },
        /: \/credential\/credential has more than 25000 values\./,
      ],
      [{ note: '' }, /: \/note is not a member\./],
    ];
    for (const [change, problem] of changes) {
      const error = await check({ ...files.own, ...change }).catch((thrown: unknown) => thrown);
      expect(codeOf(error)).to.equal('EVIDENCE_INVALID');
      expect(messageOf(error)).to.match(problem).and.to.contain('Give a file of `tdoc evidence`');
    }
  });

  const about = ({ statements }: { statements: readonly Statement[] }, start: string): Statement[] =>
    statements.filter(({ says }) => says.startsWith(start));

  /** The file with a document that is changed. */
  function withDocument(change: object): EvidenceFile {
    const { credential, ...rest } = structuredClone(files.own);
    if (credential === undefined) throw new Error('the file has no document');
    return { ...rest, credential: { ...credential, credential: { ...credential.credential, ...change } } };
  }

  it('is not refuted where the program fails: the document is more than it reads', async () => {
    const contexts = Array.from({ length: 31 }, (_, index) => `https://example.com/${index}`);
    for (const [change, problem] of [
      [{ '@context': contexts }, /names more than 30 contexts/],
      [{ '@context': Array(20_000).fill(contexts[0]) }, /names more than 30 contexts/],
      [{ credentialSubject: nestedLists(105) }, /nested deeper than 100 levels/],
    ] as const) {
      const [statement] = about((await check(withDocument(change))).report, 'The document is a signed');
      expect(statement).to.include({ status: 'claimed', isMinor: false });
      expect(statement?.because).to.match(problem);
    }
  });

  it('is not refuted where the program fails: a context is more than it reads', async () => {
    const url = 'https://example.com/context';
    for (const text of [
      `{"@context":${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
      JSON.stringify({ '@context': Array(300_000).fill('https://example.com/other') }),
    ]) {
      const file = withDocument({});
      const context = [file.credential?.credential['@context'], url].flat();
      Object.assign(file.credential?.credential ?? {}, { '@context': context });
      const at = file.collectedAt;
      const document = { kind: 'context' as const, url, from: 'host' as const, at, text };
      file.credential?.documents.push({ ...document, sha256: sha256(toUtf8Bytes(text)).slice(2) });
      const { report } = await check(file);
      const refuted = report.statements.filter(
        ({ topic, status }) => topic === 'document' && status === 'refuted',
      );
      expect(refuted).to.deep.equal([]);
      expect(report.outcome).to.equal('could not tell');
    }
  });

  it('shows the network of its chain id, and as claimed who collected it', async () => {
    const claims = { network: 'Polygon Mainnet', software: 'PROVEN by the High Court' };
    const page = await pageOf({ ...files.own, ...claims });
    expect(page).to.contain('localhost (chain id 31337)').and.not.to.contain('Polygon Mainnet');
    const places = page.split(claims.software).slice(0, -1);
    expect(places).to.have.length(2);
    expect(page).to.match(/<td><span class="claimed">CLAIMED<\/span> [^<]*PROVEN by the High Court/);
    expect(page).to.match(/“PROVEN by the High Court” is <span class="claimed">CLAIMED<\/span>/);
    expect(await pageOf({ ...files.own, chainId: 7 })).to.contain('a network not known here (chain id 7)');
  });

  it('is shown on a page although a text has an address with a wrong checksum', async () => {
    const file = structuredClone(files.own);
    for (const state of file.states) state.proof = { problem: `of ${WRONG_CHECKSUM} there is none` };
    expect(await pageOf(file)).to.contain(WRONG_CHECKSUM);
  });

  async function pageOf(file: unknown): Promise<string> {
    const read = await check(file);
    return evidencePage(read.file, read.report);
  }

  it('is answered with a report or EVIDENCE_INVALID, whatever a stranger put into it', async () => {
    let reports = 0;
    for (let seed = 1; seed <= HOSTILE_SEEDS; seed++) {
      const file = hostile(files.own, seed);
      const read = await check(file).catch((thrown: unknown) => {
        expect(codeOf(thrown), `seed ${seed}: ${(thrown as Error).stack}`).to.equal('EVIDENCE_INVALID');
        expect(messageOf(thrown).length, `seed ${seed}`).to.be.below(1_000);
      });
      if (read === undefined) continue;
      reports++;
      const failed = read.report.statements.filter((one) => OF_THE_PROGRAM.test(one.because));
      expect(failed, `seed ${seed}`).to.deep.equal([]);
      expect(evidencePage(read.file, read.report), `seed ${seed}`).not.to.match(ACTING_IN_A_PAGE);
      if (reports % 10 > 0) continue;
      writeFileSync(path, JSON.stringify(file));
      const printed = await askTdocInProcess(['check-evidence', path, '--all'], {});
      expect(printed.stderr, `seed ${seed}`).to.equal('');
      expect(printed.stdout, `seed ${seed}`).not.to.match(ACTING_IN_A_TERMINAL);
    }
    expect(reports).to.be.above(HOSTILE_SEEDS / 10);
  });

  it('is found by a node if a whole chain is invented: the file alone refutes nothing', async () => {
    const alone = await check(files.invented);
    expect(alone.report.statements.map(({ status }) => status)).not.to.include('refuted');
    const asked = await check(files.invented, { rpcUrls: [local.node.url] });
    expect(asked.report.outcome).to.equal('invalid');
    expect(asked.report.condition).to.match(/^REFUTED/);
  });
});
