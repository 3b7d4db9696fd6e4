import { randomBytes } from 'node:crypto';
import { systemTime } from '../../../service/base/time';
import { connectNode } from '../../../service/chain/chain';
import { createRegistryFinder } from '../../../service/registry/registry-contracts';
import { readTokenHistory, type TokenHistory } from '../../../service/token/read-token-history';
import {
  TitleEscrowFactory__factory,
  TitleEscrow__factory,
  TradeTrustTokenStandard__factory,
} from '../../../typechain-types';
import { mineTogether, sendTransaction, type Call } from './transactions';
import { DEPLOYER, type LocalSetup } from './local-setup';

/**
 * A token that was minted at the registry itself, without the service. That is faster than issuing a
 * document.
 */
export interface MintedToken {
  tokenId: bigint;
  escrow: string;
}

const REGISTRY = TradeTrustTokenStandard__factory.createInterface();
const ESCROW = TitleEscrow__factory.createInterface();

/** Events of a mint. */
export const EVENTS_OF_A_MINT = 5;

/** Mints several tokens of one account in one block. */
export async function mintTogether(local: LocalSetup, owner: string, count: number): Promise<void> {
  const calls = Array.from({ length: count }, () => {
    const data = REGISTRY.encodeFunctionData('mint', [owner, owner, newTokenId(), '0x']);
    return { from: DEPLOYER, to: local.registryAddress, data };
  });
  await mineTogether(local.client, calls);
}

/**
 * Mints a token of one account, which is beneficiary and, unless another is named, holder; at this setup's
 * registry unless another is named.
 */
export async function mintDirectly(
  local: LocalSetup,
  owner: string,
  { tokenId = newTokenId(), registryAddress = local.registryAddress, holder = owner } = {},
): Promise<MintedToken> {
  await sendTransaction(local.client, mintCall({ registryAddress }, owner, { tokenId, holder }));
  return { tokenId, escrow: await escrowOf(local, tokenId, registryAddress) };
}

/** The call that mints a token of one account, which is beneficiary and, unless another is named, holder. */
export function mintCall(
  { registryAddress }: Pick<LocalSetup, 'registryAddress'>,
  owner: string,
  { tokenId, holder = owner }: { tokenId: bigint; holder?: string },
): Call {
  const data = REGISTRY.encodeFunctionData('mint', [owner, holder, tokenId, '0x']);
  return { from: DEPLOYER, to: registryAddress, data };
}

/** Moves the holder's role from one account to another: one event. */
export async function transferHolder(
  local: LocalSetup,
  token: MintedToken,
  accounts: { from: string; to: string },
): Promise<void> {
  await sendTransaction(local.client, transferCall(token, accounts));
}

/** The call of `transferHolder`. */
export function transferCall({ escrow }: MintedToken, { from, to }: { from: string; to: string }): Call {
  return { from, to: escrow, data: ESCROW.encodeFunctionData('transferHolder', [to, '0x']) };
}

/** A random token id of 256 bits, like that of a document. */
export function newTokenId(): bigint {
  return BigInt(`0x${randomBytes(32).toString('hex')}`);
}

/** The address of a token's title escrow, before or after the mint. */
export async function escrowOf(
  { client, registryAddress }: LocalSetup,
  tokenId: bigint,
  registry = registryAddress,
): Promise<string> {
  const factory = await TradeTrustTokenStandard__factory.connect(registry, client).titleEscrowFactory();
  return TitleEscrowFactory__factory.connect(factory, client).getEscrowAddress(registry, tokenId);
}

/** The history of a token, as the service reads it. */
export async function historyOf(
  { node, registryAddress }: Pick<LocalSetup, 'node' | 'registryAddress'>,
  tokenId: bigint,
): Promise<TokenHistory> {
  const client = connectNode(node.url, {}, systemTime);
  try {
    return await readTokenHistory(client, await createRegistryFinder(client, registryAddress)(), tokenId);
  } finally {
    client.close();
  }
}
