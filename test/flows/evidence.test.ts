import { expect } from 'chai';
import { CHAIN_EVENT_TYPES } from '../../client/events';
import { check, collect, type EvidenceReport } from '../../service/evidence/evidence';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { startRpcProxy } from '../helpers/chain/rpc-proxy';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { liveThrough } from '../helpers/chain/token-life';
import { collected } from '../helpers/evidence-files';

const unproven = ({ statements }: EvidenceReport): string[] =>
  statements
    .filter(({ status, isMinor }) => status !== 'proven' && !isMinor)
    .map(({ status, topic }) => `${topic} ${status}`);

for (const program of ['hardhat', 'anvil'] as const)
  describe(`evidence of a token on ${program}`, () => {
    let local: LocalSetup;
    let tokenId: bigint;
    let report: EvidenceReport;

    before(async () => {
      local = await createLocalSetup({ program });
      const [, beneficiary = '', holder = ''] = local.accounts;
      ({ tokenId } = await mintDirectly(local, beneficiary, { holder }));
      await liveThrough(local, { tokenId, transactionHash: '' });
      // As a file that was written and read again.
      ({ report } = await check(JSON.parse(JSON.stringify(await collected(local, tokenId)))));
    });

    it('proves every event, the state, the contracts and their code from the hashes of blocks', () => {
      expect(unproven(report)).to.deep.equal([]);
      const said = report.statements.map(({ says }) => says).join('\n');
      for (const type of CHAIN_EVENT_TYPES) expect(said).to.contain(`logged ${type.replace(/^.*\./, '')}`);
      expect(report.operations.map(({ operation }) => operation)).to.have.length(17);
      expect(report.operations.every(({ sender, isProven }) => isProven && sender !== undefined)).to.equal(
        true,
      );
    });

    it('says first that the hashes are only claimed, and never proves that nothing else happened', () => {
      expect(report.outcome).to.equal('could not tell');
      expect(report.condition).to.match(/only claimed.*invent a chain/);
      const nothingElse = report.statements.find(({ says }) => says.startsWith('Nothing else happened'));
      expect(nothingElse).to.include({ status: 'claimed', isMinor: true });
    });

    it('has the state and the code as claimed where the node gives no proof of them', async () => {
      await using proxy = await startRpcProxy(local.node.url, (method) =>
        method === 'eth_getProof' ? { error: { code: -32601, message: 'no such method' } } : 'none',
      );
      const bare = await check(await collected({ ...local, node: proxy }, tokenId));
      expect(unproven(bare.report)).to.deep.equal([
        ...['contracts claimed', 'contracts claimed', 'contracts claimed'],
        ...['state claimed', 'history claimed'],
      ]);
    });

    it('is collected from two nodes that write transactions and proofs in their own ways', async () => {
      await using proxy = await startRpcProxy(local.node.url, async (method, _params, forward) => {
        if (!['eth_getBlockByHash', 'eth_getProof'].includes(method)) return 'none';
        const { result } = (await forward()) as { result: { transactions?: object[] } };
        const transactions = result.transactions?.map((one) => ({ ...one, own: '0x' }));
        return { result: { ...result, balance: '0x00', ...(transactions && { transactions }) } };
      });
      const location = { chainId: 31337, registry: local.registryAddress, tokenId };
      const ofBoth = await check(await collect(location, { rpcUrls: [local.node.url, proxy.url] }));
      expect(unproven(ofBoth.report)).to.deep.equal([]);
    });

    it('does not know what the memory of contracts means that run other code', async () => {
      const [, beneficiary = ''] = local.accounts;
      const { tokenId: other } = await mintDirectly(local, beneficiary);
      const file = await collected(local, other);
      const address = file.contracts.titleEscrowImplementation;
      const code = await local.client.getCode(address);
      // It does the same as before: only its hash is another one.
      await local.client.send(`${program}_setCode`, [address, `${code}00`]);
      await mineBlocks(local, 1);
      const { statements } = (await check(await collected(local, other))).report;
      const unknown = statements.filter(({ because }) => /not known here/.test(because));
      expect(unknown.map(({ status, topic }) => `${topic} ${status}`)).to.deep.equal([
        'contracts claimed',
        'state claimed',
      ]);
    });
  });
