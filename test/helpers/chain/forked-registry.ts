import type { CloudEvent } from '../../../service/events/cloud-event';
import {
  TitleEscrow__factory,
  TradeTrustTokenStandard__factory,
  type TitleEscrow,
} from '../../../typechain-types';
import { takeOverMining, type ForkableChain, type SignedCall } from './forkable-chain';
import { escrowOf, mintDirectly, newTokenId } from './direct-mint';
import { createLocalSetup, type LocalSetup } from './local-setup';

/** A local setup whose chain can be forked, and calls of its registry to mine on any branch. */
export interface ForkedRegistry extends ForkableChain {
  local: LocalSetup;
  /**
   * A mint of a new token, with five events. The minters (`MINTERS`) have separate nonces: the mint of one
   * can be mined without that of the other.
   */
  mint(this: void, options?: { minter?: number; first?: boolean }): Promise<SignedCall>;
  /**
   * A transaction with a single log, an event of a token that was minted before all forks. Its sender is not
   * a minter.
   */
  nominate(this: void, options?: { first: boolean }): Promise<SignedCall>;
  /**
   * Mints a new token whose beneficiary and holder are one account, and signs calls for it: `handOver` hands
   * over both roles, after a nomination or after an unrelated call. After a nomination, the hand-over has one
   * more log, before that of the new holder.
   */
  handover(this: void): Promise<{ nominate: SignedCall; unrelated: SignedCall; handOver: SignedCall }>;
  stop(this: void): Promise<void>;
}

/** The accounts that may mint. */
export const MINTERS = [0, 4] as const;

/** The types of the events of a mint, in order. */
export const MINT_TYPES = [
  'escrow_created',
  'minted',
  'beneficiary_transfer',
  'holder_transfer',
  'token_received',
].map((suffix) => `com.service.etr.${suffix}`);

const BENEFICIARY = 1;

/** Makes the setup, lets a second account mint, and takes mining over from the node. */
export async function createForkedRegistry(): Promise<ForkedRegistry> {
  const local = await createLocalSetup();
  const [beneficiary, holder] = [await local.account(BENEFICIARY), await local.account(2)];
  const registry = TradeTrustTokenStandard__factory.connect(
    local.registryAddress,
    await local.client.getSigner(MINTERS[0]),
  );
  await registry.grantRole(await registry.MINTER_ROLE(), await local.account(MINTERS[1]));
  const token = await mintDirectly(local, beneficiary);
  const escrow = TitleEscrow__factory.connect(token.escrow);
  const chain = await takeOverMining(local.client);
  let nominations = 0;
  const nominateFor = async (nominated: TitleEscrow, options?: { first: boolean }): Promise<SignedCall> => {
    // Another account each time: the contract refuses to nominate the present nominee.
    const next = await local.account(5 + (nominations++ % 15));
    return chain.sign(BENEFICIARY, await nominated.nominate.populateTransaction(next, '0x'), options);
  };
  return {
    local,
    ...chain,
    async handover() {
      const tokenId = newTokenId();
      const mint = await registry.mint.populateTransaction(beneficiary, beneficiary, tokenId, '0x');
      await chain.mine(await chain.sign(MINTERS[0], mint));
      const own = TitleEscrow__factory.connect(await escrowOf(local, tokenId));
      const fork = await chain.fork();
      const nominate = await nominateFor(own);
      await chain.mine(nominate);
      const both = await own.transferOwners.populateTransaction(holder, holder, '0x');
      const handOver = await chain.sign(BENEFICIARY, both);
      await fork.back(0);
      // This call has the nonce of the nomination: only one of the two comes before the hand-over.
      return { nominate, unrelated: await nominateFor(escrow), handOver };
    },
    async mint({ minter = MINTERS[0], first = false } = {}) {
      const tokenId = newTokenId();
      const call = await registry.mint.populateTransaction(beneficiary, holder, tokenId, '0x');
      return chain.sign(minter, call, { first });
    },
    nominate: (options) => nominateFor(escrow, options),
    async stop() {
      await local.stop();
    },
  };
}

/** The events of one transaction. */
export function eventsOf({ hash }: SignedCall, events: readonly CloudEvent[]): CloudEvent[] {
  return events.filter(({ data }) => data.transactionHash === hash);
}
