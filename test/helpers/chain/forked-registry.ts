import type { CloudEvent } from '../../../service/events/cloud-event';
import { TitleEscrow__factory, TradeTrustTokenStandard__factory } from '../../../typechain-types';
import { takeOverMining, type ForkableChain, type SignedCall } from './forkable-chain';
import { mintDirectly, newTokenId } from './direct-mint';
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
}

/** The accounts that may mint. */
export const MINTERS = [0, 4] as const;

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
  return {
    local,
    ...chain,
    async mint({ minter = MINTERS[0], first = false } = {}) {
      const tokenId = newTokenId();
      const call = await registry.mint.populateTransaction(beneficiary, holder, tokenId, '0x');
      return chain.sign(minter, call, { first });
    },
    async nominate(options) {
      // Another account each time: the contract refuses to nominate the present nominee.
      const next = await local.account(5 + (nominations++ % 15));
      return chain.sign(BENEFICIARY, await escrow.nominate.populateTransaction(next, '0x'), options);
    },
  };
}

/** The events of one transaction. */
export function eventsOf({ hash }: SignedCall, events: readonly CloudEvent[]): CloudEvent[] {
  return events.filter(({ data }) => data.transactionHash === hash);
}
