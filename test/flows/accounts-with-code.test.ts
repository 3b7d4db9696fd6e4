import { expect } from 'chai';
import { HDNodeWallet } from 'ethers';
import type { TokenView } from '../../service/answers/views';
import {
  BatchAccount__factory,
  TradeTrustTokenStandard__factory,
  type BatchAccount,
} from '../../typechain-types';
import { escrowOf, historyOf, mintDirectly, newTokenId } from '../helpers/chain/direct-mint';
import { PHRASE } from '../helpers/chain/forkable-chain';
import { createLocalSetup, DEPLOYER, type LocalSetup } from '../helpers/chain/local-setup';
import { callOf } from '../helpers/chain/random-lifecycles';
import {
  apply,
  isLegal,
  TOKEN_OPERATIONS,
  unmintedToken,
  type TokenOperation,
} from '../helpers/chain/token-model';
import type { Call } from '../helpers/chain/transactions';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { whileFollowing } from '../helpers/processes/followed-registry';
import { seededRandom } from '../helpers/seeded-random';

const BATCH = BatchAccount__factory.createInterface();

/** Calls of several accounts with code, which one of them makes. */
const nested = (calls: readonly Call[]): { to: string; data: string }[] =>
  calls.map(({ from, ...call }) => ({ to: from, data: BATCH.encodeFunctionData('execute', [[call]]) }));

describe('accounts with code', () => {
  let local: LocalSetup;
  let batches: BatchAccount[];
  let addresses: string[];

  before(async () => {
    local = await createLocalSetup({ program: 'anvil' });
    const deployer = await local.client.getSigner(0);
    batches = [];
    for (let count = 0; count < 4; count++)
      batches.push(await (await new BatchAccount__factory(deployer).deploy()).waitForDeployment());
    addresses = await Promise.all(batches.map((batch) => batch.getAddress()));
    const contract = TradeTrustTokenStandard__factory.connect(local.registryAddress, deployer);
    for (const role of [contract.MINTER_ROLE(), contract.RESTORER_ROLE(), contract.ACCEPTER_ROLE()])
      await (await contract.grantRole(await role, addresses[0]!)).wait();
  });

  it('make several operations in a transaction: each event and each endorsement is there, in order', () =>
    whileFollowing(local, {}, async (followed) => {
      const random = seededRandom(34);
      for (let tokens = 0; tokens < 4; tokens++) {
        const tokenId = newTokenId();
        const token = unmintedToken(tokenId, await escrowOf(local, tokenId));
        const made: { operation: TokenOperation; remark: string }[] = [];
        while (token.place !== 'burned' && made.length < 60) {
          const calls: Call[] = [];
          for (let left = 1 + random.below(6); left > 0; left--) {
            const named = { first: random.pick(addresses), second: random.pick(addresses) };
            const legal = TOKEN_OPERATIONS.filter((one) => isLegal(token, one, named));
            if (legal.length === 0) continue;
            const operation = random.pick(legal);
            const remark = random.hex(4);
            const call = callOf(local.registryAddress, token, operation, named, remark);
            calls.push(call.from === DEPLOYER ? { ...call, from: addresses[0]! } : call);
            apply(token, operation, named);
            made.push({ operation, remark });
          }
          if (calls.length > 0) await (await batches[0]!.execute(nested(calls))).wait();
        }
        const { endorsements, isWhole } = await historyOf(local, tokenId);
        expect(isWhole).to.equal(true);
        expect(endorsements.map(({ operation, remark }) => ({ operation, remark }))).to.deep.equal(made);
      }
      await followed.allDeliveredOnce();
    }));

  it('is a holder that delegated by EIP-7702, for whom another account sends', () =>
    whileFollowing(local, {}, async (followed) => {
      const holder = HDNodeWallet.fromPhrase(PHRASE, undefined, "m/44'/60'/0'/0/6").connect(local.client);
      const token = await mintDirectly(local, holder.address);
      const sponsor = HDNodeWallet.fromPhrase(PHRASE, undefined, "m/44'/60'/0'/0/7").connect(local.client);
      const escrow = await local.escrowAs(0, token.escrow);
      const calls = [
        await escrow.nominate.populateTransaction(addresses[1]!, '0x01'),
        await escrow.transferHolder.populateTransaction(addresses[2]!, '0x02'),
      ].map(({ to, data }) => ({ to, data }));
      const authorization = await holder.authorize({ address: addresses[3]! });
      const sent = await sponsor.sendTransaction({
        type: 4,
        to: holder.address,
        data: BATCH.encodeFunctionData('execute', [calls]),
        authorizationList: [authorization],
        gasLimit: 1_000_000,
      });
      await sent.wait();
      await followed.allDeliveredOnce();
      const tdoc = async (...flags: string[]) =>
        (await askTdocInProcess(['token', String(token.tokenId), ...flags], local.settings)).stdout;
      const told = JSON.parse(await tdoc('--json')) as TokenView;
      const done = told.endorsements.map(({ operation, by, sender }) => ({ operation, by, sender }));
      expect(done.slice(1)).to.deep.equal([
        { operation: 'nominate', by: holder.address, sender: sponsor.address },
        { operation: 'transferHolder', by: holder.address, sender: sponsor.address },
      ]);
      expect(told.accountsWithCode).to.have.deep.members([
        { address: holder.address, delegate: addresses[3] },
        { address: addresses[1] },
        { address: addresses[2] },
      ]);
      const text = await tdoc();
      const short = (address = ''): string => `${address.slice(0, 6)}…${address.slice(-4)}`;
      for (const line of [
        `  ${short(sponsor.address)} through ${short(holder.address)}  ${sent.hash}  `,
        `\n2 operations are of one transaction: ${sent.hash}\n`,
        `\n"through ${short(holder.address)}": its code made the call, for whoever sent it\n`,
        `${holder.address}  runs the code of ${addresses[3]} (EIP-7702)\n`,
        `${addresses[2]}  a contract\n`,
      ])
        expect(text).to.contain(line);
    }));
});
