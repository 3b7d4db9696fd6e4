import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { operate, type Operated } from '../../devnet/operations';
import { check, type EvidenceFile, type Statement } from '../../service/evidence/evidence';
import { codeOf, messageOf } from '../../service/base/errors';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { collected, mutated, MUTATIONS, type TrueFiles } from '../helpers/evidence-files';
import { create } from '../helpers/processes/create-call';
import { startService } from '../helpers/processes/running-service';
import { tokenIdAsUint256 } from '../helpers/token-id';

const SEEDS = [1, 2];

describe('evidence that somebody changed', () => {
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
      [{ note: '' }, /: \/note is not a member\./],
    ];
    for (const [change, problem] of changes) {
      const error = await check({ ...files.own, ...change }).catch((thrown: unknown) => thrown);
      expect(codeOf(error)).to.equal('EVIDENCE_INVALID');
      expect(messageOf(error)).to.match(problem).and.to.contain('Give a file of `tdoc evidence`');
    }
  });

  it('is found by a node if a whole chain is invented: the file alone refutes nothing', async () => {
    const alone = await check(files.invented);
    expect(alone.report.statements.map(({ status }) => status)).not.to.include('refuted');
    const asked = await check(files.invented, { rpcUrls: [local.node.url] });
    expect(asked.report.outcome).to.equal('invalid');
    expect(asked.report.condition).to.match(/^REFUTED/);
  });
});
