import { ZeroAddress, getAddress, isError } from 'ethers';
import { TitleEscrow__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { headNumberOf } from '../chain/read-chain';
import type { Chain } from '../chain/chain';
import { runnerOf } from '../chain/read-state';
import { ChainError } from '../base/errors';
import { BURN_ADDRESS } from './decode-log';
import { titleEscrowAddress, type RegistryContracts } from './registry-contracts';

/**
 * The state of a token in its registry and its title escrow. Addresses are checksummed; the zero address is
 * returned as undefined. While `isPaused`, the registry accepts no operation and no mint.
 *
 * - `in escrow`: owned by its title escrow; the beneficiary and the holder can act.
 * - `returned to issuer`: owned by the registry, whose issuer restores or shreds it. Beneficiary and holder
 *   are unchanged.
 * - `shredded`: taken out of circulation for good.
 */
export type TokenState = { block: number; isPaused: boolean } & (
  { state: 'not minted' } | ({ state: 'in escrow' | 'returned to issuer' | 'shredded' } & EscrowState)
);

/** Revert reason of SBTUpgradeable.ownerOf for an id that was never minted. */
const NO_SUCH_TOKEN = 'ERC721: owner query for nonexistent token';

/** The title escrow's fields. `previous…`: the address that gets the role back after a rejection. */
export interface EscrowState {
  titleEscrow: string;
  beneficiary: string | undefined;
  holder: string | undefined;
  nominee: string | undefined;
  previousBeneficiary: string | undefined;
  previousHolder: string | undefined;
}

/**
 * Reads the whole state of a token at one block: the one given or, by default, the newest.
 *
 * @throws ChainError TOKEN_OWNER_UNEXPECTED if its owner is one that the contracts never give it to; any
 *   error of the node.
 */
export async function readTokenState(
  client: Chain,
  contracts: RegistryContracts,
  tokenId: bigint,
  atBlock?: number,
): Promise<TokenState> {
  const block = atBlock ?? (await headNumberOf(client));
  const registry = TradeTrustTokenStandard__factory.connect(contracts.registry, runnerOf(client));
  const owner = await registry.ownerOf(tokenId, { blockTag: block }).catch((cause: unknown) => {
    if (isError(cause, 'CALL_EXCEPTION') && cause.reason === NO_SUCH_TOKEN) return undefined;
    throw cause;
  });
  const isPaused = await registry.paused({ blockTag: block });
  if (owner === undefined) return { state: 'not minted', block, isPaused };
  const titleEscrow = titleEscrowAddress(contracts, tokenId);
  const state = stateOf(owner.toLowerCase(), titleEscrow, contracts);
  return { state, block, isPaused, ...(await readEscrow(client, titleEscrow, block)) };
}

function stateOf(
  owner: string,
  titleEscrow: string,
  { registry }: RegistryContracts,
): 'in escrow' | 'returned to issuer' | 'shredded' {
  if (owner === titleEscrow) return 'in escrow';
  if (owner === registry) return 'returned to issuer';
  if (owner === BURN_ADDRESS) return 'shredded';
  const message = `The token is owned by ${owner}, which is neither its title escrow nor its registry.`;
  throw new ChainError('TOKEN_OWNER_UNEXPECTED', message);
}

/** Functions of TitleEscrow, in the order of `EscrowState`. */
const ROLES = ['beneficiary', 'holder', 'nominee', 'prevBeneficiary', 'prevHolder'] as const;

async function readEscrow(client: Chain, address: string, blockTag: number): Promise<EscrowState> {
  const escrow = TitleEscrow__factory.connect(address, runnerOf(client));
  const [beneficiary, holder, nominee, previousBeneficiary, previousHolder] = await Promise.all(
    ROLES.map((role) => escrow[role]({ blockTag }).then(partyOf)),
  );
  const titleEscrow = getAddress(address);
  return { titleEscrow, beneficiary, holder, nominee, previousBeneficiary, previousHolder };
}

/** The address, checksummed. Undefined for the zero address, which is nobody. */
export function partyOf(address: string | boolean | undefined): string | undefined {
  return typeof address !== 'string' || address === ZeroAddress ? undefined : getAddress(address);
}
