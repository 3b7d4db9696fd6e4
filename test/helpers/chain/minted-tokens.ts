import { ZeroAddress } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../../typechain-types';
import type { RpcCall } from './rpc-proxy';
import type { LocalSetup } from './local-setup';

const REGISTRY = TradeTrustTokenStandard__factory.createInterface();
const SELECTOR_OF_MINT = REGISTRY.getFunction('mint').selector.slice(2);
/** Beneficiary and holder, one word each. */
const WORDS_BEFORE_TOKEN_ID = 2;
const DIGITS_OF_A_WORD = 64;

/**
 * The tokens of a registry, from its logs alone: the transaction hash of each mint, keyed by the token id in
 * 64 hexadecimal digits.
 */
export async function mintedTokens(
  { client, registryAddress }: Pick<LocalSetup, 'client' | 'registryAddress'>,
  fromBlock = 0,
  registry = registryAddress,
): Promise<Map<string, string>> {
  const contract = TradeTrustTokenStandard__factory.connect(registry, client);
  const transfers = contract.filters['Transfer(address,address,uint256)'](ZeroAddress);
  const mints = await contract.queryFilter(transfers, fromBlock);
  return new Map(mints.map(({ args, transactionHash }) => [hexOf(args.tokenId), transactionHash]));
}

/**
 * The ids of all tokens in the requests of a service that call `mint`: simulations, estimates and signed
 * transactions.
 */
export function triedTokens(requests: readonly RpcCall[]): Set<string> {
  return new Set(requests.flatMap(({ params }) => tokensIn(JSON.stringify(params))));
}

/** Finds calls of `mint` anywhere in the text, also inside signed transactions. */
function tokensIn(text: string): string[] {
  const call = new RegExp(
    `${SELECTOR_OF_MINT}[0-9a-f]{${WORDS_BEFORE_TOKEN_ID * DIGITS_OF_A_WORD}}([0-9a-f]{${DIGITS_OF_A_WORD}})`,
    'g',
  );
  return [...text.matchAll(call)].map(([, tokenId = '']) => tokenId);
}

function hexOf(tokenId: bigint): string {
  return tokenId.toString(16).padStart(DIGITS_OF_A_WORD, '0');
}
